"""Interrupts: Ctrl-C, and SIGTERM (a cancelled CI job, `timeout`), which ends a command in the same way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM})


@contextmanager
def treat_sigterm_as_interrupt() -> Iterator[None]:
    """Convert the first SIGTERM to KeyboardInterrupt, so that temporary files are removed; ignore later ones.

    A worker process just ends. A SIGTERM that is already ignored or handled stays so.
    """
    owner = os.getpid()

    def stop(number: int, _: object) -> None:
        if os.getpid() != owner:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    try:
        signal.signal(signal.SIGTERM, stop)
    except ValueError:  # only the main thread can set a handler
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Let interrupts that reach this thread wait until the end of the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def release_interrupts() -> None:
    """Let interrupts through again in a process that was forked while they had to wait."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
