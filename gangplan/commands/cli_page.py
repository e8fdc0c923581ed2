"""docs/cli.md: every command with its flags, generated from the tree of commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
import typer.main

from gangplan.commands.new_flags import parameters
from gangplan.commands.tree import COMMANDS, whole

_HEAD = """\
# Commands

Generated from the command line by `make docs`. `gangplan COMMAND --help` prints the same for one command; what the
commands are for is in the [README](../README.md#commands), exit codes are in [exit-codes.md](exit-codes.md).
"""


def cli_page() -> str:
    """The page: commands in the order of the help, flags in tables."""
    tree: Any = typer.main.get_command(whole(typer.Typer(add_completion=False)))
    parts = [_HEAD]
    for name in COMMANDS:
        command = tree.commands[name]
        if not command.hidden:
            parts += _sections(command, f"gangplan {name}")
    return "\n".join(parts)


def _sections(command: Any, path: str) -> Iterator[str]:
    """A command, or all those of a group."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        for name, one in inner.items():
            yield from _sections(one, f"{path} {name}")
        return
    is_of_fields = path.startswith("gangplan new ") and not command.params
    params = parameters(str(command.name)) if is_of_fields else command.params
    shown = [one for one in params if not getattr(one, "hidden", False)]
    arguments = [one for one in shown if not one.opts[0].startswith("-")]
    usage = " ".join([path, *map(_argument, arguments), "[FLAGS]"])
    yield f"## {path}\n\n{_line(command.help)}\n\n```sh\n{usage}\n```\n"
    rows = [f"| {_names(one)} | {_line(one.help)} |\n" for one in shown if one.help]
    if rows:
        yield f"| flag | meaning |\n|---|---|\n{''.join(rows)}"


def _argument(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    name = f"{name}..." if param.nargs == -1 else name
    return name if param.required else f"[{name}]"


def _names(param: Any) -> str:
    """A flag in all of its spellings, with what it takes; an argument by what stands for it."""
    if not param.opts[0].startswith("-"):
        return f"`{_cell(str(param.metavar or param.name.upper()))}`"
    takes = f" {param.metavar}" if param.metavar and not getattr(param, "is_flag", False) else ""
    spellings = [*param.opts, *param.secondary_opts]
    return ", ".join(f"`{one}{_cell(takes)}`" for one in spellings)


def _line(text: str) -> str:
    # A reader of Markdown would take <team> for a tag of HTML.
    return _cell(re.sub(r"\s+", " ", text or "").strip()).replace("<", "\\<")


def _cell(text: str) -> str:
    """Text inside of a table: a bar would end the cell."""
    return text.replace("|", "\\|")
