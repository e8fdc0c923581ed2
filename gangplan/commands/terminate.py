"""A command that is told to end (SIGTERM: a cancelled CI job, `timeout`) ends as it does on Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM raises KeyboardInterrupt, so that nothing temporary stays; once, lest a second one stops
    the clearing up. A worker process just ends, and whoever has SIGTERM ignored or handled keeps that."""
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
    except ValueError:  # only the main thread can
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
