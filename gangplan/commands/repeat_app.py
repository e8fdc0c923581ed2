"""`gangplan repeat`: its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands.flags import (
    ClustersFlag,
    EngineFlag,
    JobsFlag,
    SpecsArgument,
    TeamsFlag,
    WorkspaceFlag,
)

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def repeat(
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
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
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Show which scheduled jobs are due where commits start runs, and raise their run numbers."""
    from gangplan.commands.common import build_request
    from gangplan.commands.repeat import run_repeat_command as command

    asked = build_request(workspace, cluster, team, specs, engine, jobs)
    raise typer.Exit(command(asked, at, finished, format, write))
