"""The flags of `gangplan simulate`."""

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
def simulate(
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    durations: Annotated[
        Path | None,
        typer.Option(
            "--durations", help="How long jobs run (YAML; default: half of their timeout).", metavar="FILE"
        ),
    ] = None,
    arrivals: Annotated[
        Path | None,
        typer.Option("--arrivals", help="When jobs arrive (YAML; default: all at once).", metavar="FILE"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed for random arrivals.", metavar="N")] = 1,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Simulate the queues of a cluster: waits, preemptions and utilisation over time, per team."""
    from gangplan.commands.common import build_request
    from gangplan.commands.simulate import SimulateOptions, run_simulate_command

    raise typer.Exit(
        run_simulate_command(
            build_request(workspace, cluster, team, specs, engine, jobs),
            SimulateOptions(durations, arrivals, seed, format),
        )
    )
