"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar

from gangplan.engines.held import held, hold
from gangplan.errors import ToolError

Worker = TypeVar("Worker")
Task = TypeVar("Task")
Result = TypeVar("Result")


class ProcessEngine:
    """A pool of worker processes; each is set up once."""

    name = "process"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self,
        call: Callable[[Worker, Task], Result],
        tasks: Sequence[Task],
        worker: Worker,
    ) -> Iterator[Result]:
        """See `Engine`. Raises ToolError when a worker dies."""
        # fork shares what is already imported; where it does not exist the default start is used.
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(
            self.workers, mp_context=context, initializer=_set_up, initargs=(worker,)
        ) as pool:
            try:
                # Python loses an interrupt that comes while it forks: it waits until all workers are there.
                _hold(signal.SIG_BLOCK)
                try:
                    results = pool.map(partial(_call, call), tasks)
                finally:
                    _hold(signal.SIG_UNBLOCK)
                yield from results
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)  # workers of an ended command must not go on writing
                raise
            except BrokenProcessPool:
                raise ToolError(
                    "a worker process died (killed, or out of memory); nothing was written",
                    "Try again with --engine serial.",
                ) from None


def _set_up(worker: object) -> None:
    """In a worker: signals that were held back while it was made come through; it has what it works with."""
    _hold(signal.SIG_UNBLOCK)
    hold(worker)


def _call(call: Callable[[Worker, Task], Result], task: Task) -> Result:
    return call(held(), task)


def _hold(how: int) -> None:
    """Hold back interrupts and requests to end, or let them through again."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(how, {signal.SIGINT, signal.SIGTERM})
