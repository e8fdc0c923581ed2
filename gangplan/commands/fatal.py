"""What ends a command before it could do its work, in words on standard error."""

from __future__ import annotations

import sys

from gangplan import __version__
from gangplan.errors import Exit, GangplanError, InternalError, UserError
from gangplan.findings import sentence
from gangplan.report.escape import log_line


def fatal(stop: GangplanError) -> None:
    """An error of ours and its help."""
    sys.stderr.write(f"fatal: {log_line(stop.message)}\n")
    if stop.help:
        sys.stderr.write(f"  help: {log_line(sentence(stop.help))}\n")


def unexpected(bad: Exception) -> int:
    """A usage error, or a bug of ours with its traceback; the exit code."""
    # Usage errors come from the copy of click inside typer, which has no public name; they can be told
    # by what they offer.
    if hasattr(bad, "format_message") and hasattr(bad, "exit_code"):
        if type(bad).__name__ == "NoArgsIsHelpError":  # the help, but no success: nothing was done
            sys.stderr.write(f"{bad.format_message()}\n")
            return Exit.INPUT
        usage = getattr(bad, "ctx", None)
        help = f"Run {usage.command_path} --help." if usage is not None else None
        fatal(UserError(bad.format_message(), help))
        return Exit.INPUT
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
