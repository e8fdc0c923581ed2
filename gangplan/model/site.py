"""A cluster as its platform team sees it, and a team on it: the objects that exist before any run."""

from __future__ import annotations

from gangplan.model.identity import CloudIdentity
from gangplan.model.job import Egress, Platform
from gangplan.model.manager import UNCONFIGURED_MANAGER, ManagerSettings
from gangplan.model.quantity import Quantity
from gangplan.model.version import ToolVersion
from gangplan.records import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class QuotaAmount:
    """One resource of one flavor. `borrow` and `lend` are limits; None means no limit."""

    resource: str
    nominal: Quantity
    borrow: Quantity | None = None
    lend: Quantity | None = None


@dataclass(frozen=True, slots=True)
class FlavorQuota:
    """The quota of a queue or a cohort for one flavor: every covered resource, in the order of
    `Site.covered`."""

    flavor: str
    amounts: tuple[QuotaAmount, ...]


@dataclass(frozen=True, slots=True)
class NodeTaint:
    """A taint of a flavor's nodes."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class SiteFlavor:
    """A node pool as Kueue sees it; `name` differs from the pool's if the flavor cannot be changed in
    place."""

    name: str
    pool: str
    labels: Pairs
    taints: tuple[NodeTaint, ...]
    topology: str = ""


@dataclass(frozen=True, slots=True)
class SiteTopology:
    """The cluster's layout: node labels, widest level first."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiteCohort:
    """Queues and cohorts that lend to each other. `parent` is empty for a root."""

    name: str
    parent: str
    weight: Quantity
    quotas: tuple[FlavorQuota, ...]


@dataclass(frozen=True, slots=True)
class QueuePreemption:
    """The preemption of a queue, in Kueue's terms."""

    within_cluster_queue: str
    reclaim_within_cohort: str
    borrow_within_cohort: str


@dataclass(frozen=True, slots=True)
class QueueCheck:
    """An admission check of a queue; no flavors means all of them."""

    name: str
    flavors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueConcurrency:
    """A queue's concurrentAdmissionPolicy, in Kueue's terms; an empty flavor means any."""

    mode: str
    last_flavor: str


@dataclass(frozen=True, slots=True)
class SiteQueue:
    """The ClusterQueue of one team, or of one of its sweeps, which covers further resources (`covered`)."""

    name: str
    team: str
    namespace: str
    local_queue: str
    cohort: str
    weight: Quantity
    quotas: tuple[FlavorQuota, ...]
    preempt: QueuePreemption
    checks: tuple[QueueCheck, ...] = ()
    queueing_strategy: str = "BestEffortFIFO"
    concurrent: QueueConcurrency | None = None
    admission_mode: str = ""
    covered: tuple[str, ...] = ()  # if they differ from the site's


@dataclass(frozen=True, slots=True)
class Provisioning:
    """An autoscaled pool: Kueue requests nodes of it before it admits a run."""

    name: str
    provisioning_class: str
    parameters: Pairs
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoteCluster:
    """A worker cluster of MultiKueue."""

    name: str
    secret: str


