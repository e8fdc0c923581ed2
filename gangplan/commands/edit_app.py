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
        autocompletion=complete.complete_settings_on_tab,
    ),
]
Unsets = Annotated[
    list[str] | None,
    typer.Option(
        "--unset",
        "-u",
        help="Remove a field, as --set KEY- does. May be repeated.",
        metavar="KEY",
        autocompletion=complete.complete_settings_on_tab,
    ),
]
Dry = Annotated[bool, typer.Option("--dry-run", "-n", help="Print what would be written, write nothing.")]


@app.command()
def clone(
    file: Annotated[
        str,
        typer.Argument(
            help="A spec or a template.",
            metavar="FILE",
            autocompletion=complete.complete_clone_sources_on_tab,
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
    from gangplan.commands.edit import run_clone_command as command

    raise typer.Exit(command(file, name, set or (), unset or (), workspace, dry_run, quiet))


@app.command()
def edit(
    file: Annotated[
        str,
        typer.Argument(
            help="A spec, or any other file of the workspace.",
            metavar="FILE",
            autocompletion=complete.complete_files_on_tab,
        ),
    ],
    set: Sets = None,
    unset: Unsets = None,
    workspace: WorkspaceFlag = None,
    dry_run: Dry = False,
    quiet: QuietFlag = False,
) -> None:
    """Set and remove fields of a file. Everything else in it stays as it is, byte for byte."""
    from gangplan.commands.edit import run_edit_command as command

    raise typer.Exit(command(file, set or (), unset or (), workspace, dry_run, quiet))
