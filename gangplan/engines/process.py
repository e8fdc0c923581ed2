"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from gangplan.errors import ToolError

Task = TypeVar("Task")
Result = TypeVar("Result")


class ProcessEngine:
    """A pool of worker processes; each is set up once."""

    name = "process"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self,
        call: Callable[[Task], Result],
        tasks: Sequence[Task],
        setup: Callable[..., None],
        arguments: tuple[object, ...],
    ) -> Iterator[Result]:
        """See `Engine`. Raises ToolError when a worker dies."""
        # fork shares what is already imported; where it does not exist the default start is used.
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(
            self.workers, mp_context=context, initializer=setup, initargs=arguments
        ) as pool:
            try:
                yield from pool.map(call, tasks)
            except BrokenProcessPool:
                raise ToolError(
                    "a worker process died (killed, or out of memory); nothing was written",
                    "Try again with --engine serial.",
                ) from None
