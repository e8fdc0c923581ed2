"""The process-global state of a worker.

A pool of processes calls functions by their names, so the functions find their worker in this module; it is
the only value of a command that is not passed as an argument. If tasks run in the command's own process, the
module stays empty.
"""

from __future__ import annotations

from typing import Any

from gangplan.errors import InternalError

# Tasks in flight for each worker: one that it runs, and the one that it starts next.
TASKS_AHEAD = 2

_held: list[Any] = []


def set_worker_value(value: Any) -> None:
    """Set the value that tasks of this process work with."""
    _held[:] = [value]


def has_worker_value() -> bool:
    """Return whether this process has a value to work with."""
    return bool(_held)


def get_worker_value() -> Any:
    """Return what the tasks of this process work with. Raises InternalError before `set_worker_value`."""
    if not _held:
        raise InternalError("a worker was used before it was set up")
    return _held[0]
