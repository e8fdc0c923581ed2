"""`gangplan simulate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gangplan.commands.absent import build_missing_cluster_error
from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.errors import Exit, UserError
from gangplan.kueue.model import KueueWorkload
from gangplan.objects import Body
from gangplan.pipeline import worker
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.standing import build_previewed_world
from gangplan.records import dataclass
from gangplan.report.simulate import build_simulation_json, render_simulation_text
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.simulate import read_workload, simulate_runs
from gangplan.simulate.day import (
    ARRIVALS_HELP,
    DURATIONS_HELP,
    JobLines,
    check_simulation_lines_match_jobs,
    choose_line_name,
    read_lines_of_simulated_day,
    simulated_arrivals_of,
    simulated_duration_of,
)
from gangplan.simulate.outcome import SimulationOutcome, compute_simulation_outcome
from gangplan.source import load_objects
from gangplan.validate.kueue.members import read_quota_setup_of_cluster
from gangplan.validate.world import World
from gangplan.workspace import Workspace, load_workspace

# Lines of a file: from a job, or a pattern, to its value.
Lines = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The files and the seed of `gangplan simulate`, and its format."""

    durations: Path | None
    arrivals: Path | None
    seed: int
    format: str


def run_simulate_command(request: Request, options: SimulateOptions) -> Exit:
    """Print the outcome of a simulation of a cluster's runs.

    Raises UserError for flags, and if there is nothing to simulate.
    """
    if options.format not in ("text", "json"):
        raise UserError(f"there is no format '{options.format}'", "Formats: text, json.")
    workspace = load_workspace(request.root)
    cluster = _choose_simulated_cluster(workspace, request)
    result = preview_render(replace(request, is_brief=True), workspace)
    if result.has_errors:
        print_findings_to_stderr(result.findings)
        return choose_exit_code(result.findings)
    world = build_previewed_world(request, cluster, result)
    runs, never = build_queued_runs_for_simulation(
        world, result, *_read_durations_and_arrivals_from_flags(result, options), options.seed
    )
    if not runs and not never:
        raise UserError(f"nothing to simulate: no run of {cluster} waits in a queue of Kueue")
    setup = read_quota_setup_of_cluster(world)
    engine = simulate_runs(setup, runs)
    outcome = compute_simulation_outcome(engine, runs)
    walls = _simulate_without_borrowing(world, runs)
    if options.format == "json":
        document = build_simulation_json(cluster, outcome, walls, never, engine.events)
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write(render_simulation_text(cluster, outcome, walls, never))
    return Exit.CLEAN


def _simulate_without_borrowing(world: World, runs: list[KueueWorkload]) -> SimulationOutcome | None:
    """Simulate the same runs without borrowing; None for queues without a cohort."""
    setup = read_quota_setup_of_cluster(world)
    if not any(queue.parent for queue in setup.queues):
        return None
    return compute_simulation_outcome(simulate_runs(setup.without_borrowing(), runs), runs)


def _choose_simulated_cluster(workspace: Workspace, request: Request) -> str:
    if len(request.clusters) != 1:
        if len(workspace.clusters) == 1:
            return next(iter(workspace.clusters))
        raise UserError(
            f"a simulation covers one cluster, but there are {len(workspace.clusters)}",
            "Name it with --cluster NAME.",
        )
    name = request.clusters[0]
    if name not in workspace.clusters:
        raise build_missing_cluster_error(name, workspace)
    if resolve_platform_of_cluster_file(workspace.clusters[name]).kueue is None:
        raise UserError(f"nothing to simulate: Kueue does not run on {name}", "Name another cluster.")
    return name


def _read_durations_and_arrivals_from_flags(
    result: Result, options: SimulateOptions
) -> tuple[Lines, Lines | None]:
    """Return the durations and arrivals in the files. Raises UserError for jobs that do not exist."""
    active = [run.unit.job for run in _list_active_runs(result)]
    names = sorted({f"{job.team}/{job.trial.sweep}" for job in active if job.trial})
    names += [f"{job.team}/{job.name}" for job in active]
    durations = read_lines_of_simulated_day(options.durations, DURATIONS_HELP) if options.durations else {}
    arrivals = read_lines_of_simulated_day(options.arrivals, ARRIVALS_HELP) if options.arrivals else None
    for lines in (durations, arrivals):
        if isinstance(lines, JobLines):
            check_simulation_lines_match_jobs(lines, names)
    return durations, arrivals


def build_queued_runs_for_simulation(
    world: World, result: Result, durations: Lines, arrivals: Lines | None = None, seed: int = 0
) -> tuple[list[KueueWorkload], list[str]]:
    """Return the runs, as often as they arrive, and the jobs that can never be admitted."""
    planned = {f"{run.unit.job.team}/{run.unit.job.name}": run for run in _list_active_runs(result)}
    planned_at = {one.path: one for one in result.runs}
    asked: dict[str, KueueWorkload | None] = {}  # by file; trials that are alike ask for the same
    runs, never = [], []
    later = _compute_arrival_delays(planned, durations)
    for name, one in sorted(planned.items()):
        job = one.unit.job
        known = choose_line_name(durations, name, f"{job.team}/{job.trial.sweep}") if job.trial else name
        lasts = simulated_duration_of(durations, known, job.timeout_s)
        path = one.alike or one.path
        if path not in asked:
            asked[path] = read_workload(
                world, _load_run_objects_for_simulate_command(result, planned_at[path]), name, team=job.team
            )
        run = asked[path]
        if run is None or run.is_hopeless:
            never.append(name)
        if run is None:
            continue
        comes = choose_line_name(arrivals, name, f"{job.team}/{job.trial.sweep}") if job.trial else name
        for number, arrival in enumerate(simulated_arrivals_of(arrivals, comes, seed)):
            title = name if not number else f"{name}#{number + 1}"
            came = arrival + later.get(name, 0.0)
            runs.append(replace(run, name=title, duration=lasts, arrival=came))
    return sorted(runs, key=lambda run: (run.arrival, run.name)), never


def _load_run_objects_for_simulate_command(result: Result, run: worker.PlannedRun) -> list[Body]:
    """Return the objects of a run, also of one that a schedule or an earlier run creates from a template."""
    from gangplan.generators.schedules import unwrap_scheduled_run

    return unwrap_scheduled_run(load_objects(result.texts[run.path]))


def _compute_arrival_delays(planned: Mapping[str, worker.PlannedRun], durations: Lines) -> dict[str, float]:
    """Return how much later runs arrive that come after others; few workspaces have any."""
    if not any(one.unit.job.after for one in planned.values()):
        return {}
    from gangplan.simulate.after import compute_simulated_arrival_offsets

    jobs = {name: one.unit.job for name, one in planned.items()}
    earlier = {name: {one.file for one in job.after.jobs} for name, job in jobs.items() if job.after}
    after = {
        name: [other for other, job in jobs.items() if job.source in files] for name, files in earlier.items()
    }
    lasts = {name: float(simulated_duration_of(durations, name, job.timeout_s)) for name, job in jobs.items()}
    return compute_simulated_arrival_offsets(after, lasts)


def _list_active_runs(result: Result) -> list[worker.PlannedRun]:
    return [run for run in result.runs if run.unit.job.is_active]
