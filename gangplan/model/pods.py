"""What pods of a run have in addition to image and command: variables, mounts, scratch space and target
pools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field as kept
from decimal import Decimal
from typing import Literal

from gangplan.model.quantity import Quantity
from gangplan.model.trial import Origins, PartOrigins
from gangplan.records import dataclass

# The variable with the name of a dated run, to which CHECKPOINT_DIR and NO_PROXY refer (resolve/schedule.py).
RUN_NAME_VARIABLE = "GANGPLAN_RUN"
# The variable with the folder of a worker's scratch.
SCRATCH_VARIABLE = "SCRATCH_DIR"
# What `checkpoint` tells the program; a spec without it may set them itself.
CHECKPOINT_ENV = ("CHECKPOINT_DIR", "CHECKPOINT_INTERVAL", "CHECKPOINT_RESUME")
# What the end of a run takes in addition to its ranks' grace period: finding the ranks, and their last lines
# of output. In seconds.
GRACE_MARGIN_S = 15


def build_origin_key(variable: str) -> str:
    """Return the key in `Job.origins` of a variable that is set by a file in the folder of the spec."""
    return f"env.{variable}"


@dataclass(frozen=True, slots=True)
class EnvVar:
    """One environment variable: a value, a key of a secret or ConfigMap, or a field or amount of the pod."""

    name: str
    value: str = ""
    secret: str = ""
    key: str = ""
    config_map: str = ""
    field: str = ""
    resource: str = ""
    is_expanded: bool = False  # the value refers to variables before it, as $(NAME)
    is_share: bool = False  # of a worker's cores: other pods and containers have their own
    origins: Origins = kept(default=(), compare=False, repr=False)

    @property
    def is_told_apart(self) -> bool:
        """Whether pods differ in its value, so that SSH sessions on other pods must read it from their
        pod."""
        return self.is_own and self.name != RUN_NAME_VARIABLE

    @property
    def is_plain(self) -> bool:
        """Whether its value is known before the run."""
        return not (self.secret or self.config_map or self.is_own)

    @property
    def is_own(self) -> bool:
        """Whether each pod has a value of its own."""
        return bool(self.field or self.resource)


def sort_variables(variables: Iterable[EnvVar]) -> tuple[EnvVar, ...]:
    """Sort variables by name, after that of the run's name: a variable can refer only to those before it."""
    return tuple(sorted(variables, key=lambda one: (one.name != RUN_NAME_VARIABLE, one.name)))


@dataclass(frozen=True, slots=True)
class ScratchSpace:
    """Space for temporary files in a worker, on `disk`, in `memory` or `local`, which needs a storage
    class."""

    size: Quantity
    medium: Literal["disk", "memory", "local"]
    path: str
    storage_class: str = ""


# The CSI driver of Cloud Storage FUSE on GKE, and the annotation that lets GKE add its container to a pod.
GCSFUSE = "gcsfuse.csi.storage.gke.io"
GCSFUSE_ANNOTATION = ("gke-gcsfuse/volumes", "true")


@dataclass(frozen=True, slots=True)
class InlineVolume:
    """A volume that a CSI driver creates for a pod: a bucket (`connection`), or one of the cluster's
    `volumes`."""

    connection: str
    driver: str
    attributes: tuple[tuple[str, str], ...]
    name: str = ""
    secret: str = ""
    fs_type: str = ""


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim that is created for a pod and deleted with it, from the cluster's `volumes`."""

    name: str
    storage_class: str
    access_mode: str
    size: Quantity


