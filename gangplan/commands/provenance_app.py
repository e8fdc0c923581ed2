"""`gangplan provenance` and `gangplan verify`: their flags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands.flags import (
    ClustersFlag,
    EngineFlag,
    JobsFlag,
    KeepRunsFlag,
    NoCacheFlag,
    WorkspaceFlag,
)

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def provenance(
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Folder for a file per cluster (default: -, a line each).", metavar="DIR|-"
        ),
    ] = "-",
    builder: Annotated[
        str | None,
        typer.Option("--builder", help="URI of the CI that runs this, as SLSA's builder.id.", metavar="URI"),
    ] = None,
    keep_runs: KeepRunsFlag = False,
    no_cache: NoCacheFlag = False,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Print what rendered/ was made from: an in-toto statement per cluster, with digests of files and
    versions."""
    from gangplan.commands.common import build_request
    from gangplan.commands.progress import show_progress_on_terminal
    from gangplan.commands.provenance import run_provenance_command as command
    from gangplan.provenance.statement import DEFAULT_BUILDER

    asked = build_request(workspace, None, None, None, engine, jobs, keep_runs, not no_cache)
    with show_progress_on_terminal() as tick:
        asked = replace(asked, progress=tick)
        raise typer.Exit(command(asked, cluster or (), output, builder or DEFAULT_BUILDER))


@app.command()
def verify(
    statements: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files of gangplan provenance, plain or in signed envelopes (signatures are not checked).",
            metavar="FILE",
        ),
    ] = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    format: Annotated[
        str,
        typer.Option("--format", help="text or json.", metavar="NAME"),
    ] = "text",
    keep_runs: KeepRunsFlag = False,
    no_cache: NoCacheFlag = False,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Render again, and list every difference from rendered/ and from statements."""
    from gangplan.commands.common import build_request
    from gangplan.commands.progress import show_progress_on_terminal
    from gangplan.commands.provenance import run_verify_command as command

    asked = build_request(workspace, None, None, None, engine, jobs, keep_runs, not no_cache)
    with show_progress_on_terminal() as tick:
        asked = replace(asked, progress=tick)
        raise typer.Exit(command(asked, cluster or (), statements or (), format))
