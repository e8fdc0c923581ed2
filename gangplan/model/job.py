"""A job as resolved for one cluster: every default applied, every name looked up, nothing left to guess."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gangplan.findings import Location
from gangplan.model.backend import BACKENDS, DATED_TRAINJOB, Backend, BackendName
from gangplan.model.fabric import NO_ACCESS, Fabric, FabricAccess
from gangplan.model.frameworks import BY_MPI
from gangplan.model.identity import CloudIdentity
from gangplan.model.image import Family as Family
from gangplan.model.image import MpiBuild as MpiBuild
from gangplan.model.image import PulledImage as PulledImage
from gangplan.model.image import Ssh as Ssh
from gangplan.model.platform import DnsService as DnsService
from gangplan.model.platform import Gang as Gang
from gangplan.model.platform import Platform as Platform
from gangplan.model.pods import After, Debug, Neighbour, Registered, whole_pod
from gangplan.model.pods import Elastic as Elastic
from gangplan.model.pods import EnvVar as EnvVar
from gangplan.model.pods import ExitCodes as ExitCodes
from gangplan.model.pods import InlineVolume as InlineVolume
from gangplan.model.pods import Mount as Mount
from gangplan.model.pods import PodClaim as PodClaim
from gangplan.model.pods import PodContainer as PodContainer
from gangplan.model.pods import RunFile as RunFile
from gangplan.model.pods import Schedule as Schedule
from gangplan.model.pods import Scratch as Scratch
from gangplan.model.pods import TargetPool as TargetPool
from gangplan.model.pods import Toleration as Toleration
from gangplan.model.quantity import Quantity
from gangplan.model.trial import FromTemplate
from gangplan.model.trial import Origins as Origins
from gangplan.model.trial import Trial as Trial
from gangplan.model.trial import ValueOrigin as ValueOrigin
from gangplan.records import dataclass

Posture = Literal["default", "restricted", "isolated"]

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
class Resources:
    """Requests, equal to limits: CPU, memory, GPUs and RDMA devices by name, and all else by resource.

    `others` are ephemeral storage, huge pages and further devices, in bytes and pieces.
    """

    cpu: Quantity
    memory: Quantity
    devices: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, Quantity], ...] = ()

    @property
    def amounts(self) -> dict[str, Quantity]:
        """Everything beside CPU and memory, by resource."""
        return {name: Quantity.of(count) for name, count in self.devices} | dict(self.others)


@dataclass(frozen=True, slots=True)
class Step:
    """What makes a pod a step before the workers: its place in `steps`, how long it may take, in seconds.

    One that fetches has a `source` (hf://... or s3://BUCKET/PATH) and the folder that it goes to.
    """

    index: int
    timeout_s: int
    source: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class Role:
    """Pods of another shape beside the workers; without `argv` they run the job's command.

    `env` are variables beside those of the job. With a `step` they come before the workers instead.
    """

    name: str
    workers: int
    image: str
    argv: tuple[str, ...]
    env: tuple[EnvVar, ...]
    resources: Resources
    pool: TargetPool
    step: Step | None = None

    @property
    def place(self) -> tuple[str | int, ...]:
        """Where it stands in the spec."""
        return ("steps", self.step.index) if self.step else ("roles", self.name)


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
    is_stopped: bool = False
    is_kept: bool = False  # as it was rendered, although the platform changed
    retired: tuple[str, ...] = ()  # earlier runs of the job that are over
    waived: tuple[str, ...] = ()  # policies that a server must not hold against it
    regimes: tuple[str, ...] = ()
    residency: str = ""
    datasets: tuple[str, ...] = ()  # the claims and connections that it reads and writes
    data_regions: tuple[tuple[str, str], ...] = ()
    is_extended: bool = False  # whether it may take longer than a plain run
    exit_codes: ExitCodes = ExitCodes()
    elastic: Elastic | None = None  # for torch; `workers` is the most
    debug: Debug | None = None  # None: a failed run's pods go at once
    workdir: str = ""  # empty: the image's own
    identity: CloudIdentity | None = None
    mounts_token: bool = False  # of the service account, for the Kubernetes API
    roles: tuple[Role, ...] = ()
    steps: tuple[Role, ...] = ()  # before the workers, in their order
    near: tuple[Neighbour, ...] = ()
    apart: tuple[str, ...] = ()  # jobs whose pods are on no node of the workers
    files: tuple[RunFile, ...] = ()  # from beside the spec
    containers: tuple[PodContainer, ...] = ()  # beside the program: setup, then sidecars
    made_of: BackendName = "trainjob"
    pools: tuple[str, ...] = ()  # those of the team where a worker fits, as they are preferred
    trial: Trial | None = None  # of a sweep
    template: FromTemplate | None = None  # that it was made from
    schedule: Schedule | None = None  # that starts runs of it
    after: After | None = None  # other runs; Git holds a template of it then
    model: Registered | None = None  # what it registers
    is_dated: bool = False  # a CronJob makes its runs, each named after its start
    origins: dict[str, Origin] = field(default_factory=dict, compare=False, repr=False)
    pulled: dict[str, Origins] = field(
        default_factory=dict, compare=False, repr=False
    )  # references, by image

    @property
    def is_active(self) -> bool:
        """Whether the run is to run: neither stopped nor archived."""
        return not (self.is_archived or self.is_stopped)

    @property
    def backend(self) -> Backend:
        """What the run is made of."""
        return DATED_TRAINJOB if self.is_dated else BACKENDS[self.made_of]

    @property
    def uses_mpi(self) -> bool:
        """Whether ranks are started by a launcher over SSH (torch and what has no launcher are not)."""
        return self.image.framework in BY_MPI

    @property
    def others(self) -> tuple[Role, ...]:
        """All pods beside workers and launcher: steps before them, and other roles."""
        return (*self.steps, *self.roles) if self.steps else self.roles

    def trains(self, role: str) -> bool:
        """Whether pods of a role run ranks: workers, and a launcher that is one of them."""
        return role == "worker" or (role == "launcher" and self.launcher_runs_ranks)

    def mounts_of(self, role: str) -> tuple[Mount, ...]:
        """What the pods of a role mount: without ranks they leave alone what one pod can hold."""
        return self.mounts if self.trains(role) else tuple(one for one in self.mounts if not one.single)

    def access_of(self, role: str) -> FabricAccess:
        """What the pods of a role get of their nodes."""
        return self.fabric.access if self.trains(role) else NO_ACCESS

    def containers_of(self, role: str) -> tuple[PodContainer, ...]:
        """What runs before and beside the program in pods of a role: none where they run no ranks."""
        return self.containers if self.trains(role) else ()

    @property
    def worker_pod(self) -> Resources:
        """What a whole worker asks for: its program, and containers of its fabric and the job around it."""
        fabric, own = self.fabric.access.containers, self.containers
        if not (fabric or own):
            return self.resources
        cpu = [*((one.cpu, one.is_sidecar) for one in fabric), *((one.cpu, one.is_sidecar) for one in own)]
        memory = [(one.memory, one.is_sidecar) for one in fabric]
        memory += [(one.memory, one.is_sidecar) for one in own]
        return Resources(
            whole_pod(self.resources.cpu, cpu),
            whole_pod(self.resources.memory, memory),
            self.resources.devices,
            self.resources.others,
        )

    @property
    def ranks(self) -> int:
        """Workers times slots."""
        return self.workers * self.slots
