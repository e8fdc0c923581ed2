"""Building only the part of the command tree that a command line needs, because typer takes long to build all
of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from importlib import import_module
from typing import Any, cast

import typer
import typer.core
import typer.main
import typer.models

from gangplan.commands.complete import list_help_words

# The module of each command, in the order of the help: commands of their own, and groups. Only the module of
# the requested one is imported (tests compare the table with the modules).
COMMAND_MODULES = {
    "init": "start_app",
    "new": "new_app",
    "clone": "edit_app",
    "edit": "edit_app",
    "import": "import_app",
    "list": "start_app",
    "render": "single_app",
    "validate": "single_app",
    "plan": "single_app",
    "diff": "single_app",
    "run": "run_app",
    "cost": "cost_app",
    "provenance": "provenance_app",
    "verify": "provenance_app",
    "why": "single_app",
    "explain": "single_app",
    "simulate": "simulate_app",
    "status": "live_app",
    "logs": "live_app",
    "diagnose": "live_app",
    "repeat": "repeat_app",
    "retire": "retire_app",
    "docs": "single_app",
    "cache": "cache_app",
    "cluster": "cluster_app",
    "gitops": "gitops_app",
    "pipeline": "pipeline_app",
    "images": "images_app",
    "policy": "policy_app",
    "report": "report_app",
    "schema": "schema_app",
    "tools": "tools",
}
COMMAND_GROUPS = frozenset(
    (
        "new",
        "import",
        "cache",
        "cluster",
        "gitops",
        "images",
        "pipeline",
        "policy",
        "report",
        "schema",
        "tools",
    )
)


def _hide_argument_type(self: typer.core.TyperArgument, ctx: typer.Context) -> None:
    """Show only the name of an argument in help, such as `FILE`; typer adds its Python type."""


_complete = typer.core.TyperOption.shell_complete


def _complete_flag_value(self: Any, ctx: Any, incomplete: str) -> Any:
    """Complete to what the flag has a function for, else to the words in its help."""
    if self._custom_shell_complete is None and (words := list_help_words(self.help or "")):
        self._custom_shell_complete = lambda _ctx, _param, begun: [
            word for word in words if word.startswith(begun)
        ]
    return _complete(self, ctx, incomplete)


typer.core.TyperOption.shell_complete = _complete_flag_value  # type: ignore[method-assign]
typer.core.TyperArgument.shell_complete = _complete_flag_value  # type: ignore[method-assign]
typer.core.TyperArgument.display_type_rich = _hide_argument_type  # type: ignore[method-assign,assignment]


class OrderedProgram(typer.core.TyperGroup):
    """The program, with its commands in the order of the table, not of their kinds."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the names of the commands, in the order of the table."""
        return [name for name in COMMAND_MODULES if name in self.commands]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """Return a command by its name.

        TAB after `help` completes as it does without it; cli.py defines what `help` runs.
        """
        if cmd_name == "help" and ctx.resilient_parsing:
            return self
        return super().get_command(ctx, cmd_name)


def find_typer_command(program: typer.Typer, arguments: Sequence[str]) -> Callable[..., object]:
    """Return what runs a command line: the whole tree for help, a completion or a mistake, else one
    branch."""
    first, second = [*arguments, "-", "-"][:2]
    if arguments in (["-h"], ["--help"]):
        return _build_list_of_typer_commands(program)
    if first.startswith("-"):
        return _build_typer_command_tree(program, "", ())
    branch = first if first in COMMAND_MODULES else ""
    return _build_typer_command_tree(
        program, branch, ("", first) if first in COMMAND_GROUPS and not second.startswith("-") else ("",)
    )


def add_all_commands(program: typer.Typer) -> typer.Typer:
    """Return the program with all commands."""
    return _select_typer_commands(program, tuple(COMMAND_MODULES))


def _stand_in() -> None:
    """Do nothing: only the name and the help of a command are listed."""


def _build_list_of_typer_commands(program: typer.Typer) -> Callable[..., object]:
    """Build what the program's own help needs: names and help of commands, without their 600 parameters."""
    listed = copy(program)
    listed.registered_commands, listed.registered_groups = [], []
    for name, module in COMMAND_MODULES.items():
        part: typer.Typer = import_module(f"gangplan.commands.{module}").app
        if name in COMMAND_GROUPS:
            group = copy(part)
            group.registered_commands = []
            listed.add_typer(group, name=name)
        for info in part.registered_commands if name not in COMMAND_GROUPS else ():
            if name_of(info) == name:
                bare = copy(info)
                bare.name, bare.help, bare.callback = (
                    name,
                    info.help or inspect.getdoc(info.callback),
                    _stand_in,
                )
                listed.registered_commands.append(bare)
    return typer.main.get_command(listed)


@cache
def _build_typer_command_tree(
    program: typer.Typer, branch: str, groups: tuple[str, ...]
) -> Callable[..., object]:
    """Build a tree, once: it never changes, and tests run thousands of commands in one process.

    `groups` are those that a command is called through without an option of theirs (the first, without a
    name, is the program itself). They lose their options: typer would import pydantic (50 ms) to find out
    that neither help nor a version was requested.
    """
    tree = node = cast(
        typer.core.TyperGroup,
        typer.main.get_command(
            _select_typer_commands(program, (branch,) if branch else tuple(COMMAND_MODULES))
        ),
    )
    for name in groups:
        node = cast(typer.core.TyperGroup, node.commands[name]) if name else node
        node.params, node.add_help_option = [], False
    for command in node.commands.values():
        for param in command.params:
            if not param.required and param.callback is None:
                _skip_typer_conversion_of_flag_default(param)
    return tree


def _select_typer_commands(program: typer.Typer, names: Sequence[str]) -> typer.Typer:
    """Return the program with some of its commands."""
    one = copy(program)
    one.registered_groups, one.registered_commands = [], []
    for name in names:
        part: typer.Typer = import_module(f"gangplan.commands.{COMMAND_MODULES[name]}").app
        if name in COMMAND_GROUPS:
            one.add_typer(part, name=name)
        else:
            one.registered_commands += [info for info in part.registered_commands if name_of(info) == name]
    return one


def name_of(command: typer.models.CommandInfo) -> str:
    """Return the name of a command."""
    return command.name or typer.main.get_command_name(getattr(command.callback, "__name__", ""))


def _skip_typer_conversion_of_flag_default(param: Any) -> None:
    """Skip the conversion of a value that was not given: the command takes its default as it is.

    typer builds a pydantic adapter for each parameter that it converts (1 ms).
    """
    convert, default = param.process_value, param.default

    def process(context: typer.Context, value: Any) -> Any:
        return value if value is None or value == default else convert(context, value)

    param.process_value = process
