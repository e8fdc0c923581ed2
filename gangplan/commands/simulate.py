"""`gangplan simulate`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from gangplan.commands.common import exit_code, print_findings
from gangplan.errors import Exit, UserError
from gangplan.kueue.model import Workload
from gangplan.pipeline import worker
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.standing import built_world
from gangplan.report.simulate import simulate_document, simulate_text
from gangplan.resolve.platform import resolve_platform
from gangplan.simulate import run_of, simulate
from gangplan.simulate.day import (
    ARRIVALS_HELP,
    DURATIONS_HELP,
    arrivals_of,
    check_used,
    duration_of,
    read_lines,
)
from gangplan.simulate.outcome import SimulationOutcome, outcome_of
from gangplan.source import load_objects
from gangplan.validate.kueue.members import setup_of
from gangplan.validate.world import World
from gangplan.workspace import Workspace, load_workspace, nearest


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """Files and the seed of `gangplan simulate`."""

    durations: Path | None
    arrivals: Path | None
    seed: int
    format: str


def run_simulation(request: Request, options: SimulateOptions) -> Exit:
    """Print what would come of the runs of a cluster."""
    if options.format not in ("text", "json"):
        raise UserError(f"there is no format '{options.format}'", "Formats: text, json.")
    workspace = load_workspace(request.root)
    cluster = _cluster(workspace, request)
    result = preview(request, workspace)
    if result.has_errors:
        print_findings(result.findings)
        return exit_code(result.findings)
    world = built_world(request, cluster, result)
    runs, never = _runs(world, result, options)
    if not runs and not never:
        raise UserError(f"nothing to simulate: no run of {cluster} waits in a queue of Kueue")
    setup = setup_of(world)
    engine = simulate(setup, runs)
    outcome = outcome_of(engine, runs)
    walls = _without_borrowing(world, runs)
    if options.format == "json":
        document = simulate_document(cluster, outcome, walls, never, engine.events)
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write(simulate_text(cluster, outcome, walls, never))
    return Exit.CLEAN


def _without_borrowing(world: World, runs: list[Workload]) -> SimulationOutcome | None:
    """The same runs where no team uses what another one leaves idle."""
    setup = setup_of(world)
    if not any(queue.parent for queue in setup.queues):
        return None
    return outcome_of(simulate(setup.without_borrowing(), runs), runs)


def _cluster(workspace: Workspace, request: Request) -> str:
    if len(request.clusters) != 1:
        if len(workspace.clusters) == 1:
            return next(iter(workspace.clusters))
        raise UserError(
            f"a simulation covers one cluster, but there are {len(workspace.clusters)}",
            "Name it with --cluster NAME.",
        )
    name = request.clusters[0]
    if name not in workspace.clusters:
        raise UserError(f"there is no cluster '{name}'", nearest(name, workspace.clusters))
    if resolve_platform(workspace.clusters[name]).kueue is None:
        raise UserError(f"nothing to simulate: Kueue does not run on {name}", "Name another cluster.")
    return name


def _runs(world: World, result: Result, options: SimulateOptions) -> tuple[list[Workload], list[str]]:
    """The runs as often as they arrive, and the jobs that can never be admitted."""
    planned = {f"{run.unit.job.team}/{run.unit.job.name}": run for run in _active(result)}
    durations = read_lines(options.durations, DURATIONS_HELP) if options.durations else {}
    arrivals = read_lines(options.arrivals, ARRIVALS_HELP) if options.arrivals else None
    for lines, path in ((durations, options.durations), (arrivals, options.arrivals)):
        if lines and path:
            check_used(lines, list(planned), path)
    runs, never = [], []
    for name, one in sorted(planned.items()):
        job = one.unit.job
        bodies = list(load_objects(result.texts[one.path]))
        run = run_of(world, bodies, name, duration=duration_of(durations, name, job.timeout_s), team=job.team)
        if run is None or run.is_hopeless:
            never.append(name)
        if run is None:
            continue
        for number, arrival in enumerate(arrivals_of(arrivals, name, options.seed)):
            title = name if not number else f"{name}#{number + 1}"
            runs.append(replace(run, name=title, arrival=arrival))
    return sorted(runs, key=lambda run: (run.arrival, run.name)), never


def _active(result: Result) -> list[worker.PlannedRun]:
    return [run for run in result.runs if not run.unit.job.is_archived]
