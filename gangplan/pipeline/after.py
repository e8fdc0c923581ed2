"""Names of the runs that a run waits for (`after`), found by building those runs again.

A run's name is a hash of what the run is, so it is known only once the run is built. Nothing of it is kept
between commands, because the result of a spec with `after` does not follow from its own bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from gangplan.generators import generate_run_objects
from gangplan.generators.after import wrap_run_in_waiting_job
from gangplan.objects import Body, dump_object_as_block_yaml
from gangplan.pipeline.kept_runs import name_run_or_keep_earlier_one
from gangplan.pipeline.scope import WorkScope
from gangplan.pipeline.worker import TaskResult, WorkerState, run_overlay_on_object_groups
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
        one.name: find_awaited_run_names(worker, SpecFile(one.file, unit.job.team), one.cluster, planner)
        for one in unit.job.after.jobs
    }
    return wrap_run_in_waiting_job(bodies, names)


def find_awaited_run_names(
    worker: WorkerState, file: SpecFile, cluster: str, planner: RunPlanner
) -> list[str]:
    """Return the runs that a spec file describes on a cluster: one, or for a sweep those of its active
    trials.

    Empty where the file has errors, which are reported with that file.
    """
    key = (file.file, cluster)
    if key not in worker.names:
        worker.names[key] = _compute_awaited_run_names(worker, file, cluster, planner)
    return worker.names[key]


def _compute_awaited_run_names(
    worker: WorkerState, file: SpecFile, cluster: str, planner: RunPlanner
) -> list[str]:
    options = replace(worker.options, scope=WorkScope(clusters=(cluster,)), stage=None)
    apart, unheard = replace(worker, options=options), TaskResult(file.file)
    found: list[str] = []

    def render(_: WorkerState, there: str, units: list[tuple[RunPlan, TaskResult]]) -> None:
        found.extend(_name_awaited_runs(apart, there, [unit for unit, _ in units if unit.job.is_active]))

    if file.file in worker.workspace.sweeps:
        from gangplan.pipeline.sweeps import expand_sweep_into_rendered_trials  # few workspaces have sweeps

        expand_sweep_into_rendered_trials(apart, file, unheard, planner.plan_spec, render)
        return found
    units = [unit for there, unit in planner.plan(apart, file, unheard) if there == cluster]
    return _name_awaited_runs(apart, cluster, units)


def _name_awaited_runs(worker: WorkerState, cluster: str, units: Sequence[RunPlan]) -> list[str]:
    options = worker.options
    groups = [generate_run_objects(unit, worker.moulds.objects_of) for unit in units]
    built = run_overlay_on_object_groups(worker, cluster, groups, [TaskResult() for _ in groups])
    return [
        name_run_or_keep_earlier_one(
            worker.earlier,
            cluster,
            unit,
            bodies,
            [dump_object_as_block_yaml(body) for body in bodies],
            options.keep_runs,
        )[0]
        for unit, bodies in zip(units, built, strict=True)
    ]
