"""Exchange two folders in one step where the kernel can, in two renames where it cannot."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # linux/fs.h; renameat2 is in glibc since 2.28


# Of folders that are mount points: they cannot be renamed (rename(2): EBUSY, EXDEV), only what is in them.
_MOUNTED = "It is a mount point, or another program holds it: mount the folder above it instead."
_ADVICE = {
    errno.EBUSY: _MOUNTED,
    errno.EXDEV: "The folders are on two file systems: mount the folder above both instead.",
    errno.EROFS: "The file system is mounted read-only: render where it can be written.",
    errno.ENOSPC: "Free some space.",
    errno.EDQUOT: "Free some space: the quota of the file system is used up.",
    errno.EACCES: "Check the folder's owner and mode.",
    errno.EPERM: "Check the folder's owner and mode.",
}


def advice(failed: OSError) -> str:
    """What helps when the file system refuses to write."""
    return _ADVICE.get(failed.errno or 0, "Check the folder's owner and free space.")


def exchange(first: Path, second: Path) -> None:
    """After this, each path holds what the other held. Raises OSError.

    Without renameat2 (another system, an old file system) there is a moment in which `second` does not
    exist; `Stage.recover` finishes the second rename at the next start.
    """
    if _exchange_at_once(first, second):
        return
    aside = first.with_name(f"{first.name}.aside")
    os.rename(second, aside)
    try:
        os.rename(first, second)
    except OSError:
        os.rename(aside, second)
        raise
    with contextlib.suppress(OSError):  # what is left aside is removed at the next start
        os.rename(aside, first)


def _exchange_at_once(first: Path, second: Path) -> bool:
    try:
        import ctypes  # 2 ms, for `render` alone

        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    done = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    return bool(done == 0)
