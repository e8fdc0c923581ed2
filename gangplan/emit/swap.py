"""Exchange two folders in one step if the kernel can, else in three renames."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # linux/fs.h; renameat2 is in glibc since 2.28


def exchange_paths(first: Path, second: Path) -> None:
    """Exchange the contents of two paths. Raises OSError.

    Without renameat2 (another system, an old file system) there is a moment in which `second` does not exist;
    `tree.recover_tree` undoes the first rename at the next start.
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
    with contextlib.suppress(OSError):  # if this fails, the next start removes what is left aside
        os.rename(aside, first)


def _exchange_at_once(first: Path, second: Path) -> bool:
    try:
        import ctypes  # 2 ms, for `render` alone

        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    done = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    return bool(done == 0)
