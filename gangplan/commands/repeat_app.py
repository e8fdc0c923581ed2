"""`gangplan repeat`: its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands.flags import Clusters, EngineName, Jobs, Specs, Teams, Workspace

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def repeat(
    specs: Specs = None,
    workspace: Workspace = None,
    cluster: Clusters = None,
    team: Teams = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="Look at schedules as of this time (default: now).", metavar="TIME"),
    ] = None,
    finished: Annotated[
        Path | None,
        typer.Option(
            "--finished",
            help="Skip jobs whose last run is not over; FILE holds the output of: kubectl get trainjobs -A -o json.",
            metavar="FILE",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Raise run in the specs of jobs that are due.")
    ] = False,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
    engine: EngineName = "auto",
    jobs: Jobs = 0,
) -> None:
    """Show which scheduled jobs are due where commits start runs, and raise their run numbers."""
    from gangplan.commands.common import request
    from gangplan.commands.repeat import repeat as command

    asked = request(workspace, cluster, team, specs, engine, jobs)
    raise typer.Exit(command(asked, at, finished, format, write))
