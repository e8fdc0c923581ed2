"""Reads runs from their built objects for the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from gangplan.kueue.model import Podset, Workload
from gangplan.kueue.units import counted
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.expand import job_of
from gangplan.validate.kueue import Verdict, judge
from gangplan.validate.kueue.contention import can_resume, priority_of
from gangplan.validate.kueue.domains import flavor_of
from gangplan.validate.kueue.matching import fits_flavor, untolerated
from gangplan.validate.kueue.model import NO_WORKLOAD
from gangplan.validate.kueue.podsets import pod_sets
from gangplan.validate.kueue.request import request_of
from gangplan.validate.world import World


def run_of(
    world: World,
    bodies: Sequence[Body],
    name: str,
    *,
    duration: float = 0.0,
    arrival: float = 0.0,
    team: str = "",
) -> Workload | None:
    """Return the workload of a run; None if Kueue does not queue it or can never admit it.

    In a strict queue, a run that can never be admitted keeps all later ones waiting. Such a run is returned
    too, with `is_hopeless`.
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
        for one in pod_sets(bodies, world)
    )
    checkpoint = 0.0 if can_resume(bodies) else None
    return Workload(
        name,
        verdict.queue,
        podsets,
        priority_of(world, request_of(world, bodies)),
        duration,
        arrival,
        checkpoint,
        team,
    )


def _blocks(world: World, verdict: Verdict) -> bool:
    """Return whether a run that is never admitted stays the head of its queue.

    In a strict queue every tried run does, unless the queue does not select its namespace
    (pkg/cache/queue/cluster_queue.go RequeueIfNotPresent, v0.15.2 to v0.19.2). An inactive queue tries none.
    """
    queue = next(
        (body for body in world.of_kind("ClusterQueue") if body["metadata"]["name"] == verdict.queue), {}
    )
    is_strict = (queue.get("spec") or {}).get("queueingStrategy") == "StrictFIFO"
    is_tried = verdict.about != "ClusterQueue" and verdict.reason != NO_WORKLOAD
    return is_strict and is_tried and any(each for _, each in verdict.requests.values())


def _together(count: int, each: Mapping[str, Fraction]) -> dict[str, int]:
    return {resource: count * counted(resource, amount) for resource, amount in each.items()}


def _flavors(world: World, spec: Body) -> frozenset[str]:
    """Return the flavors whose nodes the pods may use, as Kueue matches them."""
    fitting = set()
    for body in world.of_kind("ResourceFlavor"):
        flavor = flavor_of(body)
        tolerations = [*(spec.get("tolerations") or ()), *flavor.tolerations]
        if not untolerated(flavor.taints, tolerations) and fits_flavor(
            spec, flavor.labels, set(flavor.labels)
        ):
            fitting.add(flavor.name)
    return frozenset(fitting)
