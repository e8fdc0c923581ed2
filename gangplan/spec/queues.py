"""Quota, cohorts and queues, as a cluster file describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gangplan.spec.base import Cpu, Memory, Name, SecretName, Strict, Weight
from gangplan.spec.job import Posture, Priority, Regime


class Share(Strict):
    """An amount of one node pool. What is left out follows in proportion to the pool's nodes."""

    gpus: int | None = Field(
        None, ge=0, le=1_000_000, description="GPUs; the measure of pools with GPUs.", examples=[16]
    )
    cpu: Cpu | None = Field(None, description="CPU cores; the measure of pools without GPUs.", examples=[120])
    memory: Memory | None = Field(None, description="Memory; omitted: in proportion.", examples=["480Gi"])


Shares = Annotated[dict[Name, Share], Field(max_length=64)]


class Preemption(Strict):
    """When a waiting run may preempt a running one. The words are Kueue's."""

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
        None, description="Fair share beside its siblings; omitted: 1.", examples=[2]
    )


class HardQuota(Strict):
    """An own cap on what the team's namespace may hold at once, whatever the queue allows."""

    gpus: int | None = Field(None, ge=0, le=1_000_000, description="GPUs.", examples=[40])
    cpu: Cpu | None = Field(None, description="CPU cores.", examples=[640])
    memory: Memory | None = Field(None, description="Memory.", examples=["8Ti"])


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
        description="Weakest network posture that its runs may have, and theirs where nothing else is said; omitted: default.",
        examples=["restricted"],
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
    preemption: Preemption | None = Field(
        None,
        description="When its runs may preempt others; omitted: the cluster's rule.",
        examples=[{"withinClusterQueue": "LowerPriority"}],
    )
    hard_quota: HardQuota | None = Field(
        None,
        description="Cap of its namespace; omitted: all that its queue can ever give.",
        examples=[{"gpus": 40}],
    )


class WorkerCluster(Strict):
    """A cluster that runs are sent to."""

    kubeconfig_secret: SecretName = Field(
        description="Secret in Kueue's namespace whose key kubeconfig opens the cluster.",
        examples=["eu-airgap-kubeconfig"],
    )


class MultiKueue(Strict):
    """This cluster admits runs and hands them to others."""

    clusters: Annotated[dict[Name, WorkerCluster], Field(min_length=1, max_length=20)] = Field(
        description="Worker clusters by name.",
        examples=[{"eu-airgap": {"kubeconfigSecret": "eu-airgap-kubeconfig"}}],
    )
