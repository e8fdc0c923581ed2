"""Engines that run the work: one ordered map with the same results on every engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from gangplan.errors import UserError

Worker = TypeVar("Worker")
Task = TypeVar("Task")
TaskReturn = TypeVar("TaskReturn")
Thing = TypeVar("Thing")

ENGINES = ("auto", "serial", "process", "mpi")
# A worker costs 40 ms to start; below this many tasks it never pays off (measured, benchmarks/).
WORTH_WORKERS = 64


# Things in a task: enough to justify its transfer to a worker, few enough that all workers end together.
MOST_IN_TASK, FEWEST_IN_TASK = 50, 5


class Engine(Protocol):
    """An engine: `map` yields `call(worker, task)` in the order of the tasks.

    `worker` is what every task works with: the value itself in this process and in its forks; elsewhere the
    copy that its pickled form creates, once per process. `named` names the task in the error if one cannot be
    done.
    """

    name: str

    @property
    def workers(self) -> int:
        """The number of tasks that run at the same time."""

    def map(
        self,
        call: Callable[[Worker, Task], TaskReturn],
        tasks: Sequence[Task],
        worker: Worker,
        named: Callable[[Task], str] = repr,
    ) -> Generator[TaskReturn, None, None]: ...


def split_into_worker_tasks(things: Sequence[Thing], workers: int) -> list[tuple[Thing, ...]]:
    """Return things as tasks for some workers, in order: large tasks first, small ones at the end."""
    found, start = [], 0
    while start < len(things):
        fair = (len(things) - start) // (2 * workers)
        end = start + min(MOST_IN_TASK, max(FEWEST_IN_TASK, fair))
        found.append(tuple(things[start:end]))
        start = end
    return found


def pick_execution_engine(name: str, jobs: int, size: int) -> Engine:
    """Return the engine by name; `auto` uses processes if the work justifies starting them.

    `jobs` is the number of workers (0: one per core), `size` the number of things to do. Raises UserError for
    an unknown name.
    """
    check_engine(name)
    workers = jobs or _count_available_cpus()
    if name == "auto":
        name = "process" if workers > 1 and size >= WORTH_WORKERS else "serial"
    if name == "serial":
        from gangplan.engines.serial import SerialEngine

        return SerialEngine()
    if name == "process":
        from gangplan.engines.process import ProcessEngine

        return ProcessEngine(workers)
    from gangplan.engines.mpi import MpiEngine

    return MpiEngine()


def check_engine(name: str) -> None:
    """Raise UserError if there is no such engine."""
    if name not in ENGINES:
        raise UserError(f"there is no engine '{name}'", f"Engines: {', '.join(ENGINES)}.")


def _count_available_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
