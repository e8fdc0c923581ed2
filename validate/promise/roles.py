"""A run as its controller expands it: a TrainJob with its runtime, or an MPIJob, by role, with the place of
each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.backend import MPIJOB, RUNTIME_KIND, title_of
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.records import dataclass
from gangplan.validate.expand import (
    EXPANDERS,
    ExpandedPods,
    MissingRuntimeError,
    find_holder_of_pod_templates,
)
from gangplan.validate.jobset import LAUNCHER, WORKER, find_trainjob_step, list_replicated_jobs
from gangplan.validate.trainer.runtimes import find_pod_spec
from gangplan.validate.world import BuiltRun, World, find_pod_templates

PROGRAM_CONTAINER = "node"
# Replica types of an MPIJob, and the roles that they are here.
MPI_ROLES = {"Launcher": LAUNCHER, "Worker": WORKER}
RolePlace = tuple[int, FieldPath]


@dataclass(frozen=True, slots=True)
class ExpandedRole:
    """The pods of one replicated job as the controllers create them.

    `pods` is their number, `template` their template after the TrainJob's own patches, `container` the one
    that runs the program (or None), with the image, command, args and env of the TrainJob. `at` is the path
    of the entry in the runtime, `box` that of the container, `template_at` that of the pods' template. `own`
    has the places of the container's fields that are set in the TrainJob.
    """

    name: str
    index: int
    entry: Body
    pods: int
    template: Body
    container: Body | None
    at: FieldPath
    box: FieldPath
    runtime: int
    template_at: FieldPath
    own: Mapping[str, RolePlace] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name of these pods in messages."""
        return f"the {title_of(self.name)}"

    @property
    def spec(self) -> Body:
        """The pod's spec."""
        found: Body = self.template.get("spec") or {}
        return found

    @property
    def pod(self) -> FieldPath:
        """The path of the pod's spec in the runtime."""
        return (*self.template_at, "spec")

    @property
    def job(self) -> Body:
        """The spec of the role's Job."""
        found: Body = self.entry["template"].get("spec") or {}
        return found

    def place(self, name: str) -> RolePlace:
        """Return the place of a field of the container: in the TrainJob, else in the runtime."""
        return self.own.get(name, (self.runtime, (*self.box, name)))


@dataclass(frozen=True, slots=True)
class ExpandedRun:
    """A run, the indices of its two objects, and its roles by name.

    For an MPIJob both indices are the same, and only its pods and `job` are filled. `uses_mpi` is whether the
    plan starts ranks by MPI; `present` are the launcher and workers of the plan that exist.
    """

    run: BuiltRun
    unit: RunPlan
    train_job: int
    runtime: int
    roles: Mapping[str, ExpandedRole]
    uses_mpi: bool
    present: tuple[ExpandedRole, ...]

    @property
    def job(self) -> Body:
        """The spec of the TrainJob or MPIJob."""
        found: Body = self.run.bodies[self.train_job]["spec"]
        return found

    @property
    def trainer(self) -> Body:
        """The trainer of the TrainJob."""
        found: Body = self.job.get("trainer") or {}
        return found

    @property
    def policy(self) -> Body:
        """The runtime's mlPolicy."""
        found: Body = self.run.bodies[self.runtime]["spec"].get("mlPolicy") or {}
        return found

    @property
    def jobset(self) -> Body:
        """The spec of the JobSet."""
        template = self.run.bodies[self.runtime]["spec"].get("template") or {}
        found: Body = template.get("spec") or {}
        return found


def expand_built_run_into_roles(world: World, run: BuiltRun) -> ExpandedRun | None:
    """Return the run as its controller expands it; None if an object is missing or the runtime is another."""
    made = run.unit.job.backend
    at = {body["kind"]: index for index, body in enumerate(run.bodies)}
    if made.kind not in at or made.holder not in at:
        return None
    job = at[made.kind]
    try:
        index, holder = find_holder_of_pod_templates(world, run.bodies, job)
    except MissingRuntimeError:
        return None
    if holder is not run.bodies[at[made.holder]]:
        return None  # the rules of a TrainJob report that its runtime is another one
    body, roles = run.bodies[job], {}
    trainer = body["spec"].get("trainer") or {}
    names = {made.role("launcher"): LAUNCHER, made.role("worker"): WORKER}
    for number, one in enumerate(EXPANDERS[made.kind](body, holder, index)):
        name = names.get(one.name, one.name)
        roles[name] = _build_role_of_built_pods(number, one, name, trainer, job)
    uses_mpi = run.unit.job.uses_mpi
    present = tuple(roles[one] for one in ((LAUNCHER, WORKER) if uses_mpi else (WORKER,)) if one in roles)
    return ExpandedRun(run, run.unit, job, index, roles, uses_mpi, present)


def _build_role_of_built_pods(
    number: int, pods: ExpandedPods, name: str, trainer: Body, job: int
) -> ExpandedRole:
    """Return the role of expanded pods, with the fields of the trainer in object `job` applied."""
    place, container = find_program_container(pods.template)
    own: dict[str, RolePlace] = {}
    if container is not None and trainer and find_trainjob_step(pods.entry) == "trainer":
        container, own = _apply_trainer_fields(container, trainer, job)
    box: FieldPath = (*pods.template_at, "spec", "containers", place)
    return ExpandedRole(
        name,
        number,
        pods.entry,
        pods.count,
        pods.template,
        container,
        pods.at,
        box,
        pods.index,
        pods.template_at,
        own,
    )


def find_program_container(template: Body) -> tuple[int, Body | None]:
    """Return the index of the container that runs the program, and the container; (0, None) without one."""
    containers = (template.get("spec") or {}).get("containers") or ()
    return next(
        ((at, one) for at, one in enumerate(containers) if one["name"] == PROGRAM_CONTAINER), (0, None)
    )


def find_generated_pods(laid: ExpandedRun) -> dict[str, Body]:
    """Return the generated specs of the pods by role; empty if the generated run is missing."""
    found = (_PODS[body["kind"]](body) for body in laid.run.generated if body["kind"] in _PODS)
    return next(found, {})


def _find_runtime_pod_specs(body: Body) -> dict[str, Body]:
    return {entry["name"]: find_pod_spec(entry) for entry in list_replicated_jobs(body)}


def _find_mpijob_pod_specs(body: Body) -> dict[str, Body]:
    found = {at[2]: template["spec"] for at, template in find_pod_templates(body)}
    return {role: found[name] for name, role in MPI_ROLES.items() if name in found}


_PODS: Mapping[str, Callable[[Body], dict[str, Body]]] = {
    RUNTIME_KIND: _find_runtime_pod_specs,
    MPIJOB.holder: _find_mpijob_pod_specs,
}


def _apply_trainer_fields(container: Body, trainer: Body, index: int) -> tuple[Body, dict[str, RolePlace]]:
    """Return the container with the fields of the TrainJob's trainer applied, and the places of these fields.

    Source: Trainer, plugins/jobset/builder.go.
    """
    out, own = dict(container), dict[str, RolePlace]()
    for name in ("image", "command", "args"):
        if trainer.get(name):
            out[name] = trainer[name]
            own[name] = (index, ("spec", "trainer", name))
    if trainer.get("env"):
        out["env"] = _merge_env_variables(container.get("env") or (), trainer["env"])
        own["env"] = (index, ("spec", "trainer", "env"))
    return out, own


def _merge_env_variables(below: Sequence[Body], above: Sequence[Body]) -> list[Body]:
    variables: dict[str, Any] = {one["name"]: one for one in below}
    variables |= {one["name"]: one for one in above}
    return list(variables.values())
