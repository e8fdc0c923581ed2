"""Settings of Kueue beyond quota in a cluster file: a team's LocalQueues, and the manager's configuration.

Sources: apis/kueue/v1beta2/{localqueue,clusterqueue,fairsharing}_types.go and apis/config/v1beta2 of Kueue
v0.15.2, v0.18.2 and v0.19.2.
"""

from typing import Annotated, Literal

from pydantic import Field

from gangplan.spec.base import DurationSeconds, Factor, LabelKey, Name, Strict, Weight


class LocalQueue(Strict):
    """A LocalQueue of a team; all of them share the team's quota."""

    weight: Weight | None = Field(
        None,
        description="Share relative to the team's other queues, with admissionMode: UsageBasedAdmissionFairSharing; omitted: 1.",
        examples=[2],
    )


class ConcurrentAdmission(Strict):
    """Runs request all pools of the team at the same time, and start on the first that has room."""

    migration: Literal["TryPreferredFlavors", "RetainFirstAdmission"] = Field(
        description="Whether a started run moves to a pool listed earlier in nodePools once that pool has room, and so starts again. The values are Kueue's.",
        examples=["RetainFirstAdmission"],
    )
    last_acceptable_pool: Name | None = Field(
        None,
        description="The last pool, in the order of nodePools, that a run may move to; omitted: any earlier one.",
        examples=["a100-80gb"],
    )


class AdmissionCheck(Strict):
    """A check that must pass before a run starts, after the run has its quota."""

    controller: Annotated[LabelKey, Field(max_length=253)] | None = Field(
        None,
        description="Name of the controller that answers; gangplan creates the AdmissionCheck.",
        examples=["budget.example.com/check"],
    )
    external: bool = Field(
        False,
        description="True: somebody else creates the AdmissionCheck of this name on the cluster.",
        examples=[True],
    )
    teams: Annotated[tuple[Name, ...], Field(min_length=1, max_length=512)] | None = Field(
        None, description="Teams whose runs it is asked about; omitted: all.", examples=[["nlp"]]
    )
    pools: Annotated[tuple[Name, ...], Field(min_length=1, max_length=64)] | None = Field(
        None, description="Node pools that it is asked about; omitted: all.", examples=[["a100-80gb"]]
    )


class UsageSharing(Strict):
    """How Kueue counts what a team's queues used recently."""

    usage_half_life_time: DurationSeconds = Field(
        description="Time after which past use counts for half; 0s: only current use counts.", examples=["7d"]
    )
    usage_sampling_interval: Annotated[DurationSeconds, Field(gt=0)] = Field(
        300, description="How often use is measured; omitted: 5m.", examples=["5m"]
    )
    resource_weights: dict[LabelKey, Weight] = Field(
        {},
        max_length=64,
        description="How much a unit of a resource counts (a core, a byte, a device); omitted: 1.",
        examples=[{"cpu": 2, "memory": 0, "nvidia.com/gpu": 10}],
    )


class ResourceTransformation(Strict):
    """What quota counts for each unit of a resource that pods request."""

    strategy: Literal["Retain", "Replace"] = Field(
        "Retain", description="Whether the resource itself is counted, too.", examples=["Replace"]
    )
    outputs: dict[LabelKey, Factor] = Field(
        {},
        max_length=16,
        description="Amounts per unit, by names that no node has; with Replace and none, the resource is not counted.",
        examples=[{"example.com/credits": 10}],
    )


class ManagedResources(Strict):
    """How the manager counts what pods request."""

    exclude_resource_prefixes: tuple[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9][-A-Za-z0-9_./]*$", max_length=253)], ...
    ] = Field(
        (),
        max_length=32,
        description="Resources that quota leaves out, by how their names begin.",
        examples=[["networking.example.com/"]],
    )
    transformations: dict[LabelKey, ResourceTransformation] = Field(
        {},
        max_length=64,
        description="What is counted instead of a resource, or in addition to it. Quotas of outputs follow from those of the resource.",
        examples=[{"nvidia.com/gpu": {"outputs": {"example.com/credits": 10}}}],
    )


class KueueSettings(Strict):
    """Configuration of Kueue's manager on the cluster, as far as it affects runs."""

    admission_fair_sharing: UsageSharing | None = Field(
        None,
        description="Lets queues with admissionMode: UsageBasedAdmissionFairSharing take turns by past use; omitted: past use does not count.",
        examples=[{"usageHalfLifeTime": "7d", "usageSamplingInterval": "5m"}],
    )
    resources: ManagedResources | None = Field(
        None,
        description="How quota counts; omitted: what pods ask for.",
        examples=[{"excludeResourcePrefixes": ["networking.example.com/"]}],
    )
