"""A job as resolved for one cluster: every default is applied and every name is looked up."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gangplan.findings import Location
from gangplan.model.backend import BACKENDS, DATED_TRAINJOB, Backend, BackendName
from gangplan.model.fabric import NO_ACCESS, DeviceClaim, FabricAccess, WorkerFabric
from gangplan.model.frameworks import MPI_FRAMEWORKS
from gangplan.model.identity import CloudIdentity
from gangplan.model.image import ImageSupport
from gangplan.model.image import MpiBuild as MpiBuild
from gangplan.model.image import MpiFamily as MpiFamily
from gangplan.model.image import PulledImage as PulledImage
from gangplan.model.image import SshServer as SshServer
from gangplan.model.platform import DnsService as DnsService
from gangplan.model.platform import GangScheduler as GangScheduler
from gangplan.model.platform import Platform as Platform
from gangplan.model.pods import (
    DebugHold,
    Neighbour,
    RegisteredModel,
    RunDependencies,
    compute_pod_resource_need,
)
from gangplan.model.pods import ElasticLimits as ElasticLimits
from gangplan.model.pods import EnvVar as EnvVar
from gangplan.model.pods import InlineVolume as InlineVolume
from gangplan.model.pods import Mount as Mount
from gangplan.model.pods import PodClaim as PodClaim
from gangplan.model.pods import RetryExitCodes as RetryExitCodes
from gangplan.model.pods import RunSchedule as RunSchedule
from gangplan.model.pods import ScratchSpace as ScratchSpace
from gangplan.model.pods import SideContainer as SideContainer
from gangplan.model.pods import SpecFolderFile as SpecFolderFile
from gangplan.model.pods import TargetPool as TargetPool
from gangplan.model.pods import Toleration as Toleration
from gangplan.model.quantity import Quantity
from gangplan.model.trial import FromTemplate
from gangplan.model.trial import Origins as Origins
from gangplan.model.trial import Trial as Trial
from gangplan.model.trial import ValueOrigin as ValueOrigin
from gangplan.records import dataclass

Posture = Literal["default", "restricted", "isolated"]

# A stand-in for the hash at the end of a run's name: it has the same length, is valid wherever the hash is,
# and is replaced once the content is known. It must not be anything that a user writes: `checkpoint-00000000`
# in an environment stays.
HASH_PLACEHOLDER = "zq7xk0vj"
HASH_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a resolved value came from: a layer (spec, profile, team, cluster, built-in) and its place."""

    layer: str
    where: Location | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """Requests, which equal limits: CPU, memory, GPUs and RDMA devices by name, and everything else by
    resource.

    `others` are ephemeral storage, huge pages and further devices, in bytes and pieces. `claims` say which of
    the `devices` a pod gets by a claim instead of a request.
    """

    cpu: Quantity
    memory: Quantity
    devices: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, Quantity], ...] = ()
    claims: tuple[DeviceClaim, ...] = ()

    @property
    def requested(self) -> tuple[tuple[str, int], ...]:
        """The devices that containers request, without those of claims."""
        if not self.claims:
            return self.devices
        claimed = {one.resource for one in self.claims}
        return tuple(one for one in self.devices if one[0] not in claimed)

    @property
    def amounts(self) -> dict[str, Quantity]:
        """Everything except CPU and memory, by resource."""
        return {name: Quantity.of(count) for name, count in self.devices} | dict(self.others)


@dataclass(frozen=True, slots=True)
class JobStep:
    """A step before the workers: its index in `steps` and its timeout in seconds.

    A step that fetches data has a `source` (hf://... or s3://BUCKET/PATH) and the folder that it goes to.
    """

    index: int
    timeout_s: int
    source: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedRole:
    """Pods that differ from the workers; without `argv` they run the job's command.

    `env` are variables in addition to those of the job. With a `step` they run before the workers instead of
    next to them.
    """

    name: str
    workers: int
    image: str
    argv: tuple[str, ...]
    env: tuple[EnvVar, ...]
    resources: Resources
    pool: TargetPool
    step: JobStep | None = None

    @property
    def place(self) -> tuple[str | int, ...]:
        """The path of the role in the spec."""
        return ("steps", self.step.index) if self.step else ("roles", self.name)


