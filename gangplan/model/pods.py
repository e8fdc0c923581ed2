"""What pods of a run have beside image and command: variables, mounts, scratch; and where they go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field as kept
from decimal import Decimal
from typing import Literal

from gangplan.model.quantity import Quantity
from gangplan.model.trial import Origins, PartOrigins
from gangplan.records import dataclass

# What pods of dated runs read the name of their run from, which NO_PROXY refers to (resolve/schedule.py).
RUN_NAME = "GANGPLAN_RUN"
# What the end of a run takes beside the time that its ranks have: finding them, and their last lines.
GRACE_MARGIN_S = 15


def origin_of(variable: str) -> str:
    """The name of a variable's origin (`Job.origins`), where a file beside the spec sets it."""
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
    origins: Origins = kept(default=(), compare=False, repr=False)

    @property
    def is_told_apart(self) -> bool:
        """Whether sessions on other pods must ask their pod for it, because pods differ in it."""
        return self.is_own and self.name != RUN_NAME

    @property
    def is_plain(self) -> bool:
        """Whether its value is known before the run."""
        return not (self.secret or self.config_map or self.is_own)

    @property
    def is_own(self) -> bool:
        """Whether each pod has a value of its own."""
        return bool(self.field or self.resource)


@dataclass(frozen=True, slots=True)
class Scratch:
    """Room for temporary files in a worker: `disk`, `memory` or `local`, which is of a storage class."""

    size: Quantity
    medium: Literal["disk", "memory", "local"]
    path: str
    storage_class: str = ""


# The CSI driver of Cloud Storage FUSE on GKE, and what lets GKE add its container to a pod.
GCSFUSE = "gcsfuse.csi.storage.gke.io"
GCSFUSE_ANNOTATION = ("gke-gcsfuse/volumes", "true")


@dataclass(frozen=True, slots=True)
class InlineVolume:
    """A volume that a CSI driver makes for a pod: a bucket (`connection`), or of the cluster's `volumes`."""

    connection: str
    driver: str
    attributes: tuple[tuple[str, str], ...]
    name: str = ""
    secret: str = ""
    fs_type: str = ""


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim that is made for a pod and ends with it, of the cluster's `volumes`."""

    name: str
    storage_class: str
    access_mode: str
    size: Quantity


@dataclass(frozen=True, slots=True)
class Mount:
    """A claim, a secret, a ConfigMap, a bucket, scratch or a volume of the cluster; one of them is set.

    `single`: one node or pod at a time can mount it, so it goes where ranks
    run, not to a launcher without any.
    """

    volume: str
    path: str
    claim: str = ""
    secret: str = ""
    config_map: str = ""
    read_only: bool = False
    single: bool = False
    scratch: Scratch | None = None
    inline: InlineVolume | None = None
    own_claim: PodClaim | None = None
    file: str = ""  # of a ConfigMap that holds files beside the spec, which the spec calls so
    key: str = ""  # its key there, of which alone the mount consists
    origins: PartOrigins = kept(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """What is mounted, as messages call it."""
        if self.inline:
            return self.inline.connection or self.inline.name
        if self.own_claim:
            return self.own_claim.name
        return self.file or self.claim or self.secret or self.config_map or "scratch"


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file beside the spec: its key in the ConfigMap of the run, its place in the workspace, its bytes."""

    key: str
    source: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Elastic:
    """How many workers a run may go on with, and how often its ranks are started again in place."""

    least: int
    most: int
    restarts: int


@dataclass(frozen=True, slots=True)
class Debug:
    """Until when the pods of a failed run are kept: the last day, and its end in seconds since 1970 (UTC)."""

    until: str
    end_s: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another job whose pods workers prefer to be in one domain with, by node label, and how much they do."""

    job: str
    key: str
    weight: int


@dataclass(frozen=True, slots=True)
class ExitCodes:
    """Codes with which a program is tried again (none: all others are), and codes with which it is not."""

    retry: tuple[int, ...] = ()
    fail: tuple[int, ...] = ()

    @property
    def is_set(self) -> bool:
        """Whether the spec says anything."""
        return bool(self.retry or self.fail)

    def is_final(self, code: int) -> bool:
        """Whether no other try is made after this code."""
        return code in self.fail or (bool(self.retry) and code not in self.retry)


@dataclass(frozen=True, slots=True)
class PodContainer:
    """A container beside the program. `is_sidecar`: it runs as long as the program does, not before it.

    Without `argv` the image starts its own command. `env` are variables beside those of the job. `index` is
    its place in `setup` or `sidecars`; `is_own` tells that it starts a command in the
    job's image, which has a shell.
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
        """Where it stands in the spec."""
        return "sidecars" if self.is_sidecar else "setup", self.index


def whole_pod(program: Quantity, containers: Iterable[tuple[Quantity, bool]]) -> Quantity:
    """What a pod takes of a resource: the program and all sidecars, or the hungriest moment before it.

    `containers` are those before the program in their order, each with whether it is a sidecar: a step of a
    setup runs beside the sidecars before it (KEP-753; component-helpers v0.34, resource/helpers.go).
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
    """A toleration; an empty value means operator Exists."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class TargetPool:
    """Where pods go: node selector and tolerations, and what a node there offers.

    Prices are of one GPU and one CPU core for an hour, in the currency of the platform; None is not stated.
    `gbps` is the network of a node in Gbit/s.
    """

    name: str
    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]
    gpu: str = ""  # the resource by which its GPUs are counted
    per_gpu_hour: Decimal | None = None
    per_cpu_hour: Decimal | None = None
    gbps: int | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """When runs start, in the zone's time, and how many that are over are kept.

    `client` is the image with kubectl, by digest; empty where commits start runs. `uid` and `gid` are
    those of its user. Each run comes after that of the same start of each job that it `follows`.
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
class Earlier:
    """A job or sweep that a run comes after: its name, its file, and the cluster that it runs on."""

    name: str
    file: str
    cluster: str


# Variables of a job that registers a model, and the fields of `model` that are in them.
MODEL_ENV = {"GANGPLAN_MODEL_NAME": "name", "GANGPLAN_MODEL_VERSION": "version"}


@dataclass(frozen=True, slots=True)
class Registered:
    """A model that a job registers."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class After:
    """What a run comes after, and what creates it then.

    `engine` is job, tekton or kfp. `client` is the image with kubectl, by digest; `uid` and `gid` are those
    of its user.
    """

    jobs: tuple[Earlier, ...]
    engine: str
    client: str
    uid: int
    gid: int
