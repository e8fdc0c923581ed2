"""An imported job of any kind: roles with pods, ranks, and policies of the whole job, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from gangplan.findings import Location
from gangplan.imports.account import Account, LeafOutcome, SourceNode
from gangplan.imports.pods import SourcePod
from gangplan.imports.trials import Trials
from gangplan.records import dataclass


class SourceError(ValueError):
    """A source that cannot be imported as it is: why, and what helps."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


# How ranks of a source start: mpirun over SSH, torch's environment (torchrun or variables), or one program
# per pod.
StartMethod = Literal["mpi", "torch", "plain"]


@dataclass(frozen=True, slots=True)
class PodRole:
    """Pods of one shape.

    `ranks` is how many processes of the program each of them runs, 0 for one that only starts them; `whole`
    is the node of the whole role if that is more than its pods.
    """

    name: str
    count: int
    pod: SourcePod
    ranks: int = 1
    whole: SourceNode | None = None


@dataclass(frozen=True, slots=True)
class SourceSetting:
    """A value of the whole job, with the field of the source that it comes from."""

    value: str | int
    node: SourceNode


@dataclass(frozen=True, slots=True)
class Hint:
    """What a source says in its own terms about where it runs.

    It is a partition or pool, a GPU model, a machine type of a cloud, the capacity of nodes (spot), or the
    seconds of a grace period.
    gangplan.imports.hints matches it with the clusters.
    """

    kind: Literal["pool", "model", "machine", "capacity", "grace", "node"]
    text: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class SourceLoss:
    """What a source does and its run does not, where no field of a pod says so; `run` is what the run does."""

    area: str
    what: str
    source: str
    run: str | None
    why: str
    help: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class WorkerRange:
    """A range of workers, its place, and how often ranks restart within one try."""

    span: tuple[int, int]
    node: SourceNode
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class SetupStep:
    """What is done once, in one pod, before the workers start.

    `fetches` is `dataset` or `model` for an initializer of Trainer. `settings` are the TrainJob's for it, and
    it may have no pod if its runtime is not known.
    """

    name: str
    node: SourceNode
    pod: SourcePod | None
    fetches: str = ""
    settings: SourceNode | None = None

    def stated(self, name: str) -> SourceNode | None:
        """Return the value of a variable of its pod; None if the pod does not have it."""
        env = self.pod.main.env if self.pod else ()
        return next((one.node["value"] for one in env if one.name == name), None)


# In place of the value of a label: what each pod of a run has as its completion index, and what none has.
BY_INDEX, NOT_IN_RUN = "(index)", "(nowhere)"


@dataclass(frozen=True, slots=True)
class PodNumbers:
    """What the `labels` of pods say in the source: a value, BY_INDEX, or NOT_IN_RUN in a run.

    `exports` are variables that the pods of a run have with another value, and what a shell makes of it.
    """

    pod: SourcePod
    labels: dict[str, str]
    exports: dict[str, str]


@dataclass(slots=True)
class SourceJob:
    """A job of another system.

    `roles` end with the workers; a launcher without ranks comes first. Roles `aside` run something else next
    to the ranks; steps `before` run once and end before them, and `room` is the size of the source's volume
    for what they fetch.

    `settings` are by the field of the spec that they become: name, timeout (seconds), retries, priority,
    slots, workers, description. `new_claims` are claims that the team must gain for fields other than `data`;
    `device_claims` say what the ResourceClaimTemplates of a source ask for, by name.

    `sets` are variables that the source's controller gives its pods, and that no spec needs; `told` explains
    how programs find the same in a run; `renames` are variables with the `count` of workers or the `index` of
    a pod. `hosts` is a pattern of the names of its pods, `first_host` of the one where the others meet.

    `ssh_keys` is the node of the folder of SSH keys, and `default_keys` that of the controller if a source names none.

    `again` is set if the source does not say how ranks start: it reads the source again for the way of the
    image in the catalog. With `starts_ranks`, the system itself starts each rank, without a launcher in the
    command. With `trials`, the job runs once for each setting of parameters. `numbers` are those that the
    source's controller gives the pods of a role, where those of a run are different.
    """

    kind: str
    name: str
    start: StartMethod
    account: Account
    roles: tuple[PodRole, ...]
    settings: dict[str, SourceSetting] = field(default_factory=dict)
    mpi: str = ""
    ssh_keys: SourceNode | None = None
    runs_on_launcher: bool = False
    framework: str = ""
    ranks: int = 0
    sets: frozenset[str] = frozenset()
    values: dict[str, object] = field(default_factory=dict)
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    device_claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    others: tuple[Account, ...] = ()
    aside: tuple[PodRole, ...] = ()
    before: tuple[SetupStep, ...] = ()
    room: str = ""
    told: str = ""
    exit_codes: list[tuple[str, tuple[int, ...], SourceNode]] = field(default_factory=list)
    elastic: WorkerRange | None = None
    questions: list[tuple[SourceNode, str, str]] = field(default_factory=list)
    losses: list[SourceLoss] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    again: Callable[[StartMethod], None] | None = None
    hosts: str = ""
    first_host: str = ""
    starts_ranks: bool = False
    new_claims: dict[str, tuple[dict[str, object], SourceNode]] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    trials: Trials | None = None
    numbers: list[PodNumbers] = field(default_factory=list)
    default_keys: str = ""

    def place(self) -> Location:
        """Return where the source begins."""
        return self.account.where(())

    def entries(self) -> tuple[LeafOutcome, ...]:
        """Return what became of every leaf, of the source and of what came with it."""
        return tuple(entry for account in (self.account, *self.others) for entry in account.entries())

    @property
    def keys_folder(self) -> str:
        """The folder of the SSH keys in its pods; empty without keys."""
        return (self.ssh_keys.text() if self.ssh_keys is not None else "") or self.default_keys

    @property
    def workers(self) -> PodRole:
        """The role that trains."""
        return self.roles[-1]

    @property
    def launcher(self) -> PodRole | None:
        """The pod that starts the ranks, if it is a separate one."""
        return self.roles[0] if len(self.roles) > 1 and self.roles[0].name == "launcher" else None

    @property
    def lead(self) -> PodRole:
        """The pod with the command of the run: the launcher, else workers, else any with a command."""
        named = (one for one in reversed(self.roles) if not one.pod.main.has_entrypoint)
        return self.launcher or next(named, self.workers)
