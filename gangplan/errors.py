"""The errors that stop a command, and the exit codes of all commands.

Exceptions carry data and never print; only `gangplan.cli` prints them.
"""

from __future__ import annotations

import errno
from enum import IntEnum
from pathlib import Path


class Exit(IntEnum):
    """The stable exit codes of every command."""

    CLEAN = 0
    FINDINGS = 1
    INPUT = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


INTERRUPTED = "interrupted; nothing was changed\n"


class GangplanError(Exception):
    """An error that stops a command, with a message for the user and, where one exists, a help."""

    code: Exit = Exit.ENVIRONMENT

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help


class UserError(GangplanError):
    """The input or the flags are wrong: exit 2."""

    code = Exit.INPUT


class ToolError(GangplanError):
    """Another program is missing, refused, crashed or timed out: exit 3."""


class InternalError(GangplanError):
    """A bug in gangplan: exit 3, worth a report."""


# A mount point cannot be renamed, only what is in it (rename(2): EBUSY, EXDEV).
_MOUNTED = "It is a mount point, or another program holds it: mount the folder above it instead."
_NOT_YOURS = "You may not write there: check the owner and mode of the folder, or write somewhere else."
_ADVICE = {
    errno.EBUSY: _MOUNTED,
    errno.EXDEV: "The folders are on two file systems: mount the folder above both instead.",
    errno.EROFS: "The file system is mounted read-only: work in a folder that can be written.",
    errno.ENOSPC: "Free some space.",
    errno.EDQUOT: "Free some space: the quota of the file system is used up.",
    errno.EACCES: _NOT_YOURS,
    errno.EPERM: _NOT_YOURS,
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ENOENT: "No file or folder can be made there: name another folder.",
    errno.ENOTDIR: "A file stands where a folder is needed: name another folder.",
    errno.EISDIR: "A folder stands where a file is needed: move it away, or choose another name.",
    errno.ELOOP: "Its links lead back to where they began: replace them.",
}


def find_os_error_help(failed: OSError) -> str:
    """Return the help for an error of the file system that prevented writing."""
    return _ADVICE.get(failed.errno or 0, "Check the folder's owner and free space.")


def build_unreadable_file_error(path: Path, failed: Exception, help: str) -> UserError:
    """Return the error that a named file cannot be read as text, and why; `help` says which file is meant."""
    if isinstance(failed, IsADirectoryError):
        return UserError(f"{path} is a folder, not a file", help)
    if isinstance(failed, UnicodeDecodeError):
        return UserError(f"{path} is not UTF-8 text", help)
    why = failed.strerror if isinstance(failed, OSError) else None
    return UserError(f"{path} cannot be read: {why or failed}", help)


def build_os_refusal_error(what: str, failed: OSError) -> GangplanError:
    """Return the error that says what was not done, why the system refused it, and what helps.

    A name that is too long is bad input.
    """
    kind = UserError if failed.errno == errno.ENAMETOOLONG else ToolError
    return kind(f"{what}: {failed.strerror or failed}", find_os_error_help(failed))
