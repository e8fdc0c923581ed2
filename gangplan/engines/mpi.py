"""MPI ranks as workers: `mpiexec -n N python -m mpi4py.futures -m gangplan render --engine mpi`.

Every rank must see the same workspace. Rank 0 runs the command, the others wait for tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from gangplan.errors import ToolError

Task = TypeVar("Task")
Result = TypeVar("Result")

_state: dict[str, bool] = {}


def _set_up_and_call(
    bundle: tuple[Callable[[Task], Result], Callable[..., None], tuple[object, ...], Task],
) -> Result:
    """One task on a rank; the first one sets the rank up (mpi4py's own
    initializer runs only with dynamic spawn)."""
    call, setup, arguments, task = bundle
    if not _state.get("ready"):
        setup(*arguments)
        _state["ready"] = True
    return call(task)


class MpiEngine:
    """The ranks of a running MPI job."""

    name = "mpi"

    def map(
        self,
        call: Callable[[Task], Result],
        tasks: Sequence[Task],
        setup: Callable[..., None],
        arguments: tuple[object, ...],
    ) -> Iterator[Result]:
        """See `Engine`. Raises ToolError without mpi4py, or outside an MPI job."""
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
            yield from pool.map(_set_up_and_call, [(call, setup, arguments, task) for task in tasks])
