"""`gangplan retire`: its flags."""

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
def retire(
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    superseded: Annotated[
        bool,
        typer.Option(
            "--superseded", help="Retire runs that a newer run of their job replaced in Git (default)."
        ),
    ] = False,
    finished: Annotated[
        Path | None,
        typer.Option(
            "--finished",
            help="Retire runs that have ended; FILE holds the output of: kubectl get trainjobs -A -o json.",
            metavar="FILE",
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            help="Retire runs that came to Git longer ago than this, such as 30d;"
            " narrows other selections, and keeps records of younger runs.",
            metavar="DURATION",
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the changes into the specs.")] = False,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
    today: Annotated[
        str | None,
        typer.Option(
            "--today", help="Count the age of runs up to this day (default: today).", metavar="YYYY-MM-DD"
        ),
    ] = None,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Prepare the change that ends runs that are over, or removes their records."""
    from gangplan.commands.common import build_request
    from gangplan.commands.retire import run_retire_command as command

    asked = build_request(workspace, cluster, team, specs, engine, jobs)
    raise typer.Exit(command(asked, superseded, finished, older_than, today, format, write))
