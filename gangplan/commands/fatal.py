"""What ends a command before it could do its work, in words on standard error."""

from __future__ import annotations

import os
import sys

from gangplan import __version__
from gangplan.errors import Exit, GangplanError, InternalError, ToolError, UserError
from gangplan.findings import sentence
from gangplan.report.escape import log_line


def fatal(stop: GangplanError) -> None:
    """An error of ours and its help."""
    sys.stderr.write(f"fatal: {log_line(stop.message)}\n")
    if stop.help:
        sys.stderr.write(f"  help: {log_line(sentence(stop.help))}\n")


def unexpected(bad: Exception) -> int:
    """A usage error, a file that has vanished, or a bug of ours with its traceback; the exit code."""
    # Usage errors come from the copy of click inside typer, which has no public name; they can be told
    # by what they offer.
    if hasattr(bad, "format_message") and hasattr(bad, "exit_code"):
        if type(bad).__name__ == "NoArgsIsHelpError":  # the help, but no success: nothing was done
            sys.stderr.write(f"{bad.format_message()}\n")
            if getattr(bad, "ctx", None) is not None and bad.ctx.parent is None:  # type: ignore[attr-defined]
                sys.stderr.write(f"\n{_where_to_begin()}\n")
            return Exit.INPUT
        usage = getattr(bad, "ctx", None)
        help = f"Run {usage.command_path} --help." if usage is not None else None
        fatal(UserError(bad.format_message(), help))
        return Exit.INPUT
    if isinstance(bad, FileNotFoundError | NotADirectoryError) and bad.filename:
        # Whatever is not there from the start is told where it is looked for.
        help = "Somebody removes files while gangplan reads them: run the command again."
        fatal(ToolError(f"{os.fsdecode(bad.filename)} was there a moment ago, and is gone", help))
        return Exit.ENVIRONMENT
    import traceback

    fatal(
        InternalError(
            f"a bug in gangplan {__version__}: {type(bad).__name__}: {bad}",
            "Please report it with these lines:",
        )
    )
    for line in "".join(traceback.format_exception(bad)).splitlines():
        sys.stderr.write(f"| {log_line(line)}\n")
    return Exit.ENVIRONMENT


def _where_to_begin() -> str:
    """What to do next, by where we are."""
    from gangplan.spec.root import root_of

    try:
        root_of(None)
    except GangplanError:
        return "Begin here: gangplan init DIR makes a new workspace; all other commands work inside one."
    return "Begin here: gangplan list shows what this workspace has; gangplan validate checks it."
