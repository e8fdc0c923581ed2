"""Errors that end a command before it could do its work, written to standard error."""

from __future__ import annotations

import errno
import os
import sys

from gangplan import __version__
from gangplan.errors import Exit, GangplanError, InternalError, ToolError, UserError, build_os_refusal_error
from gangplan.findings import format_sentence
from gangplan.report.escape import escape_log_line

# Errors of the system that may occur anywhere, and that no code of ours can prevent.
_OF_THE_SYSTEM = (
    errno.ENAMETOOLONG,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
)


def print_fatal(stop: GangplanError) -> None:
    """Print an error of ours and its help."""
    sys.stderr.write(f"fatal: {escape_log_line(stop.message)}\n")
    if stop.help:
        sys.stderr.write(f"  help: {escape_log_line(format_sentence(stop.help))}\n")


def print_unexpected_error_of_command(bad: Exception) -> int:
    """Print a usage error, a file that has vanished, or a bug of ours with its traceback; return the exit
    code."""
    # Usage errors come from the copy of click inside typer, which has no public name; they are recognised by
    # their attributes.
    if hasattr(bad, "format_message") and hasattr(bad, "exit_code"):
        if type(bad).__name__ == "NoArgsIsHelpError":  # prints the help, but nothing was done
            is_bare = getattr(bad, "ctx", None) is not None and bad.ctx.parent is None  # type: ignore[attr-defined]
            sys.stderr.write(_describe_first_commands() if is_bare else f"{bad.format_message()}\n")
            return Exit.INPUT
        usage = getattr(bad, "ctx", None)
        help = f"Run {usage.command_path} --help." if usage is not None else None
        print_fatal(UserError(bad.format_message(), help))
        return Exit.INPUT
    if isinstance(bad, FileNotFoundError) and _is_current_folder_gone():
        print_fatal(ToolError("the current folder is gone", "Change to a folder that exists: cd DIR."))
        return Exit.ENVIRONMENT
    if isinstance(bad, FileNotFoundError | NotADirectoryError) and bad.filename:
        # A file that is missing from the start is reported where it is looked for.
        help = "Somebody removes files while gangplan reads them: run the command again."
        print_fatal(ToolError(f"{os.fsdecode(bad.filename)} was there a moment ago, and is gone", help))
        return Exit.ENVIRONMENT
    if isinstance(bad, OSError) and bad.errno in _OF_THE_SYSTEM:
        name = os.fsdecode(bad.filename) if isinstance(bad.filename, str | bytes) else "a file"
        stop = build_os_refusal_error(name, bad)
        print_fatal(stop)
        return stop.code
    import traceback

    print_fatal(
        InternalError(
            f"a bug in gangplan {__version__}: {type(bad).__name__}: {bad}",
            "Please report it with these lines.",
        )
    )
    for line in "".join(traceback.format_exception(bad)).splitlines():
        sys.stderr.write(f"| {escape_log_line(line)}\n")
    return Exit.ENVIRONMENT


def _is_current_folder_gone() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


# What the program is, and the commands that matter outside of a workspace and in one.
_BARE = "gangplan turns short training-job specs in Git into all that a GPU cluster needs, and proves that they run."
_OUTSIDE: tuple[tuple[str, str], ...] = (
    ("init DIR", "make a new workspace; questions on a terminal"),
    ("init DIR --sample", "make one with two teams, two clusters and four jobs, to look at"),
)
_INSIDE: tuple[tuple[str, str], ...] = (
    ("new job NAME", "write a spec; questions on a terminal"),
    ("render", "expand all specs into rendered/, which is committed with them"),
    ("validate", "check everything that would be applied"),
)


def _describe_first_commands() -> str:
    """Write what to do next, outside a workspace or in one."""
    from gangplan.spec.root import locate_workspace_root

    commands = _INSIDE
    try:
        locate_workspace_root(None)
    except (GangplanError, OSError):
        commands = _OUTSIDE
    lines = [f"  gangplan {command:<18} {what}\n" for command, what in commands]
    return f"{_BARE}\n\n{''.join(lines)}\ngangplan --help lists all commands, and gangplan COMMAND --help says more of one.\n"
