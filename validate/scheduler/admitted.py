"""The pods of a run after Kueue has admitted it, and whether they find nodes.

Kueue adds the labels of the assigned flavors to the node selector of a pod set, and their tolerations
(pkg/podset/podset.go FromAssignment, Kueue v0.19.2). A run that it does not admit has no pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.kueue import AdmissionVerdict
from gangplan.validate.kueue.model import count_pods_kueue_admits_without_node
from gangplan.validate.kueue.request import RunRequest, build_run_request
from gangplan.validate.kueue.solver import find_idle_verdict
from gangplan.validate.memo import Memo, digest_memo_key
from gangplan.validate.scheduler.fits import fit_pods
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.pods import (
    PodShape,
    add_project_node_selector,
    bounds_of,
    list_pod_shapes_to_schedule,
)
from gangplan.validate.world import World


@dataclass(frozen=True, slots=True)
class AdmittedPods:
    """The pods of a run on an idle cluster, by pod set, and whether they find nodes."""

    pods: tuple[PodShape, ...]
    fit: Fit


class _Answers:
    """Cached answers by request, and by pods, flavors and LimitRanges; for `World.once`."""

    def __init__(self, _: World) -> None:
        self.of_runs: Memo[AdmittedPods] = Memo()
        self.of_pods: Memo[AdmittedPods] = Memo()


def find_node_fit_of_admitted_pods(world: World, request: RunRequest) -> AdmittedPods | None:
    """Return the pods of a request and their fit, or None if Kueue never admits it.

    Equal requests share one answer. Raises `NeverError` if the run's runtime does not exist.
    """
    if find_idle_verdict(world, request).outcome == "never":
        return None
    return world.once(_Answers).of_runs.answer(
        request.key, lambda: _find_node_fit_of_alike_runs(world, request)
    )


def _find_node_fit_of_alike_runs(world: World, request: RunRequest) -> AdmittedPods:
    """Return the pods and their fit, sharing the answer with runs that differ only in namespace and queue.

    Names matter only if pods have constraints on other pods.
    """
    if request.job is None or request.names_matter or request.refused or request.pods_key is None:
        return fit_pods_of_admitted_run(world, request)
    assignment = find_idle_verdict(world, request).assignment
    key = digest_memo_key(request.pods_key, request.job["kind"], assignment, bounds_of(world, request))
    return world.once(_Answers).of_pods.answer(key, lambda: fit_pods_of_admitted_run(world, request))


def fit_pods_of_admitted_run(world: World, request: RunRequest) -> AdmittedPods:
    """Compute the pods and their fit for a run that Kueue admits, without the cache."""
    verdict = find_idle_verdict(world, request)
    pods = [
        _apply_assigned_flavors_to_pods(world, one, verdict.assignment.get(one.name, {}))
        for one in list_pod_shapes_to_schedule(world, request)
    ]
    return AdmittedPods(tuple(pods), fit_pods(world, pods))


def fit_admitted_run(world: World, bodies: Sequence[Body]) -> Fit | None:
    """Return whether the pods of an admitted run find nodes, or None if Kueue never admits it."""
    request = build_run_request(world, bodies)
    found = find_node_fit_of_admitted_pods(world, request)
    return (
        None
        if found is None
        else _subtract_gated_pods_from_node_fit(found.fit, find_idle_verdict(world, request))
    )


def _subtract_gated_pods_from_node_fit(fit: Fit, verdict: AdmissionVerdict) -> Fit:
    """Subtract the pods that Kueue does not place, which keep its scheduling gate forever.

    Kueue places whole slices and silently leaves out the rest (pkg/cache/scheduler/tas_flavor_snapshot.go
    divides the number of pods by the size of a slice, v0.15.2 to v0.19.2). Its ungater frees only pods with a
    place.
    """
    placements, gated = dict(fit.placements), 0
    for name, rest in count_pods_kueue_admits_without_node(verdict).items():
        placed = dict(placements.get(name, {}))
        for group in sorted(placed, reverse=True):
            gone = min(placed[group], max(0, sum(placed.values()) - (fit.wanted[name] - rest)))
            placed[group] -= gone
        placements[name], gated = placed, gated + rest
    if not gated:
        return fit
    most = fit.pods - gated
    who = "1 pod keeps" if gated == 1 else f"{gated} pods keep"
    return replace(
        fit,
        bound=min(fit.bound, most),
        sure=None if fit.sure is None else min(fit.sure, most),
        placements=placements,
        reasons=(*fit.reasons, f"{who} Kueue's scheduling gate: it places whole slices only"),
    )


def _apply_assigned_flavors_to_pods(world: World, one: PodShape, assigned: Mapping[str, str]) -> PodShape:
    """Add what the assigned flavors and then the namespace add to pods.

    With a topology, Kueue itself chooses the nodes.
    """
    spec, placed = dict(one.spec), one.is_placed
    for name in sorted(set(assigned.values())):
        flavor = ((world.find("ResourceFlavor", name) or {}).get("spec")) or {}
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **(flavor.get("nodeLabels") or {})}
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *(flavor.get("tolerations") or ())]
        placed = placed or bool(flavor.get("topologyName"))
    return add_project_node_selector(world, replace(one, spec=spec, is_placed=placed))
