"""A run as its controller expands it: a TrainJob with its runtime, or an MPIJob, by role, with the place of
each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.model.backend import MPIJOB, RUNTIME, title_of
from gangplan.plan import Unit
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.expand import EXPANDERS, ExpandedPods, MissingRuntimeError, holder_of
from gangplan.validate.jobset import LAUNCHER, WORKER, entries_of, step_of
from gangplan.validate.trainer.runtimes import pod_of
from gangplan.validate.world import BuiltRun, World, templates_of

CONTAINER = "node"
# Replica types of an MPIJob, and the roles that they are here.
MPI_ROLES = {"Launcher": LAUNCHER, "Worker": WORKER}
Place = tuple[int, Path]


@dataclass(frozen=True, slots=True)
class LaidRole:
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
    at: Path
    box: Path
    runtime: int
    template_at: Path
    own: Mapping[str, Place] = field(default_factory=dict)

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
    def pod(self) -> Path:
        """The path of the pod's spec in the runtime."""
        return (*self.template_at, "spec")

    @property
    def job(self) -> Body:
        """The spec of the role's Job."""
        found: Body = self.entry["template"].get("spec") or {}
        return found

    def place(self, name: str) -> Place:
        """Return the place of a field of the container: in the TrainJob, else in the runtime."""
        return self.own.get(name, (self.runtime, (*self.box, name)))


@dataclass(frozen=True, slots=True)
class Laid:
    """A run, the indices of its two objects, and its roles by name.

    For an MPIJob both indices are the same, and only its pods and `job` are filled. `uses_mpi` is whether the
    plan starts ranks by MPI; `present` are the launcher and workers of the plan that exist.
    """

    run: BuiltRun
    unit: Unit
    train_job: int
    runtime: int
    roles: Mapping[str, LaidRole]
    uses_mpi: bool
    present: tuple[LaidRole, ...]

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


def laid_of(world: World, run: BuiltRun) -> Laid | None:
    """Return the run as its controller expands it; None if an object is missing or the runtime is another."""
    made = run.unit.job.backend
    at = {body["kind"]: index for index, body in enumerate(run.bodies)}
    if made.kind not in at or made.holder not in at:
        return None
    job = at[made.kind]
    try:
        index, holder = holder_of(world, run.bodies, job)
    except MissingRuntimeError:
        return None
    if holder is not run.bodies[at[made.holder]]:
        return None  # the rules of a TrainJob report that its runtime is another one
    body, roles = run.bodies[job], {}
    trainer = body["spec"].get("trainer") or {}
    names = {made.role("launcher"): LAUNCHER, made.role("worker"): WORKER}
    for number, one in enumerate(EXPANDERS[made.kind](body, holder, index)):
        name = names.get(one.name, one.name)
        roles[name] = _role(number, one, name, trainer, job)
    uses_mpi = run.unit.job.uses_mpi
    present = tuple(roles[one] for one in ((LAUNCHER, WORKER) if uses_mpi else (WORKER,)) if one in roles)
    return Laid(run, run.unit, job, index, roles, uses_mpi, present)


def _role(number: int, pods: ExpandedPods, name: str, trainer: Body, job: int) -> LaidRole:
    """Return the role of expanded pods, with the fields of the trainer in object `job` applied."""
    place, container = program_of(pods.template)
    own: dict[str, Place] = {}
    if container is not None and trainer and step_of(pods.entry) == "trainer":
        container, own = _with_trainer(container, trainer, job)
    box: Path = (*pods.template_at, "spec", "containers", place)
    return LaidRole(
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


def program_of(template: Body) -> tuple[int, Body | None]:
    """Return the index of the container that runs the program, and the container; (0, None) without one."""
    containers = (template.get("spec") or {}).get("containers") or ()
    return next(((at, one) for at, one in enumerate(containers) if one["name"] == CONTAINER), (0, None))


def generated_pods(laid: Laid) -> dict[str, Body]:
    """Return the generated specs of the pods by role; empty if the generated run is missing."""
    found = (_PODS[body["kind"]](body) for body in laid.run.generated if body["kind"] in _PODS)
    return next(found, {})


def _of_runtime(body: Body) -> dict[str, Body]:
    return {entry["name"]: pod_of(entry) for entry in entries_of(body)}


def _of_mpi_job(body: Body) -> dict[str, Body]:
    found = {at[2]: template["spec"] for at, template in templates_of(body)}
    return {role: found[name] for name, role in MPI_ROLES.items() if name in found}


_PODS: Mapping[str, Callable[[Body], dict[str, Body]]] = {
    RUNTIME: _of_runtime,
    MPIJOB.holder: _of_mpi_job,
}


def _with_trainer(container: Body, trainer: Body, index: int) -> tuple[Body, dict[str, Place]]:
    """Return the container with the fields of the TrainJob's trainer applied, and the places of these fields.

    Source: Trainer, plugins/jobset/builder.go.
    """
    out, own = dict(container), dict[str, Place]()
    for name in ("image", "command", "args"):
        if trainer.get(name):
            out[name] = trainer[name]
            own[name] = (index, ("spec", "trainer", name))
    if trainer.get("env"):
        out["env"] = _merged(container.get("env") or (), trainer["env"])
        own["env"] = (index, ("spec", "trainer", "env"))
    return out, own


def _merged(below: Sequence[Body], above: Sequence[Body]) -> list[Body]:
    variables: dict[str, Any] = {one["name"]: one for one in below}
    variables |= {one["name"]: one for one in above}
    return list(variables.values())
