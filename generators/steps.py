"""Steps of a run before its workers: replicated jobs of one pod, each started once the last is complete."""

from __future__ import annotations

from gangplan.generators.beside import BuiltRole, pod_annotations, pod_labels, text_of
from gangplan.generators.common import literal
from gangplan.model.job import Role
from gangplan.plan import Unit
from gangplan.plan.environment import step_env
from gangplan.plan.steps import step_argv


def steps_of(unit: Unit) -> list[BuiltRole]:
    """Return the pods of the steps, in their order."""
    return [_step(unit, one) for one in unit.job.steps]


def _step(unit: Unit, step: Role) -> BuiltRole:
    """Return the pod of a step, whose shell passes SIGTERM on to the step's program or to the fetcher."""
    assert step.step is not None
    return BuiltRole(
        step.name,
        step.workers,
        step.image,
        step.resources,
        step.pool,
        pod_labels(unit, step.name),
        pod_annotations(unit.job, step.name),
        step_env(unit.job, step),
        ["/bin/sh", "-c", text_of("launch/beside.sh.j2", {}), "gangplan-step"],
        [literal(word) for word in step_argv(step)],
        step.step.timeout_s,
    )
