"""Quota, cohorts and queues, as a cluster file describes them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gangplan.model.job import Posture
from gangplan.spec.admission import ConcurrentAdmission, LocalQueue
from gangplan.spec.base import Cpu, Memory, Name, SecretName, Strict, Weight, parse_spec_reason
from gangplan.spec.identity import Identity
from gangplan.spec.job import Priority, Regime
from gangplan.spec.nodes import ResourceName
from gangplan.spec.persistent import PersistentVolume
from gangplan.spec.prices import Budget
from gangplan.spec.team import Day


class Share(Strict):
    """An amount of one node pool. Omitted resources are in proportion to the pool's nodes."""

    gpus: int | None = Field(
        None, ge=0, le=1_000_000, description="GPUs; the measure of pools with GPUs.", examples=[16]
    )
    cpu: Cpu | None = Field(None, description="CPU cores; the measure of pools without GPUs.", examples=[120])
    memory: Memory | None = Field(None, description="Memory; omitted: in proportion.", examples=["480Gi"])
    disk: Memory | None = Field(
        None, description="Disk of the nodes (ephemeral storage); omitted: in proportion.", examples=["12Ti"]
    )
    devices: dict[ResourceName, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        {},
        max_length=16,
        description="Other devices of the pool, RDMA devices too, by resource; those left out: in proportion.",
        examples=[{"example.com/fpga": 4}],
    )


Shares = Annotated[dict[Name, Share], Field(max_length=64)]


class Preemption(Strict):
    """When a pending run may preempt a running one. The values are Kueue's."""

    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = Field(
        "LowerPriority", description="Runs of the same team.", examples=["LowerPriority"]
    )
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = Field(
        "Any", description="Runs of other teams that borrow this team's quota.", examples=["Any"]
    )
    borrow_within_cohort: Literal["Never", "LowerPriority"] = Field(
        "Never",
        description="Runs of other teams, while this team borrows; not with fair sharing.",
        examples=["Never"],
    )


class Cohort(Strict):
    """Teams (or other cohorts) that lend each other what they do not use."""

    parent: Name | None = Field(
        None, description="Cohort above this one; omitted: a root.", examples=["company"]
    )
    quota: Shares = Field(
        {},
        description="Capacity of the cohort itself, per node pool: a reserve that all of its members may borrow.",
        examples=[{"a100-80gb": {"gpus": 8}}],
    )
    borrow: Shares | None = Field(
        None,
        description="Maximum that the cohort may borrow from its parent, per node pool; pools not listed: nothing. Omitted: whatever is idle.",
        examples=[{"a100-80gb": {"gpus": 8}}],
    )
    lend: Shares | None = Field(
        None,
        description="Maximum that the cohort lends to its parent, per node pool; pools not listed: nothing. Omitted: all.",
        examples=[{"a100-80gb": {"gpus": 8}}],
    )
    weight: Weight | None = Field(
        None, description="Fair share next to its siblings; omitted: 1.", examples=[2]
    )


class HardQuota(Strict):
    """A separate cap on what the team's namespace may contain at once, regardless of its queue."""

    gpus: int | None = Field(None, ge=0, le=1_000_000, description="GPUs.", examples=[40])
    cpu: Cpu | None = Field(None, description="CPU cores.", examples=[640])
    memory: Memory | None = Field(None, description="Memory.", examples=["8Ti"])
    storage: dict[SecretName, Memory] = Field(
        {},
        max_length=64,
        description="What claims may request, by storage class: the team's own, and those of scratch and volumes while their pods are there.",
        examples=[{"cephfs-encrypted": "20Ti"}],
    )


def _parse_exception_reason(text: str) -> str:
    return parse_spec_reason(
        text,
        "Say in a sentence what needs it, such as: GPUDirect-TCPX needs its daemon and folders of the node.",
    )


class PodSecurity(Strict):
    """What a team's namespace admits beyond Pod Security's level restricted, why, and until when."""

    level: Literal["baseline", "privileged"] = Field(
        description="Level that the namespace enforces; it still audits and warns about restricted.",
        examples=["privileged"],
    )
    reason: Annotated[str, Field(max_length=512), AfterValidator(_parse_exception_reason)] = Field(
        description="Why, in 10 characters or more; kept as an annotation and shown in findings.",
        examples=["GPUDirect-TCPX needs its daemon and folders of the node."],
    )
    until: Day = Field(
        description="Last day; after that day, the check fails until it is renewed or removed.",
        examples=["2027-01-31"],
    )


class OwnAccount(Strict):
    """A service account of the team's namespace that gangplan does not create, but runs may use."""

    token: bool = Field(
        False,
        description="Whether pods mount its token for the Kubernetes API, and so have all of its rights.",
        examples=[True],
    )
    reason: Annotated[str, Field(max_length=512), AfterValidator(_parse_exception_reason)] = Field(
        description="Why runs need it, in 10 characters or more.",
        examples=["The sweep controller reads the runs of its namespace."],
    )


