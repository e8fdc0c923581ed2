"""One render at a time per tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gangplan.errors import ToolError


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Hold the lock of a state folder. Raises ToolError when another process holds it.

    The kernel drops the lock with the process, so a killed render never leaves one behind.
    """
    try:
        import fcntl
    except ImportError:  # not a POSIX system: the swap is still whole, only two renders may race
        yield
        return
    try:
        state.mkdir(parents=True, exist_ok=True)
        handle = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as failed:
        raise ToolError(
            f"cannot write in {state}: {failed.strerror}", "Check the folder's owner and free space."
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ToolError("another render of this workspace is running", "Wait for it to end.") from None
        yield
    finally:
        os.close(handle)
