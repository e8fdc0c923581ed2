"""The command line: names, flags and exit codes. The commands themselves are in `gangplan.commands`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
import typer.core

from gangplan import __version__
from gangplan.commands.fatal import print_fatal, print_unexpected_error_of_command
from gangplan.commands.plugins import disable_pydantic_plugins
from gangplan.commands.streams import StreamListener, guard_standard_streams_of_command
from gangplan.commands.tree import COMMAND_GROUPS, COMMAND_MODULES, OrderedProgram, find_typer_command
from gangplan.errors import INTERRUPTED, Exit, GangplanError, ToolError
from gangplan.incremental.look import Look
from gangplan.interrupts import treat_sigterm_as_interrupt

program = typer.Typer(
    cls=OrderedProgram,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turn short training-job specs in Git into everything a GPU cluster needs to run them, proved before sync.",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"gangplan {__version__}")
        raise typer.Exit


@program.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    pass


@treat_sigterm_as_interrupt()
def run_command_line(listener: StreamListener | None = None, looked: Look | None = None) -> int:
    """Run the command line. Every error of ours is printed here and nowhere else.

    `listener` receives everything that is written to the program's own standard output and standard error;
    `looked` is the current state of the workspace, if it was read already.
    """
    with guard_standard_streams_of_command(listener) as lost:
        code = _run_command_line(looked)
        if why := lost():
            print_fatal(
                ToolError(why, "Write somewhere else, or free some space; not everything was printed.")
            )
            return Exit.ENVIRONMENT
    return code


def _rewrite_help_arguments(given: list[str]) -> list[str]:
    """Return `help`, `help plan` and `cluster help` as equivalent flags; `help workers` explains a field."""
    if given[:1] == ["help"]:
        asked = given[1:]
        is_page = bool(asked) and asked[0] not in COMMAND_MODULES and not asked[0].startswith("-")
        return ["explain", *asked] if is_page else [*asked, "--help"]
    return (
        [given[0], "--help"]
        if len(given) == 2 and given[0] in COMMAND_GROUPS and given[1] == "help"
        else given
    )


def _put_workspace_behind_command(given: list[str]) -> list[str]:
    """Return `-C DIR plan ...` as `plan -C DIR ...`: git and make take the folder before the command."""
    first = given[0] if given else ""
    count = 2 if first in ("-C", "--workspace") else int(first.startswith(("-C", "--workspace=")))
    folder, rest = given[:count], given[count:]
    if rest in ([], ["help"]):
        return rest
    words = 2 if rest[0] in COMMAND_GROUPS and not "".join(rest[1:2]).startswith("-") else 1
    return [*rest[:words], *folder, *rest[words:]]


def _report_interrupt() -> int:
    """Say that nothing was changed, and return the exit code."""
    # CPython treats an interrupt inside exec(text), which namedtuple uses, as unhandled, and would end the
    # program by SIGINT instead of with our exit code. Any other exec resets that (Python/pythonrun.c, 3.11).
    exec("")
    sys.stderr.write(INTERRUPTED)
    return Exit.INTERRUPTED


def _run_command_line(looked: Look | None) -> int:
    """Run the command line and return its exit code."""
    try:
        arguments = _rewrite_help_arguments(_put_workspace_behind_command(sys.argv[1:]))
        disable_pydantic_plugins()
        command = find_typer_command(program, arguments)
        outcome = command(arguments, prog_name="gangplan", standalone_mode=False, obj=looked)
        if outcome == Exit.INTERRUPTED:  # what typer returns after an interrupt
            return _report_interrupt()
        return int(outcome) if isinstance(outcome, int) else Exit.CLEAN
    except typer.Exit as stop:
        return int(stop.exit_code)
    except GangplanError as stop:
        print_fatal(stop)
        return stop.code
    except (KeyboardInterrupt, typer.Abort):
        return _report_interrupt()
    except SystemExit as stop:  # raised by typer's completion for shells
        return stop.code if isinstance(stop.code, int) else Exit.ENVIRONMENT if stop.code else Exit.CLEAN
    except Exception as bad:  # noqa: BLE001  the last door: what is left is a usage error or a bug of ours
        return _report_interrupt() if _is_interrupt(bad) else print_unexpected_error_of_command(bad)


def _is_interrupt(bad: BaseException) -> bool:
    """Return whether an interrupt caused this exception.

    An interrupt inside a function that pydantic calls to serialise becomes an error of its own (pydantic-core
    2.50, PydanticSerializationError).
    """
    known: set[int] = set()
    rest: list[BaseException | None] = [bad]
    while rest:
        one = rest.pop()
        if one is None or id(one) in known:
            continue
        if isinstance(one, KeyboardInterrupt):
            return True
        known.add(id(one))
        rest += [one.__cause__, one.__context__]
    return False