class TeamQueue(Strict):
    """A team on this cluster: its queue, and what it may use."""

    queue: Name = Field(
        description="LocalQueue in the team's namespace; with gang: volcano, the name of Volcano's queue.",
        examples=["gpu"],
    )
    namespace: Name | None = Field(
        None,
        description="Namespace that the platform gives the team here; omitted: the team's own name, or team-<name> where team.yaml says so.",
        examples=["team-nlp"],
    )
    compliance: tuple[Regime, ...] = Field(
        (),
        max_length=8,
        description="Regimes that all data of the team falls under, whatever the team's own file says.",
        examples=[["hipaa"]],
    )
    posture: Posture | None = Field(
        None,
        description="Weakest network posture that its runs may have, and the one they get if none is stated; omitted: default.",
        examples=["restricted"],
    )
    pod_security: PodSecurity | None = Field(
        None,
        description="Pod Security level of its namespace beyond restricted, for fabrics that need the node; omitted: restricted.",
        examples=[
            {
                "level": "privileged",
                "reason": "GPUDirect-TCPX needs its daemon and folders of the node.",
                "until": "2027-01-31",
            }
        ],
    )
    identity: Identity | None = Field(
        None,
        description="Identity of its pods in the cluster's cloud; omitted: as team.yaml says.",
        examples=[{"aws": {"role": "arn:aws:iam::123456789012:role/team-nlp"}}],
    )
    service_accounts: dict[SecretName, OwnAccount] = Field(
        {},
        max_length=16,
        description="Service accounts of its namespace, made by others, that specs may name; omitted: runs use gangplan's alone, which has no rights.",
        examples=[
            {"sweeps": {"token": True, "reason": "The sweep controller reads the runs of its namespace."}}
        ],
    )
    persistent_volumes: dict[Name, PersistentVolume] = Field(
        {},
        max_length=64,
        description="Storage that exists, by the name of the team's connection (mount: mountpoint-s3 or blob) or claim (without size): gangplan makes a PersistentVolume and the claim, and never deletes either. Omitted: others make them.",
        examples=[
            {
                "lidar": {"bucket": "lidar-training-data"},
                "corpus": {"nfs": {"server": "nfs.example.com", "path": "/exports/corpus"}, "size": "2Ti"},
            }
        ],
    )
    cluster_queue: Name | None = Field(
        None, description="ClusterQueue behind it; omitted: the team's name.", examples=["team-nlp"]
    )
    cohort: Name | None = Field(
        None, description="Cohort; omitted: the only one there is.", examples=["company"]
    )
    quota: Shares | None = Field(
        None,
        description="Quota that the team always has, per node pool; it cannot use other pools. Omitted: what other teams leave, shared by weight.",
        examples=[{"a100-80gb": {"gpus": 16}, "a100-40gb": {"gpus": 16}}],
    )
    borrow: Shares | None = Field(
        None,
        description="Maximum that it may borrow of what others do not use, per node pool; pools not listed: nothing. Omitted: whatever is idle.",
        examples=[{"a100-80gb": {"gpus": 8}}],
    )
    lend: Shares | None = Field(
        None,
        description="Maximum of its quota that others may borrow while it is idle, per node pool; pools not listed: nothing. Omitted: all.",
        examples=[{"a100-80gb": {"gpus": 8}}],
    )
    monthly_budget: Budget | None = Field(
        None,
        description="What all active runs of the team here may cost in a month, by the prices of the pools: schedules by their starts, sweeps by their trials. Omitted: whatever its quota allows.",
        examples=[{"amount": "20000", "currency": "EUR", "warnAt": 80}],
    )
    weight: Weight | None = Field(
        None,
        description="Fair share of what is borrowed, and of pools without stated quotas; omitted: 1.",
        examples=[32],
    )
    priorities: tuple[Priority, ...] | None = Field(
        None,
        min_length=1,
        max_length=4,
        description="Priorities that its runs may have; omitted: all of the cluster except critical.",
        examples=[["low", "normal"]],
    )
    timeout_hours: int | None = Field(
        None,
        ge=1,
        le=8760,
        description="Longest timeout of its runs in hours, where that is less than limits.timeoutHours; omitted: the cluster's limit.",
        examples=[48],
    )
    preemption: Preemption | None = Field(
        None,
        description="When its runs may preempt others; omitted: the cluster's rule.",
        examples=[{"withinClusterQueue": "LowerPriority"}],
    )
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO"] = Field(
        "BestEffortFIFO",
        description="Whether runs that fit may overtake an older run of the same priority that does not (BestEffortFIFO), or wait behind it (StrictFIFO). The values are Kueue's.",
        examples=["StrictFIFO"],
    )
    local_queues: dict[Name, LocalQueue] = Field(
        {},
        max_length=32,
        description="More LocalQueues that share the same quota, which specs select with queue; the team's own may be among them, to set its weight.",
        examples=[{"night": {}, "papers": {"weight": 2}}],
    )
    admission_mode: Literal["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"] | None = Field(
        None,
        description="Whether the LocalQueues of the team take turns by what each used lately; needs kueue.admissionFairSharing. Omitted: by priority and time alone.",
        examples=["UsageBasedAdmissionFairSharing"],
    )
    concurrent_admission: ConcurrentAdmission | None = Field(
        None,
        description="Lets its runs ask for all of its pools at once; from Kueue 0.18 on, and one way only: it cannot be changed later. Omitted: pools are tried in their order.",
        examples=[{"migration": "RetainFirstAdmission"}],
    )
    hard_quota: HardQuota | None = Field(
        None,
        description="Cap of its namespace; omitted: all that its queue can ever give.",
        examples=[{"gpus": 40}],
    )


class WorkerCluster(Strict):
    """A cluster to which runs are dispatched."""

    kubeconfig_secret: SecretName = Field(
        description="Secret in Kueue's namespace whose key kubeconfig opens the cluster.",
        examples=["eu-airgap-kubeconfig"],
    )


class MultiKueue(Strict):
    """This cluster admits runs and dispatches them to others."""

    clusters: Annotated[dict[Name, WorkerCluster], Field(min_length=1, max_length=20)] = Field(
        description="Worker clusters by name.",
        examples=[{"eu-airgap": {"kubeconfigSecret": "eu-airgap-kubeconfig"}}],
    )
