"""The engine that does everything in this process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

Worker = TypeVar("Worker")
Task = TypeVar("Task")
TaskReturn = TypeVar("TaskReturn")


class SerialEngine:
    """An engine that makes the calls one after the other."""

    name = "serial"
    workers = 1

    def map(
        self,
        call: Callable[[Worker, Task], TaskReturn],
        tasks: Sequence[Task],
        worker: Worker,
        named: Callable[[Task], str] = repr,
    ) -> Generator[TaskReturn, None, None]:
        """Yield the results of `call`, as `Engine` says."""
        return (call(worker, task) for task in tasks)
