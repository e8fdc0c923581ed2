"""A job as resolved for one cluster: every default applied, every name looked up, nothing left to guess."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from gangplan.findings import Location
from gangplan.model.crds import NO_CRDS, CrdFiles
from gangplan.model.quantity import Quantity
from gangplan.model.version import Version

Framework = Literal["mpi", "torch", "horovod", "deepspeed"]
Family = Literal["OpenMPI", "IntelMPI", "MPICH"]
Posture = Literal["default", "restricted", "isolated"]
Gang = Literal["kueue", "volcano", "coscheduling", "none"]

# A stand-in for the hash at the end of a run's name: of its length, legal wherever that is, replaced once the
# content is known. It must not be anything that a user writes: `checkpoint-00000000` in an environment stays.
PLACEHOLDER = "zq7xk0vj"
HASH_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a resolved value came from: a layer (spec, profile, team, cluster, built-in) and its place."""

    layer: str
    where: Location | None = None


@dataclass(frozen=True, slots=True)
class DnsService:
    """The DNS pods of a cluster, selected as NetworkPolicy selects: namespace, pod labels, pod ports.

    `addresses` are ranges that answer on port 53 without being pods that a policy could select.
    """

    namespace: str
    labels: tuple[tuple[str, str], ...]
    ports: tuple[int, ...]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Platform:
    """The facts of one cluster that decide how objects are spelled.

    `gang` is what starts all pods of a run together; `kueue` is None unless that is Kueue. `start_wait_s` is
    how long a run may take until all its pods are ready. `hands_on` tells that runs go to worker clusters.
    `runtime_classes` are the RuntimeClasses that exist; None where nobody has said which.
    """

    cluster: str
    environment: str
    region: str
    kubernetes: Version
    trainer: Version
    jobset: Version
    kueue: Version | None
    openshift: Version | None
    domain: str
    dns: DnsService
    gang: Gang = "kueue"
    mpi_operator: Version | None = None
    start_wait_s: int = 1800
    hands_on: bool = False
    runtime_classes: tuple[str, ...] | None = None
    currency: str = "USD"
    crds: CrdFiles = NO_CRDS

    @property
    def has_pod_group(self) -> bool:
        """Whether Trainer makes a PodGroup, which a scheduler of its own starts as one."""
        return self.gang in ("volcano", "coscheduling")


@dataclass(frozen=True, slots=True)
class Ssh:
    """The SSH server of an image."""

    server: str
    config: str
    port: int
    keys: str


@dataclass(frozen=True, slots=True)
class MpiBuild:
    """The MPI of an image. `major` decides the environment names (Open MPI 4 and 5 differ)."""

    family: Family
    major: int
    version: str
    setup: str | None


@dataclass(frozen=True, slots=True)
class PulledImage:
    """An image as this cluster pulls it."""

    name: str
    reference: str
    framework: Framework
    mpi: MpiBuild | None
    ssh: Ssh
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Resources:
    """Requests, equal to limits: CPU, memory, and extended resources by name."""

    cpu: Quantity
    memory: Quantity
    devices: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class EnvVar:
    """One environment variable: a value, or a key of a secret."""

    name: str
    value: str = ""
    secret: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Mount:
    """A claim or a secret shown as files. Exactly one of `claim` and `secret` is set.

    `single`: one node or pod at a time can mount it, so it goes to the only worker and not to the launcher.
    """

    volume: str
    path: str
    claim: str = ""
    secret: str = ""
    read_only: bool = False
    single: bool = False


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
class Fabric:
    """The RDMA network of a worker, empty where it has none.

    `resources` are its devices as the pool calls them; `networks` are attached in this order, one by one also
    where a name repeats; `interfaces` are names inside pods, `hcas` cards by name and port (`mlx5_0:2`).
    """

    resources: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    hcas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Egress:
    """One place outside the run: an address range without some parts, and TCP ports."""

    name: str
    cidr: str
    excluding: tuple[str, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One job on one cluster. Times are seconds; resources are per worker (or per launcher)."""

    name: str
    team: str
    namespace: str
    source: str
    description: str
    platform: Platform
    image: PulledImage
    command: tuple[str, ...]
    workers: int
    slots: int
    gpus: int
    resources: Resources
    launcher: Resources
    launcher_runs_ranks: bool
    worker_pool: TargetPool
    launcher_pool: TargetPool
    env: tuple[EnvVar, ...]
    mounts: tuple[Mount, ...]
    posture: Posture
    egress: tuple[Egress, ...]
    transport: str
    fabric: Fabric
    mpi_flags: tuple[str, ...]
    bind_to: str
    map_by: str
    topology: tuple[str, str] | None
    spread: str
    queue: str
    priority: str
    timeout_s: int
    grace_s: int
    retries: int
    labels: tuple[tuple[str, str], ...]
    cost_centre: str
    service_account: str
    spec_hash: str
    run: int
    is_archived: bool
    waived: tuple[str, ...] = ()  # policies that a server must not hold against it
    regimes: tuple[str, ...] = ()
    residency: str = ""
    datasets: tuple[str, ...] = ()  # of a job with a regime or a residency
    data_regions: tuple[tuple[str, str], ...] = ()
    is_extended: bool = False  # whether it may take longer than a plain run
    pools: tuple[str, ...] = ()  # those of the team where a worker fits, as they are preferred
    origins: dict[str, Origin] = field(default_factory=dict, compare=False, repr=False)

    @property
    def uses_mpi(self) -> bool:
        """Whether ranks are started by an MPI launcher (torch is not)."""
        return self.image.framework != "torch"

    def mounts_of(self, role: str) -> tuple[Mount, ...]:
        """What the pods of a role mount: without ranks a launcher leaves alone what one pod can hold."""
        if role == "launcher" and not self.launcher_runs_ranks:
            return tuple(mount for mount in self.mounts if not mount.single)
        return self.mounts

    @property
    def ranks(self) -> int:
        """Workers times slots."""
        return self.workers * self.slots
