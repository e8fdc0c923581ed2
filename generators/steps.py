"""Steps of a run before its workers: replicated jobs of one pod, each started once the last is complete."""

from __future__ import annotations

from gangplan.generators.beside import (
    BuiltRole,
    generate_pod_annotations,
    generate_pod_labels,
    render_script_text,
)
from gangplan.generators.common import escape_kubelet_variable_references
from gangplan.model.job import ResolvedRole
from gangplan.plan import RunPlan
from gangplan.plan.environment import build_step_env
from gangplan.plan.steps import build_step_argv


def generate_step_roles(unit: RunPlan) -> list[BuiltRole]:
    """Return the pods of the steps, in their order."""
    return [_generate_step_role(unit, one) for one in unit.job.steps]


def _generate_step_role(unit: RunPlan, step: ResolvedRole) -> BuiltRole:
    """Return the pod of a step, whose shell passes SIGTERM on to the step's program or to the fetcher."""
    assert step.step is not None
    return BuiltRole(
        step.name,
        step.workers,
        step.image,
        step.resources,
        step.pool,
        generate_pod_labels(unit, step.name),
        generate_pod_annotations(unit.job, step.name),
        build_step_env(unit.job, step),
        ["/bin/sh", "-c", render_script_text("launch/beside.sh.j2", {}), "gangplan-step"],
        [escape_kubelet_variable_references(word) for word in build_step_argv(step)],
        step.step.timeout_s,
    )
