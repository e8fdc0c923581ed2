"""Reads ClusterQueues and Cohorts from built objects for `gangplan.kueue`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from gangplan.kueue.model import (
    NEVER,
    ClusterQueue,
    FlavorResource,
    Fungibility,
    Member,
    PreemptionRules,
    QuotaSetup,
    ResourceGroup,
)
from gangplan.kueue.units import round_to_kueue_count
from gangplan.model.support import LATEST_KUEUE, KueueLine, look_up_kueue_line
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import parse_accepted_amount
from gangplan.validate.world import World


def read_cohort_members(bodies: Sequence[Body]) -> list[Member]:
    """Read every queue and cohort among objects that fit their schemas; amounts as written, in billionths."""
    return [
        _read_cohort_member_from_object(body, _keep_written_amount)
        for body in bodies
        if body["kind"] in ("ClusterQueue", "Cohort")
    ]


def read_quota_setup_of_cluster(world: World) -> QuotaSetup:
    """Read the queues and cohorts of a cluster, with amounts as Kueue counts them."""
    bodies = (*world.of_kind("ClusterQueue"), *world.of_kind("Cohort"))
    counted = cache(round_to_kueue_count)  # most teams have the same amounts
    found = [_read_cohort_member_from_object(body, counted) for body in bodies]
    return QuotaSetup(*split_members(found), world.fair_sharing, kueue=read_kueue_line(world) or LATEST_KUEUE)


def read_kueue_line(world: World) -> KueueLine | None:
    """Return the behaviour of the cluster's version of Kueue, or None without Kueue."""
    return None if world.versions.kueue is None else look_up_kueue_line(world.versions.kueue)


def split_members(found: Iterable[Member]) -> tuple[tuple[ClusterQueue, ...], tuple[Member, ...]]:
    """Split members into queues and cohorts."""
    both = list(found)
    queues = tuple(one for one in both if isinstance(one, ClusterQueue))
    return queues, tuple(one for one in both if not isinstance(one, ClusterQueue))


def parents_of(found: Iterable[Member]) -> dict[str, str]:
    """Map each cohort to its parent, or ""."""
    return {one.name: one.parent for one in split_members(found)[1]}


# Converts an amount of a resource from billionths to the unit of the reader.
_Counted = Callable[[str, int], int]


def _keep_written_amount(resource: str, nano: int) -> int:
    return nano


def _collect_quota_amounts(groups: Sequence[Body], name: str, counted: _Counted) -> dict[FlavorResource, int]:
    return {
        (flavor["name"], item["name"]): counted(item["name"], parse_accepted_amount(item[name]).nano)
        for group in groups
        for flavor in group["flavors"]
        for item in flavor["resources"]
        if item.get(name) is not None
    }


def _read_cohort_member_from_object(body: Body, counted: _Counted) -> Member:
    spec = body.get("spec") or {}
    groups = spec.get("resourceGroups") or ()
    parent = spec.get("cohortName" if body["kind"] == "ClusterQueue" else "parentName") or ""
    written = (spec.get("fairSharing") or {}).get("weight")
    weight = 1.0 if written is None else parse_accepted_amount(written).nano / 10**9
    one = Member(
        body["metadata"]["name"],
        parent,
        _collect_quota_amounts(groups, "nominalQuota", counted),
        _collect_quota_amounts(groups, "borrowingLimit", counted),
        _collect_quota_amounts(groups, "lendingLimit", counted),
        weight,
    )
    return one if body["kind"] == "Cohort" else _parse_cluster_queue(one, spec)


def _parse_cluster_queue(one: Member, spec: Body) -> ClusterQueue:
    preempt, rules = spec.get("preemption") or {}, spec.get("flavorFungibility") or {}
    while_borrowing = preempt.get("borrowWithinCohort") or {}
    return ClusterQueue(
        one.name,
        one.parent,
        one.nominal,
        one.borrowing,
        one.lending,
        one.weight,
        tuple(
            ResourceGroup(
                tuple(group["coveredResources"]), tuple(flavor["name"] for flavor in group["flavors"])
            )
            for group in spec.get("resourceGroups") or ()
        ),
        spec.get("queueingStrategy") == "StrictFIFO",
        PreemptionRules(
            preempt.get("withinClusterQueue") or NEVER,
            preempt.get("reclaimWithinCohort") or NEVER,
            while_borrowing.get("policy") or NEVER,
            while_borrowing.get("maxPriorityThreshold"),
        ),
        Fungibility(
            rules.get("whenCanBorrow") or "MayStopSearch",
            rules.get("whenCanPreempt") or "TryNextFlavor",
            rules.get("preference") or "",
        ),
    )
