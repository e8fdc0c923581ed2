"""MPI ranks as workers: `mpiexec -n N python -m mpi4py.futures -m gangplan render --engine mpi`.

Every rank must see the same workspace. Rank 0 runs the command, the others wait for tasks.
"""

from __future__ import annotations

import gc
import pickle
from collections import deque
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from itertools import islice
from typing import TypeVar

from gangplan.engines.held import TASKS_AHEAD, get_worker_value, has_worker_value, set_worker_value
from gangplan.errors import ToolError
from gangplan.records import dataclass

Worker = TypeVar("Worker")
Task = TypeVar("Task")
TaskReturn = TypeVar("TaskReturn")


@dataclass(frozen=True)
class _RankSetup:
    """What a rank needs before its first task: its worker, and how seldom to collect garbage.

    Only rank 0 starts as a command does (entry.py): with Python's own thresholds, a fifth of the time of the
    others would go into the collector.
    """

    pickled: bytes
    collector: tuple[int, int, int]


def _run_task_on_mpi_rank(
    bundle: tuple[Callable[[Worker, Task], TaskReturn], _RankSetup, Task],
) -> TaskReturn:
    """Run one task on a rank; the first task sets the rank up (mpi4py has an initializer for spawned ranks
    only)."""
    call, setup, task = bundle
    if not has_worker_value():
        gc.set_threshold(*setup.collector)
        set_worker_value(pickle.loads(setup.pickled))
    result: TaskReturn = call(get_worker_value(), task)
    return result


def start_mpi_ranks_early(module: str) -> None:
    """Let all ranks of an MPI job but this one import a module while this one has other things to do.

    They would wait for the first task otherwise, and each import the program then. Without an MPI job,
    nothing happens: `MpiEngine.map` says what is missing.
    """
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPIPoolExecutor
    except (ImportError, RuntimeError):
        return
    ranks = MPI.COMM_WORLD.Get_size() - 1
    if ranks > 0:
        pool = MPIPoolExecutor()
        for _ in range(ranks):  # all ranks wait, so each gets one
            pool.submit(_import_module_on_mpi_rank, module, gc.get_threshold())
        pool.shutdown(wait=False)  # the ranks do what they were given; `map` opens a pool of its own


def _import_module_on_mpi_rank(module: str, collector: tuple[int, int, int]) -> None:
    gc.set_threshold(*collector)
    import_module(module)


class MpiEngine:
    """The ranks of a running MPI job."""

    name = "mpi"

    @property
    def workers(self) -> int:
        """The number of ranks that take tasks; 1 without MPI, which `map` reports."""
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError):
            return 1
        return max(1, MPI.COMM_WORLD.Get_size() - 1)

    def map(
        self,
        call: Callable[[Worker, Task], TaskReturn],
        tasks: Sequence[Task],
        worker: Worker,
        named: Callable[[Task], str] = repr,
    ) -> Generator[TaskReturn, None, None]:
        """Run the tasks as `Engine` says. Raises ToolError without mpi4py, or outside an MPI job."""
        try:
            from mpi4py import MPI
            from mpi4py.futures import MPIPoolExecutor
        except (ImportError, RuntimeError) as missing:
            raise ToolError(
                f"the MPI engine cannot be loaded: {missing}", "Install gangplan[mpi] and an MPI library."
            ) from None
        if MPI.COMM_WORLD.Get_size() < 2:
            raise ToolError(
                "the MPI engine needs at least two ranks",
                "Start it as: mpiexec -n 4 python -m mpi4py.futures -m gangplan render --engine mpi",
            )

        with MPIPoolExecutor() as pool:
            setup = _RankSetup(pickle.dumps(worker), gc.get_threshold())
            left = iter(tasks)
            under_way = deque(
                pool.submit(_run_task_on_mpi_rank, (call, setup, task))
                for task in islice(left, self.workers * TASKS_AHEAD)
            )
            while under_way:
                result = under_way.popleft().result()
                under_way.extend(
                    pool.submit(_run_task_on_mpi_rank, (call, setup, task)) for task in islice(left, 1)
                )
                yield result
