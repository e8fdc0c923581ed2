"""What a worker process works with.

A pool of processes calls functions by their names, so they find it in this module: the one value of a command
that is not handed on. Where tasks run in the command's own process, nothing stands here.
"""

from __future__ import annotations

from typing import Any

from gangplan.errors import InternalError

# Tasks under way for each worker: one that it works on, and one that it begins with when that is done.
AHEAD = 2

_held: list[Any] = []


def hold(value: Any) -> None:
    """From now on tasks of this process work with a value."""
    _held[:] = [value]


def is_held() -> bool:
    """Whether this process has what it works with."""
    return bool(_held)


def held() -> Any:
    """What the tasks of this process work with. Raises InternalError before `hold`."""
    if not _held:
        raise InternalError("a worker was used before it was set up")
    return _held[0]
