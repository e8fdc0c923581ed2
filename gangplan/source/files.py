"""Loading a file by its path. It never blocks and never opens a device."""

from __future__ import annotations

import errno
import os
import pathlib
import stat

from gangplan.findings import Finding, Location
from gangplan.rules.core import FILE_UNREADABLE
from gangplan.source.document import Document, FileLimits, load_document

# Opening a FIFO or a terminal must return at once; these flags do not exist on every system.
_OPEN_FLAGS = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
    _OPEN_FLAGS |= getattr(os, _flag, 0)

_REASONS = {
    errno.ENOENT: ("the file does not exist", "Create it, or correct its path."),
    errno.EACCES: ("permission to read the file is denied", "Give yourself read permission."),
    errno.EPERM: ("permission to read the file is denied", "Give yourself read permission."),
    errno.ELOOP: ("the symbolic link points back to itself", "Replace the link with a file."),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", "Check the path."),
    errno.ENAMETOOLONG: ("the path is too long", "Shorten the names in it."),
    errno.EISDIR: ("this is a directory, not a file", "Name a file in it."),
}


def load_file(
    path: pathlib.Path, file: str, limits: FileLimits | None = None
) -> tuple[Document | None, list[Finding]]:
    """Load the file at `path`, like `load_document`; `file` is its name in reports."""
    limits = limits or FileLimits()
    try:
        data = _read_regular_yaml_file(path, limits.max_bytes + 1)
    except OSError as problem:
        reason = (
            f"the file cannot be read: {os.strerror(problem.errno or errno.EIO)}",
            "Check that you can open it.",
        )
        message, help = _REASONS.get(problem.errno or errno.EIO, reason)
        if problem.errno == errno.ENOENT and path.is_symlink():
            message, help = (
                "the symbolic link points to a file that does not exist",
                "Replace the link with the file.",
            )
        return None, [Finding(FILE_UNREADABLE, Location(file), message, help)]
    except ValueError:  # the path contains a NUL
        return None, [
            Finding(FILE_UNREADABLE, Location(file), "the path contains a NUL character", "Rename the file.")
        ]
    if data is None:
        message = "this is a pipe, socket or device, not a regular file"
        return None, [Finding(FILE_UNREADABLE, Location(file), message, "Replace it with a file.")]
    return load_document(data, file, limits)


def _read_regular_yaml_file(path: pathlib.Path, size: int) -> bytes | None:
    """Return at most `size` bytes; None if it is neither a file nor a directory.

    Raises `OSError` (also for a directory) and `ValueError`.
    """
    # Opening a device can already have effects, so check first; check again, because it may have been
    # replaced.
    if not _is_regular(os.stat(path)):
        return None
    handle = os.open(path, _OPEN_FLAGS)
    with open(handle, "rb") as stream:
        return stream.read(size) if _is_regular(os.fstat(handle)) else None


def _is_regular(status: os.stat_result) -> bool:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    return stat.S_ISREG(status.st_mode)
