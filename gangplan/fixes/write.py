"""Put a fixed file in place: whole or not at all, and only if it belongs to the workspace."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path

from gangplan.errors import find_os_error_help
from gangplan.fixes.file import FixedFile
from gangplan.source import MAX_DOCUMENT_BYTES

# The folder for files that belong to one command and to no commit, as for render.
_STATE, _ASIDE = ".gangplan", "fix."


class Refusal(str):
    """Why a file was not written, and what helps; empty if it was written."""

    __slots__ = ("help",)

    def __new__(cls, why: str = "", help: str = "") -> Refusal:
        made = super().__new__(cls, why)
        made.help = help
        return made

    help: str


def read_fixable(root: Path, file: str) -> bytes | None:
    """Return the bytes of a file that can be fixed; None if missing, unreadable, too large or a link."""
    if _explain_untouchable_file(root, file, for_writing=False):
        return None
    try:
        with open(root / file, "rb") as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
    except OSError:
        return None  # reported where the workspace reads the file
    return data if len(data) <= MAX_DOCUMENT_BYTES else None


def write_fixed(root: Path, fixed: FixedFile) -> Refusal:
    """Put the new bytes in the file's place; return an empty refusal, or the reason why it was not written.

    Never follows a link, leaves the workspace, or overwrites what was changed meanwhile. Mode and name stay,
    and a reader sees either the old file or the new one.
    """
    path = root / fixed.file
    reason = _explain_untouchable_file(root, fixed.file)
    if reason:
        return reason
    try:
        status = os.lstat(path)
        if path.read_bytes() != fixed.before:
            return Refusal("the file was changed meanwhile", "Run the command again.")
        handle, name = tempfile.mkstemp(
            prefix=_ASIDE, dir=_prepare_temporary_folder_for_fixes(root, status.st_dev) or path.parent
        )
        try:
            with open(handle, "wb") as stream:
                _lock_file_being_fixed(stream.fileno())
                stream.write(fixed.after)
                stream.flush()
                os.fsync(stream.fileno())
                os.chmod(name, stat.S_IMODE(status.st_mode))
                os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
    except OSError as failed:
        return Refusal(f"the file cannot be written: {failed.strerror}", find_os_error_help(failed))
    return Refusal()


def _prepare_temporary_folder_for_fixes(root: Path, device: int) -> str | None:
    """Return the folder for temporary files: a commit does not include what a killed command leaves there.

    Files left by earlier commands are removed. Return None if a file cannot be renamed from there into its
    place.
    """
    folder = root / _STATE
    try:
        folder.mkdir(exist_ok=True)
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_dev != device:
            return None
        ignore = folder / ".gitignore"
        if not os.path.lexists(ignore):
            ignore.write_text("*\n", encoding="utf-8")
        for path in sorted(folder.glob(f"{_ASIDE}*")):
            with open(path, "rb") as stream:
                if _lock_file_being_fixed(stream.fileno()):
                    path.unlink()
    except OSError:
        return None
    return str(folder)


def _lock_file_being_fixed(handle: int) -> bool:
    """Lock an open file for as long as it is written; return False if another command holds the lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # not a POSIX system: no way to know, so nothing is removed
        return False
    return True


def _explain_untouchable_file(root: Path, file: str, for_writing: bool = True) -> Refusal:
    """Return why a file must not be touched: outside the workspace, a link or below one, not a plain file."""
    parts = file.split("/")
    if os.path.isabs(file) or ".." in parts or "" in parts:
        return Refusal("it is outside the workspace", "Name a file of the workspace.")
    place = root
    for index, part in enumerate(parts):
        place = place / part
        try:
            mode = os.lstat(place).st_mode
        except OSError as failed:
            return Refusal(f"the file cannot be read: {failed.strerror}", "Run the command again.")
        if stat.S_ISLNK(mode):
            what = "it" if index == len(parts) - 1 else f"{part}/"
            return Refusal(f"{what} is a link", "Replace it with what it leads to.")
    if not stat.S_ISREG(mode):
        return Refusal("it is not a file", "Move it away.")
    if for_writing and not os.access(place, os.W_OK):
        is_mount = bool(os.statvfs(place).f_flag & os.ST_RDONLY)
        return Refusal(
            "it may not be changed (read-only)",
            find_os_error_help(OSError(errno.EROFS if is_mount else errno.EACCES, "")),
        )
    return Refusal()
