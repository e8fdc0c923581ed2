"""Names of the runs that a run waits for (`after`), found by building those runs again.

A run's name is a hash of what the run is, so it is known only once the run is built. Nothing of it is kept
between commands, because the result of a spec with `after` does not follow from its own bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from gangplan.generators import generate_run_objects
from gangplan.generators.after import wrap_waiting_run
from gangplan.objects import Body, dump
from gangplan.pipeline.kept_runs import name_run
from gangplan.pipeline.scope import WorkScope
from gangplan.pipeline.worker import TaskResult, WorkerState, build_groups
from gangplan.plan import RunPlan
from gangplan.workspace import Spec, SpecFile

Plan = Callable[[WorkerState, SpecFile, TaskResult], Iterable[tuple[str, RunPlan]]]
PlanSpec = Callable[[WorkerState, Spec, TaskResult], Iterable[tuple[str, RunPlan]]]


class RunPlanner(NamedTuple):
    """The functions that plan the runs of a spec file and of a trial (runs.py)."""

    plan: Plan
    plan_spec: PlanSpec


def build_waiting_run(
    worker: WorkerState, unit: RunPlan, bodies: Sequence[Body], planner: RunPlanner
) -> list[Body]:
    """Return the objects of a run as they are in Git while the runs that it waits for are not complete."""
    assert unit.job.after is not None
    names = {
        one.name: runs_of(worker, SpecFile(one.file, unit.job.team), one.cluster, planner)
        for one in unit.job.after.jobs
    }
    return wrap_waiting_run(bodies, names)


def runs_of(worker: WorkerState, file: SpecFile, cluster: str, planner: RunPlanner) -> list[str]:
    """Return the runs that a spec file describes on a cluster: one, or for a sweep those of its active
    trials.

    Empty where the file has errors, which are reported with that file.
    """
    key = (file.file, cluster)
    if key not in worker.names:
        worker.names[key] = _runs_of(worker, file, cluster, planner)
    return worker.names[key]


def _runs_of(worker: WorkerState, file: SpecFile, cluster: str, planner: RunPlanner) -> list[str]:
    options = replace(worker.options, scope=WorkScope(clusters=(cluster,)), stage=None)
    apart, unheard = replace(worker, options=options), TaskResult(file.file)
    found: list[str] = []

    def render(_: WorkerState, there: str, units: list[tuple[RunPlan, TaskResult]]) -> None:
        found.extend(_compute_run_names(apart, there, [unit for unit, _ in units if unit.job.is_active]))

    if file.file in worker.workspace.sweeps:
        from gangplan.pipeline.sweeps import expand_sweep  # few workspaces have sweeps

        expand_sweep(apart, file, unheard, planner.plan_spec, render)
        return found
    units = [unit for there, unit in planner.plan(apart, file, unheard) if there == cluster]
    return _compute_run_names(apart, cluster, units)


def _compute_run_names(worker: WorkerState, cluster: str, units: Sequence[RunPlan]) -> list[str]:
    options = worker.options
    groups = [generate_run_objects(unit, worker.moulds.objects_of) for unit in units]
    built = build_groups(worker, cluster, groups, [TaskResult() for _ in groups])
    return [
        name_run(worker.earlier, cluster, unit, bodies, [dump(body) for body in bodies], options.keep_runs)[0]
        for unit, bodies in zip(units, built, strict=True)
    ]
