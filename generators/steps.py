"""Steps of a run before its workers: replicated jobs of one pod, each started once the last is complete."""

from __future__ import annotations

from gangplan.generators.beside import BuiltRole, build_pod_annotations, build_pod_labels, render_script_text
from gangplan.generators.common import escape_kubelet_text
from gangplan.model.job import ResolvedRole
from gangplan.plan import RunPlan
from gangplan.plan.environment import build_step_env
from gangplan.plan.steps import build_step_argv


def build_step_roles(unit: RunPlan) -> list[BuiltRole]:
    """Return the pods of the steps, in their order."""
    return [_build_step_role(unit, one) for one in unit.job.steps]


def _build_step_role(unit: RunPlan, step: ResolvedRole) -> BuiltRole:
    """Return the pod of a step, whose shell passes SIGTERM on to the step's program or to the fetcher."""
    assert step.step is not None
    return BuiltRole(
        step.name,
        step.workers,
        step.image,
        step.resources,
        step.pool,
        build_pod_labels(unit, step.name),
        build_pod_annotations(unit.job, step.name),
        build_step_env(unit.job, step),
        ["/bin/sh", "-c", render_script_text("launch/beside.sh.j2", {}), "gangplan-step"],
        [escape_kubelet_text(word) for word in build_step_argv(step)],
        step.step.timeout_s,
    )
