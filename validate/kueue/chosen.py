"""The results for the pod sets of a workload: flavors, reasons, and the reason of the whole workload.

Source: Kueue v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,flavor_assigner_attempts}.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from gangplan.kueue.flavors import FlavorMode
from gangplan.kueue.model import FlavorResource
from gangplan.kueue.units import KUEUE_PODS
from gangplan.records import dataclass
from gangplan.validate.kueue.annotations import TopologyRequest
from gangplan.validate.kueue.model import (
    EXCEEDS_MAX_QUOTA,
    MISCONFIGURED,
    NO_MATCHING_FLAVOR,
    TOPOLOGY_FAILED,
    WAITING_FOR_QUOTA,
    CountedAmounts,
    PodSet,
    Shortage,
)
from gangplan.validate.kueue.standing import QueueState

REASON_SEVERITY = {
    "": 0,
    MISCONFIGURED: 0,
    TOPOLOGY_FAILED: 1,
    WAITING_FOR_QUOTA: 2,
    EXCEEDS_MAX_QUOTA: 3,
    NO_MATCHING_FLAVOR: 4,
}
FIT_MODE, NO_FIT_MODE = FlavorMode.FIT, FlavorMode.NO_FIT


@dataclass(slots=True)
class PodSetRequest:
    """A pod set with the requests of one pod: `each` for quota, `placed` for its node."""

    pods: PodSet
    each: CountedAmounts
    topology: TopologyRequest | None
    placed: CountedAmounts

    def total(self, covers_pods: bool) -> CountedAmounts:
        """Return the requests of all pods, including the pods themselves if the queue counts them."""
        out = {name: amount * self.pods.count for name, amount in self.each.items()}
        if covers_pods:
            out[KUEUE_PODS] = self.pods.count
        return out


@dataclass(slots=True)
class PodSetChoice:
    """The result for one pod set: resource -> (flavor, mode), and the reasons why it does not fit."""

    wanted: PodSetRequest
    flavors: dict[str, tuple[str, FlavorMode]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    attempts: dict[str, tuple[FlavorMode, str]] = field(default_factory=dict)  # flavor -> (mode, reason)
    tried: dict[str, int] = field(default_factory=dict)  # resource -> last flavor tried; -1 if all were
    error: str = ""
    places: dict[tuple[str, ...], int] = field(default_factory=dict)  # topology domain -> pods

    @property
    def mode(self) -> FlavorMode:
        """The worst mode of the flavors."""
        if not self.reasons and not self.error:
            return FIT_MODE
        return (
            min((mode for _, mode in self.flavors.values()), default=NO_FIT_MODE)
            if not self.error
            else NO_FIT_MODE
        )


@dataclass(slots=True)
class WorkloadAssignment:
    """All pod sets so far: their usage of each flavor, and what does not fit even an empty cluster."""

    chosen: list[PodSetChoice] = field(default_factory=list)
    usage: dict[FlavorResource, int] = field(default_factory=dict)
    shortages: list[Shortage] = field(default_factory=list)
    mismatches: dict[str, str] = field(default_factory=dict)  # flavor -> why the pods cannot use it
    is_cut: bool = False  # pod sets after a failed one were skipped

    @property
    def mode(self) -> FlavorMode:
        """The worst mode of the pod sets."""
        return min((one.mode for one in self.chosen), default=NO_FIT_MODE)

    def message(self) -> str:
        """Return the condition's message."""
        said = []
        for one in self.chosen:
            if one.error:
                return f"failed to assign flavors to pod set {one.wanted.pods.name}: {one.error}"
            if one.reasons:
                why = ", ".join(sorted(one.reasons))
                said.append(f"couldn't assign flavors to pod set {one.wanted.pods.name}: {why}")
        return "; ".join(said)


def record_tried_flavor_of_pod_set(found: PodSetChoice, flavor: str, mode: FlavorMode, why: str) -> None:
    """Record a flavor that was tried, with the worst mode and reason of several tries."""
    known = found.attempts.get(flavor)
    found.attempts[flavor] = (
        (min(known[0], mode), choose_worse_reason(known[1], why)) if known else (mode, why)
    )


def choose_worse_reason(one: str, other: str) -> str:
    """Return the more severe of two reasons."""
    return one if REASON_SEVERITY[one] >= REASON_SEVERITY[other] else other


def group_pod_sets_by_group_name(wanted: Sequence[PodSetRequest]) -> list[list[tuple[int, PodSetRequest]]]:
    """Group the pod sets by group name, with their indices."""
    groups: dict[str, list[tuple[int, PodSetRequest]]] = {}
    for at, one in enumerate(wanted):
        group = one.topology.group if one.topology else ""
        groups.setdefault(group or f"#{at}", []).append((at, one))
    return list(groups.values())


def find_workload_no_fit_reason(queue: QueueState, assignment: WorkloadAssignment) -> str:
    """Return the reason of a workload that fits nowhere (resolveNoFitReason, v0.19.2).

    Where Kueue has none, return `Misconfigured` for an error, else `NoMatchingFlavor`.
    """
    overall = ""
    for one in assignment.chosen:
        if one.mode != NO_FIT_MODE:
            continue
        if not one.attempts:
            overall = choose_worse_reason(overall, NO_MATCHING_FLAVOR)
            continue
        least: dict[int, str] = {}
        for flavor, (mode, why) in one.attempts.items():
            if mode == NO_FIT_MODE:
                at = next(at for at, group in enumerate(queue.quotas.groups) if flavor in group.flavors)
                if at not in least or REASON_SEVERITY[why] < REASON_SEVERITY[least[at]]:
                    least[at] = why
        for why in least.values():
            overall = choose_worse_reason(overall, why)
    if any(one.error for one in assignment.chosen):
        return overall or MISCONFIGURED
    return overall or NO_MATCHING_FLAVOR
