"""A run as Trainer lays it out: its TrainJob over its runtime, role by role, with the place of each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gangplan.plan import Unit
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.kueue.model import NeverError
from gangplan.validate.kueue.podsets import pod_sets
from gangplan.validate.trainer.runtimes import JOBSET, entries_of, step_of
from gangplan.validate.world import BuiltRun, World

LAUNCHER, WORKER = "launcher", "node"  # replicated jobs, by the names that Trainer wires (plugins/mpi)
CONTAINER = "node"
TITLES = {LAUNCHER: "the launcher", WORKER: "the workers"}
Place = tuple[int, Path]


@dataclass(frozen=True, slots=True)
class LaidRole:
    """The pods of one replicated job as they will be made.

    `pods` is how many, `template` their template after the TrainJob's own patches, `container` the one that
    runs the program (None when there is none), with image, command, args and env of the TrainJob on it.
    `at` is the path of the entry in the runtime. `own` tells which of the container's fields stand in the
    TrainJob, and where.
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
    own: Mapping[str, Place] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """How people call these pods."""
        return TITLES.get(self.name, f"the pods of '{self.name}'")

    @property
    def spec(self) -> Body:
        """The pod's spec."""
        found: Body = self.template.get("spec") or {}
        return found

    @property
    def pod(self) -> Path:
        """Where the pod's spec stands in the runtime."""
        return (*self.at, "template", "spec", "template", "spec")

    @property
    def job(self) -> Body:
        """The spec of the role's Job."""
        found: Body = self.entry["template"].get("spec") or {}
        return found

    def place(self, name: str) -> Place:
        """Where a field of the container stands: in the TrainJob, else in the runtime."""
        return self.own.get(name, (self.runtime, (*self.box, name)))


@dataclass(frozen=True, slots=True)
class Laid:
    """A run, its two objects with their places, and its roles by name."""

    run: BuiltRun
    train_job: int
    runtime: int
    roles: Mapping[str, LaidRole]

    @property
    def unit(self) -> Unit:
        """What was planned."""
        return self.run.unit

    @property
    def job(self) -> Body:
        """The TrainJob's spec."""
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

    @property
    def uses_mpi(self) -> bool:
        """Whether the plan starts ranks by MPI."""
        return self.unit.job.uses_mpi

    def planned(self) -> tuple[LaidRole, ...]:
        """The roles of the plan that are there."""
        names = (LAUNCHER, WORKER) if self.uses_mpi else (WORKER,)
        return tuple(self.roles[name] for name in names if name in self.roles)


def laid_of(world: World, run: BuiltRun) -> Laid | None:
    """The run as it is laid out; None when it has no TrainJob with a runtime of its own."""
    at = {body["kind"]: index for index, body in enumerate(run.bodies)}
    if "TrainJob" not in at or "TrainingRuntime" not in at:
        return None
    try:
        sets = pod_sets(run.bodies, world.standing)
    except NeverError:
        return None  # the rules of a TrainJob tell that its runtime is another one
    index = at["TrainingRuntime"]
    trainer = run.bodies[at["TrainJob"]]["spec"].get("trainer") or {}
    roles = {}
    for number, (entry, pods) in enumerate(zip(entries_of(run.bodies[index]), sets, strict=True)):
        here: Path = (*JOBSET, "replicatedJobs", number)
        containers = pods.template["spec"].get("containers") or []
        place, container = next(
            ((at, one) for at, one in enumerate(containers) if one["name"] == CONTAINER), (0, None)
        )
        box: Path = (*here, "template", "spec", "template", "spec", "containers", place)
        own: dict[str, Place] = {}
        if container is not None and step_of(entry) == "trainer":
            container, own = _with_trainer(container, trainer, at["TrainJob"])
        roles[entry["name"]] = LaidRole(
            entry["name"], number, entry, pods.count, pods.template, container, here, box, index, own
        )
    return Laid(run, at["TrainJob"], index, roles)


def _with_trainer(container: Body, trainer: Body, index: int) -> tuple[Body, dict[str, Place]]:
    """The container with what the TrainJob's trainer puts over it (plugins/jobset/builder.go)."""
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