@dataclass(frozen=True, slots=True)
class Mount:
    """A claim, a secret, a ConfigMap, a bucket, scratch space or a volume of the cluster; exactly one is set.

    `single`: only one node or pod at a time can mount it, so it goes to pods with ranks, not to a launcher
    without any.
    """

    volume: str
    path: str
    claim: str = ""
    secret: str = ""
    config_map: str = ""
    read_only: bool = False
    single: bool = False
    scratch: ScratchSpace | None = None
    inline: InlineVolume | None = None
    own_claim: PodClaim | None = None
    file: str = ""  # of a ConfigMap with files of the spec: the spec's name for it
    key: str = ""  # the only key of it that is mounted
    origins: PartOrigins = kept(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """What messages call the mounted volume."""
        if self.inline:
            return self.inline.connection or self.inline.name
        if self.own_claim:
            return self.own_claim.name
        return self.file or self.claim or self.secret or self.config_map or "scratch"


@dataclass(frozen=True, slots=True)
class SpecFolderFile:
    """A file in the folder of the spec: its key in the run's ConfigMap, its path in the workspace, its
    bytes."""

    key: str
    source: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ElasticLimits:
    """The numbers of workers that a run may continue with, and how often its ranks are restarted in place."""

    least: int
    most: int
    restarts: int


@dataclass(frozen=True, slots=True)
class DebugHold:
    """How long the pods of a failed run are kept: the last day, and its end in seconds since 1970 (UTC)."""

    until: str
    end_s: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another job in whose topology domain workers prefer to be, by node label, and the weight of this
    preference."""

    job: str
    key: str
    weight: int


@dataclass(frozen=True, slots=True)
class RetryExitCodes:
    """Exit codes after which a program is retried (empty: after all others), and those after which it is
    not."""

    retry: tuple[int, ...] = ()
    fail: tuple[int, ...] = ()

    @property
    def is_set(self) -> bool:
        """Whether the spec sets any code."""
        return bool(self.retry or self.fail)

    def is_final(self, code: int) -> bool:
        """Return whether the program is not retried after this code."""
        return code in self.fail or (bool(self.retry) and code not in self.retry)


@dataclass(frozen=True, slots=True)
class SideContainer:
    """A container next to the program. With `is_sidecar` it runs as long as the program does, else before it.

    Without `argv` the image starts its own command. `env` are variables in addition to those of the job.
    `index` is its place in `setup` or `sidecars`; with `is_own` it starts a command in the job's image, which
    has a shell.
    """

    name: str
    image: str
    argv: tuple[str, ...]
    env: tuple[EnvVar, ...]
    cpu: Quantity
    memory: Quantity
    is_sidecar: bool
    index: int
    is_own: bool

    @property
    def place(self) -> tuple[str | int, ...]:
        """The path of the container in the spec."""
        return "sidecars" if self.is_sidecar else "setup", self.index


def compute_pod_resource_need(program: Quantity, containers: Iterable[tuple[Quantity, bool]]) -> Quantity:
    """Return what a pod needs of a resource: the program and all sidecars, or the largest need before it.

    `containers` are those that start before the program, in order, each with whether it is a sidecar. A setup
    step runs together with the sidecars before it (KEP-753; component-helpers v0.34, resource/helpers.go).
    """
    total = program
    beside: Quantity | None = None
    most: list[Quantity] = []
    for amount, is_sidecar in containers:
        if is_sidecar:
            total = total + amount
            beside = amount if beside is None else beside + amount
        else:
            most.append(amount if beside is None else amount + beside)
    return max((total, *most))


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration; an empty value means the operator Exists."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class TargetPool:
    """Where pods go: node selector and tolerations, and what a node there offers.

    Prices are for one GPU and one CPU core per hour, in the currency of the platform; None if they are not
    stated. `gbps` is the network bandwidth of a node in Gbit/s.
    """

    name: str
    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]
    gpu: str = ""  # the resource that counts its GPUs
    per_gpu_hour: Decimal | None = None
    per_cpu_hour: Decimal | None = None
    gbps: int | None = None


@dataclass(frozen=True, slots=True)
class RunSchedule:
    """When runs start, in the zone's time, and how many finished runs are kept.

    `client` is the image with kubectl, by digest; empty if commits start the runs. `uid` and `gid` are those
    of its user. Each run waits for the run with the same start of each job that it `follows`.
    """

    cron: str
    time_zone: str
    starting_deadline_s: int
    keep: int
    concurrency: str = "forbid"
    client: str = ""
    uid: int = 0
    gid: int = 0
    follows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AwaitedJob:
    """A job or sweep that a run waits for: its name, its file, and its cluster."""

    name: str
    file: str
    cluster: str


# Variables of a job that registers a model, and the fields of `model` that they contain.
MODEL_ENV = {"GANGPLAN_MODEL_NAME": "name", "GANGPLAN_MODEL_VERSION": "version"}


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model that a job registers."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """What a run waits for, and what creates the run afterwards.

    `engine` is job, tekton or kfp. `client` is the image with kubectl, by digest; `uid` and `gid` are those
    of its user.
    """

    jobs: tuple[AwaitedJob, ...]
    engine: str
    client: str
    uid: int
    gid: int
