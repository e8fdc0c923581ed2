"""The pods of a run as they are once Kueue has admitted it, and whether they find nodes.

Kueue gives an admitted pod set the labels of its flavors as node selector, and their tolerations
(pkg/podset/podset.go FromAssignment, Kueue v0.19.2). What it would not admit has no pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.kueue import Verdict
from gangplan.validate.kueue.model import left_over
from gangplan.validate.kueue.request import RunRequest, request_of
from gangplan.validate.kueue.solver import idle_verdict
from gangplan.validate.memo import Memo, key_of
from gangplan.validate.scheduler.fits import fit_pods
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.pods import PodShape, bounds_of, pods_of
from gangplan.validate.world import World


@dataclass(frozen=True, slots=True)
class AdmittedPods:
    """The pods of a run on an idle cluster, by pod set, and whether they find nodes."""

    pods: tuple[PodShape, ...]
    fit: Fit


class _Answers:
    """What was answered, by request, and by pods, flavors and bounds; for `World.once`."""

    def __init__(self, _: World) -> None:
        self.of_runs: Memo[AdmittedPods] = Memo()
        self.of_pods: Memo[AdmittedPods] = Memo()


def admitted(world: World, request: RunRequest) -> AdmittedPods | None:
    """The pods of a run that asks for this; None when Kueue never admits it. Equal requests get one answer.

    Raises `NeverError` where the run's runtime does not exist.
    """
    if idle_verdict(world, request).outcome == "never":
        return None
    return world.once(_Answers).of_runs.answer(request.key, lambda: _alike(world, request))


def _alike(world: World, request: RunRequest) -> AdmittedPods:
    """The same, of a run of another namespace and queue where nothing else is another.

    Names count only where pods have constraints on other pods.
    """
    if request.job is None or request.names_matter or request.refused or request.pods_key is None:
        return admit(world, request)
    assignment = idle_verdict(world, request).assignment
    key = key_of(request.pods_key, request.job["kind"], assignment, bounds_of(world, request))
    return world.once(_Answers).of_pods.answer(key, lambda: admit(world, request))


def admit(world: World, request: RunRequest) -> AdmittedPods:
    """The same for a run that Kueue admits, without looking at earlier answers."""
    verdict = idle_verdict(world, request)
    pods = [_on_flavors(world, one, verdict.assignment.get(one.name, {})) for one in pods_of(world, request)]
    return AdmittedPods(tuple(pods), fit_pods(world, pods))


def admitted_fit(world: World, bodies: Sequence[Body]) -> Fit | None:
    """Whether the pods of an admitted run find nodes; None when Kueue never admits it."""
    request = request_of(world, bodies)
    found = admitted(world, request)
    return None if found is None else _without_place(found.fit, idle_verdict(world, request))


def _without_place(fit: Fit, verdict: Verdict) -> Fit:
    """Less the pods that Kueue has no place for: they keep its scheduling gate for ever.

    Kueue places whole slices and says nothing of the rest (pkg/cache/scheduler/tas_flavor_snapshot.go divides
    the number of pods by the size of a slice, v0.15.2 to v0.19.2). Its ungater frees only pods with a place.
    """
    placements, gated = dict(fit.placements), 0
    for name, rest in left_over(verdict).items():
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


def _on_flavors(world: World, one: PodShape, assigned: Mapping[str, str]) -> PodShape:
    """The pods with what their flavors add. On a flavor with topology, Kueue itself chooses the nodes."""
    spec, placed = dict(one.spec), one.is_placed
    for name in sorted(set(assigned.values())):
        flavor = ((world.find("ResourceFlavor", name) or {}).get("spec")) or {}
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **(flavor.get("nodeLabels") or {})}
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *(flavor.get("tolerations") or ())]
        placed = placed or bool(flavor.get("topologyName"))
    return replace(one, spec=spec, is_placed=placed)