@dataclass(frozen=True, slots=True)
class Monitor:
    """Where alert rules and dashboards go. `pending_s` is how long a run may be pending without an alert, in
    seconds."""

    namespace: str
    rule_labels: Pairs
    dashboard_labels: Pairs
    pending_s: int


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster: queues, flavors and cohorts of Kueue (empty without Kueue), priorities and monitoring."""

    source: str
    platform: Platform
    priorities: tuple[str, ...]
    covered: tuple[str, ...] = ()
    topology: SiteTopology | None = None
    flavors: tuple[SiteFlavor, ...] = ()
    cohorts: tuple[SiteCohort, ...] = ()
    queues: tuple[SiteQueue, ...] = ()
    sweeps: tuple[SiteQueue, ...] = ()  # queues of sweeps, which use their team's quota
    fair_sharing: bool = True
    provisioning: tuple[Provisioning, ...] = ()
    manager: ManagerSettings = UNCONFIGURED_MANAGER
    controllers: Pairs = ()  # further admission checks to create: name, controller
    workers: tuple[RemoteCluster, ...] = ()
    monitor: Monitor | None = None
    is_gitops_only: bool = False
    has_cronjobs: bool = False  # CronJobs that start the runs of schedules


@dataclass(frozen=True, slots=True)
class ClaimToMake:
    """A PersistentVolumeClaim that gangplan renders. Its storage class is always set, because the API server
    would fill in its own default and claims cannot be changed."""

    name: str
    size: Quantity
    access_modes: tuple[str, ...]
    storage_class: str
    retention_s: int | None = None  # how long its data is kept, if stated


@dataclass(frozen=True, slots=True)
class VolumeToMake:
    """A PersistentVolume for existing storage, and its claim: from a CSI driver, or `nfs` (server and path).

    `key` is its name in the cluster's file, `name` that of the object, which is unique to the team on the
    cluster.
    """

    key: str
    name: str
    claim: str
    access_modes: tuple[str, ...]
    size: Quantity
    driver: str = ""
    handle: str = ""
    attributes: Pairs = ()
    mount_options: tuple[str, ...] = ()
    fs_type: str = ""
    secret: str = ""
    nfs: tuple[str, str] | None = None
    retention_s: int | None = None  # as of a ClaimToMake


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A secret of the namespace, and its key in the external store."""

    name: str
    key: str
    is_pull_secret: bool


@dataclass(frozen=True, slots=True)
class ExternalSecretStore:
    """The external store that secrets are read from, every `refresh_s` seconds. `version` is that of the
    operator; None means a current one."""

    name: str
    kind: str
    refresh_s: int
    secrets: tuple[StoredSecret, ...]
    version: ToolVersion | None = None


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A group of the identity provider and its persona: viewer, data-scientist, mlops or admin."""

    group: str
    persona: str


@dataclass(frozen=True, slots=True)
class DebugGrant:
    """A group that may open a shell in pods, until the end of a day."""

    group: str
    until: str
    reason: str


@dataclass(frozen=True, slots=True)
class PodSecurityLevel:
    """The Pod Security level of a namespace; levels above restricted have a reason and a last day."""

    level: str = "restricted"
    reason: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class ContainerBounds:
    """The LimitRange of a namespace: only CPU and memory, because any other upper bound would become a
    default."""

    default_cpu: Quantity
    default_memory: Quantity
    most_cpu: Quantity
    most_memory: Quantity


@dataclass(frozen=True, slots=True)
class TenantQueue:
    """A LocalQueue. Its weight is relative to the other queues of the team; None is not stated, which means
    1."""

    name: str
    weight: Quantity | None = None
    cluster_queue: str = ""  # if it is not the team's


@dataclass(frozen=True, slots=True)
class Tenant:
    """A team on one cluster. `hard` is the ResourceQuota of its namespace, with the keys of Kubernetes."""

    team: str
    namespace: str
    source: str
    platform: Platform
    service_account: str
    pull_secrets: tuple[str, ...]
    queues: tuple[TenantQueue, ...]  # the team's main queue first
    cluster_queue: str
    contact: str
    cost_centre: str
    description: str
    hard: tuple[tuple[str, Quantity], ...] = ()
    forbidden_priorities: tuple[str, ...] = ()
    bounds: ContainerBounds | None = None
    members: tuple[GroupMember, ...] = ()
    debuggers: tuple[DebugGrant, ...] = ()
    claims: tuple[ClaimToMake, ...] = ()
    volumes: tuple[VolumeToMake, ...] = ()
    store: ExternalSecretStore | None = None
    is_gitops_only: bool = False
    waived: tuple[str, ...] = ()  # policies that the API server must not apply to its objects
    regimes: tuple[str, ...] = ()
    pod_security: PodSecurityLevel = PodSecurityLevel()
    identity: CloudIdentity | None = None
    schedules: tuple[Egress, ...] = ()  # how pods that create the runs of schedules reach the API server
