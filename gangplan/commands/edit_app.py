"""`gangplan clone` and `gangplan edit`: their flags."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import QuietFlag, WorkspaceFlag

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)

Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        help=r"Set a field: workers=16, env.SEED=7, clusters=a,b, command[1]=other.py, labels.example\.com/team=x. May be repeated.",
        metavar="KEY=VALUE",
        autocompletion=complete.complete_settings,
    ),
]
Unsets = Annotated[
    list[str] | None,
    typer.Option(
        "--unset",
        "-u",
        help="Remove a field, as --set KEY- does. May be repeated.",
        metavar="KEY",
        autocompletion=complete.complete_settings,
    ),
]
Dry = Annotated[bool, typer.Option("--dry-run", "-n", help="Print what would be written, write nothing.")]


@app.command()
def clone(
    file: Annotated[
        str,
        typer.Argument(
            help="A spec or a template.", metavar="FILE", autocompletion=complete.complete_sources
        ),
    ],
    name: Annotated[str, typer.Argument(help="Name of the copy, and of its file.", metavar="NEWNAME")],
    set: Sets = None,
    unset: Unsets = None,
    workspace: WorkspaceFlag = None,
    dry_run: Dry = False,
    quiet: QuietFlag = False,
) -> None:
    """Copy a spec to its own folder under another name, with its comments, and change some of its fields."""
    from gangplan.commands.edit import clone_spec as command

    raise typer.Exit(command(file, name, set or (), unset or (), workspace, dry_run, quiet))


@app.command()
def edit(
    file: Annotated[
        str,
        typer.Argument(
            help="A spec, or any other file of the workspace.",
            metavar="FILE",
            autocompletion=complete.complete_files,
        ),
    ],
    set: Sets = None,
    unset: Unsets = None,
    workspace: WorkspaceFlag = None,
    dry_run: Dry = False,
    quiet: QuietFlag = False,
) -> None:
    """Set and remove fields of a file. Everything else in it stays as it is, byte for byte."""
    from gangplan.commands.edit import edit_specs as command

    raise typer.Exit(command(file, set or (), unset or (), workspace, dry_run, quiet))
