"""A lock that allows one render at a time per tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gangplan.errors import ToolError, UserError, build_os_refusal_error

# What a render writes in its state folder; stage.aside exists only between two renames (swap.py).
OWN = ("lock", "stage", "stage.aside", "journal", "journal.new")


@contextmanager
def lock_state_folder(state: Path) -> Iterator[int]:
    """Hold the lock of a state folder; yield when it was last released (ns; 0: never, or unknown).

    Raises ToolError if another process holds it, UserError for links.

    A render writes and removes what is in the folder, so no part of it may be a link to elsewhere. The kernel
    drops the lock with the process, so a killed render never leaves one behind.
    """
    for path in (state, *(state / name for name in OWN)):
        if path.is_symlink():
            raise UserError(
                f"{path} is a link: a render would write and remove files where it leads",
                "Remove the link; the next render creates the folder again.",
            )
    try:
        import fcntl
    except ImportError:  # not a POSIX system: the swap is still whole, but two renders may race
        yield 0
        return
    try:
        state.mkdir(parents=True, exist_ok=True)
        handle = os.open(
            state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o644
        )
    except OSError as failed:
        raise build_os_refusal_error(f"cannot write in {state}", failed) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ToolError("another render of this workspace is running", "Wait for it to end.") from None
        yield os.fstat(handle).st_mtime_ns
        os.utime(handle)
    finally:
        os.close(handle)
