"""A world as the simulation sees it: the queues that stand on it, and runs from their built objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gangplan.simulate.model import (
    Fungibility,
    Group,
    Key,
    Member,
    Podset,
    Preemption,
    Queue,
    Run,
    Setup,
    kueue_units,
)
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.kueue import Verdict, judge
from gangplan.validate.kueue.contention import can_resume, priority_of
from gangplan.validate.kueue.domains import flavor_of
from gangplan.validate.kueue.matching import fits_flavor, untolerated
from gangplan.validate.kueue.model import NO_WORKLOAD
from gangplan.validate.kueue.podsets import job_of, pod_sets
from gangplan.validate.kueue.tree import Member as Amounts
from gangplan.validate.kueue.tree import members
from gangplan.validate.world import World


def setup_of(world: World) -> Setup:
    """The queues and cohorts of a cluster as they are built."""
    bodies = {(body["kind"], body["metadata"]["name"]): body for body in world.standing}
    queues, cohorts = [], []
    for one in members(world.standing):
        spec = bodies[one.kind, one.name].get("spec") or {}
        if one.kind == "ClusterQueue":
            queues.append(_queue(one, spec))
        else:
            cohorts.append(Member(one.name, one.parent, *_amounts(one), _weight(spec)))
    return Setup(tuple(queues), tuple(cohorts), world.fair_sharing, kueue=_minor(world.versions.kueue))


def _queue(one: Amounts, spec: Body) -> Queue:
    preempt = spec.get("preemption") or {}
    while_borrowing = preempt.get("borrowWithinCohort") or {}
    rules = spec.get("flavorFungibility") or {}
    return Queue(
        one.name,
        one.parent,
        *_amounts(one),
        _weight(spec),
        tuple(
            Group(tuple(group["coveredResources"]), tuple(flavor["name"] for flavor in group["flavors"]))
            for group in spec.get("resourceGroups") or ()
        ),
        spec.get("queueingStrategy") == "StrictFIFO",
        Preemption(
            preempt.get("withinClusterQueue") or "Never",
            preempt.get("reclaimWithinCohort") or "Never",
            while_borrowing.get("policy") or "Never",
            while_borrowing.get("maxPriorityThreshold"),
        ),
        Fungibility(
            rules.get("whenCanBorrow") or "MayStopSearch",
            rules.get("whenCanPreempt") or "TryNextFlavor",
            rules.get("preference") or "",
        ),
    )


def _amounts(one: Amounts) -> tuple[dict[Key, int], dict[Key, int], dict[Key, int]]:
    found = [
        {key: kueue_units(key[1], amount) for key, amount in given.items()}
        for given in (one.nominal, one.borrowing, one.lending)
    ]
    return found[0], found[1], found[2]


def _weight(spec: Body) -> float:
    written = (spec.get("fairSharing") or {}).get("weight")
    return 1.0 if written is None else float(_number(written))


def _number(written: Any) -> Fraction:
    from gangplan.validate.kueue.tree import amount

    return amount(written)


def _minor(kueue: str | None) -> tuple[int, int]:
    major, _, minor = (kueue or "0.19").partition(".")
    return int(major), int(minor)


def run_of(
    world: World,
    bodies: Sequence[Body],
    name: str,
    *,
    duration: float = 0.0,
    arrival: float = 0.0,
    team: str = "",
) -> Run | None:
    """A run as its built objects ask for quota; None where Kueue does not queue it or can never admit it.

    A strict queue keeps everything behind a run that can never be admitted waiting: that run comes too, and
    `is_hopeless`.
    """
    found = job_of(bodies)
    verdict = judge(world, bodies)
    if found is None or not verdict.queue or (verdict.outcome == "never" and not _blocks(world, verdict)):
        return None
    requests, none = verdict.requests, frozenset[str]()
    podsets = tuple(
        Podset(
            one.name,
            one.count,
            _together(*requests[one.name]),
            none if verdict.outcome == "never" else _flavors(world, one.spec),
        )
        for one in pod_sets(bodies, world.standing)
    )
    checkpoint = 0.0 if can_resume(bodies) else None
    return Run(name, verdict.queue, podsets, priority_of(world, bodies), duration, arrival, checkpoint, team)


def _blocks(world: World, verdict: Verdict) -> bool:
    """Whether a run that is never admitted stays the head of its queue.

    In a strict queue every run does that Kueue tried, unless its namespace is not the queue's
    (pkg/cache/queue/cluster_queue.go RequeueIfNotPresent, v0.15.2 to v0.19.2); an inactive queue tries none.
    """
    queue = next(
        (body for body in world.of_kind("ClusterQueue") if body["metadata"]["name"] == verdict.queue), {}
    )
    is_strict = (queue.get("spec") or {}).get("queueingStrategy") == "StrictFIFO"
    is_tried = verdict.about != "ClusterQueue" and verdict.reason != NO_WORKLOAD
    return is_strict and is_tried and any(each for _, each in verdict.requests.values())


def _together(count: int, each: Mapping[str, Fraction]) -> dict[str, int]:
    return {resource: count * kueue_units(resource, amount) for resource, amount in each.items()}


def _flavors(world: World, spec: Body) -> frozenset[str]:
    """The flavors whose nodes the pods may go to, as Kueue matches them."""
    fitting = set()
    for body in world.of_kind("ResourceFlavor"):
        flavor = flavor_of(body)
        tolerations = [*(spec.get("tolerations") or ()), *flavor.tolerations]
        if not untolerated(flavor.taints, tolerations) and fits_flavor(
            spec, flavor.labels, set(flavor.labels)
        ):
            fitting.add(flavor.name)
    return frozenset(fitting)