@dataclass(frozen=True, slots=True)
class Egress:
    """A destination outside the run: an address range with exclusions, and TCP ports."""

    name: str
    cidr: str
    excluding: tuple[str, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One job on one cluster. Times are in seconds; resources are per worker (or per launcher)."""

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
    fabric: WorkerFabric
    mpi_flags: tuple[str, ...]
    bind_to: str
    map_by: str
    topology: tuple[str, str] | None
    spread: str
    queue: str
    priority: str
    timeout_s: int
    grace_s: int
    log_retention_s: int
    retries: int
    labels: tuple[tuple[str, str], ...]
    cost_centre: str
    service_account: str
    spec_hash: str
    run: int
    is_archived: bool
    is_stopped: bool = False
    is_kept: bool = False  # keeps its earlier rendering, although the platform changed
    retired: tuple[str, ...] = ()  # earlier runs of the job that are over
    waived: tuple[str, ...] = ()  # policies that the API server must not apply to it
    regimes: tuple[str, ...] = ()
    residency: str = ""
    datasets: tuple[str, ...] = ()  # the claims and connections that it reads and writes
    data_regions: tuple[tuple[str, str], ...] = ()
    is_extended: bool = False  # whether it may take longer than a plain run
    exit_codes: RetryExitCodes = RetryExitCodes()
    elastic: ElasticLimits | None = None  # for torch; `workers` is the maximum
    debug: DebugHold | None = None  # None: a failed run's pods are deleted at once
    workdir: str = ""  # empty: the image's own
    identity: CloudIdentity | None = None
    mounts_token: bool = False  # of the service account, for the Kubernetes API
    roles: tuple[ResolvedRole, ...] = ()
    steps: tuple[ResolvedRole, ...] = ()  # before the workers, in their order
    near: tuple[Neighbour, ...] = ()
    apart: tuple[str, ...] = ()  # jobs whose pods never share a node with the workers
    files: tuple[SpecFolderFile, ...] = ()  # from the folder of the spec
    containers: tuple[SideContainer, ...] = ()  # in addition to the program: setup, then sidecars
    made_of: BackendName = "trainjob"
    pools: tuple[str, ...] = ()  # the team's pools where a worker fits, in order of preference
    trial: Trial | None = None  # of a sweep
    template: FromTemplate | None = None  # from which it was created
    schedule: RunSchedule | None = None  # that starts its runs
    after: RunDependencies | None = None  # other runs; Git then contains a template of this one
    model: RegisteredModel | None = None  # that it registers
    support: ImageSupport | None = None  # None: the catalog states nothing about it
    is_dated: bool = False  # a CronJob creates its runs, each named after its start
    origins: dict[str, Origin] = field(default_factory=dict, compare=False, repr=False)
    pulled: dict[str, Origins] = field(
        default_factory=dict, compare=False, repr=False
    )  # references, by image

    @property
    def is_active(self) -> bool:
        """Whether the run should run: it is neither stopped nor archived."""
        return not (self.is_archived or self.is_stopped)

    @property
    def backend(self) -> Backend:
        """The backend of the run."""
        return DATED_TRAINJOB if self.is_dated else BACKENDS[self.made_of]

    @property
    def uses_mpi(self) -> bool:
        """Whether a launcher starts the ranks over SSH (not so for torch and frameworks without a
        launcher)."""
        return self.image.framework in MPI_FRAMEWORKS

    @property
    def others(self) -> tuple[ResolvedRole, ...]:
        """All pods other than workers and launcher: steps, which come first, and other roles."""
        return (*self.steps, *self.roles) if self.steps else self.roles

    def trains(self, role: str) -> bool:
        """Return whether pods of a role run ranks: workers, and a launcher that also trains."""
        return role == "worker" or (role == "launcher" and self.launcher_runs_ranks)

    def mounts_of(self, role: str) -> tuple[Mount, ...]:
        """Return the mounts of a role's pods. Pods without ranks skip volumes that one pod or node at a time
        can mount."""
        return self.mounts if self.trains(role) else tuple(one for one in self.mounts if not one.single)

    def access_of(self, role: str) -> FabricAccess:
        """Return what the pods of a role get from their nodes."""
        return self.fabric.access if self.trains(role) else NO_ACCESS

    def containers_of(self, role: str) -> tuple[SideContainer, ...]:
        """Return the containers before and next to the program in pods of a role; none if they run no
        ranks."""
        return self.containers if self.trains(role) else ()

    @property
    def worker_pod(self) -> Resources:
        """The requests of a whole worker: its program, and the containers that its fabric and the job add."""
        fabric, own = self.fabric.access.containers, self.containers
        if not (fabric or own):
            return self.resources
        cpu = [*((one.cpu, one.is_sidecar) for one in fabric), *((one.cpu, one.is_sidecar) for one in own)]
        memory = [(one.memory, one.is_sidecar) for one in fabric]
        memory += [(one.memory, one.is_sidecar) for one in own]
        return Resources(
            compute_pod_resource_need(self.resources.cpu, cpu),
            compute_pod_resource_need(self.resources.memory, memory),
            self.resources.devices,
            self.resources.others,
            self.resources.claims,
        )

    @property
    def ranks(self) -> int:
        """The number of ranks: workers times slots."""
        return self.workers * self.slots
