"""Reads runs from their built objects for the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from gangplan.kueue.model import KueueWorkload, Podset
from gangplan.kueue.units import convert_to_kueue_count
from gangplan.objects import Body
from gangplan.validate.expand import job_of
from gangplan.validate.kueue import AdmissionVerdict, judge_admission
from gangplan.validate.kueue.contention import can_preempted_run_resume, find_workload_priority_of_run
from gangplan.validate.kueue.domains import read_resource_flavor
from gangplan.validate.kueue.matching import find_untolerated_taint, fits_resource_flavor_labels
from gangplan.validate.kueue.model import NO_WORKLOAD
from gangplan.validate.kueue.podsets import list_workload_pod_sets
from gangplan.validate.kueue.request import build_run_request
from gangplan.validate.world import World


def read_workload(
    world: World,
    bodies: Sequence[Body],
    name: str,
    *,
    duration: float = 0.0,
    arrival: float = 0.0,
    team: str = "",
) -> KueueWorkload | None:
    """Return the workload of a run; None if Kueue does not queue it or can never admit it.

    In a strict queue, a run that can never be admitted keeps all later ones waiting. Such a run is returned
    too, with `is_hopeless`.
    """
    found = job_of(bodies)
    verdict = judge_admission(world, bodies)
    if (
        found is None
        or not verdict.queue
        or (verdict.outcome == "never" and not _is_blocking_simulated_queue(world, verdict))
    ):
        return None
    requests, none = verdict.requests, frozenset[str]()
    podsets = tuple(
        Podset(
            one.name,
            one.count,
            _compute_podset_requests(*requests[one.name]),
            none if verdict.outcome == "never" else _find_flavors_for_simulated_workload(world, one.spec),
        )
        for one in list_workload_pod_sets(bodies, world)
    )
    checkpoint = 0.0 if can_preempted_run_resume(bodies) else None
    return KueueWorkload(
        name,
        verdict.queue,
        podsets,
        find_workload_priority_of_run(world, build_run_request(world, bodies)),
        duration,
        arrival,
        checkpoint,
        team,
    )


def _is_blocking_simulated_queue(world: World, verdict: AdmissionVerdict) -> bool:
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


def _compute_podset_requests(count: int, each: Mapping[str, Fraction]) -> dict[str, int]:
    return {resource: count * convert_to_kueue_count(resource, amount) for resource, amount in each.items()}


def _find_flavors_for_simulated_workload(world: World, spec: Body) -> frozenset[str]:
    """Return the flavors whose nodes the pods may use, as Kueue matches them."""
    fitting = set()
    for body in world.of_kind("ResourceFlavor"):
        flavor = read_resource_flavor(body)
        tolerations = [*(spec.get("tolerations") or ()), *flavor.tolerations]
        if not find_untolerated_taint(flavor.taints, tolerations) and fits_resource_flavor_labels(
            spec, flavor.labels, set(flavor.labels)
        ):
            fitting.add(flavor.name)
    return frozenset(fitting)
