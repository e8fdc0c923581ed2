"""What is found for the pod sets of a workload: flavors, reasons, and the one reason of the whole.

Source: Kueue v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,flavor_assigner_attempts}.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from gangplan.kueue.flavors import Mode
from gangplan.kueue.model import Key
from gangplan.kueue.units import PODS
from gangplan.records import dataclass
from gangplan.validate.kueue.annotations import TopologyRequest
from gangplan.validate.kueue.model import (
    EXCEEDS,
    MISCONFIGURED,
    NO_MATCHING_FLAVOR,
    TOPOLOGY,
    WAITING,
    Amounts,
    PodSet,
    Shortage,
)
from gangplan.validate.kueue.standing import StandingQueue

SEVERITY = {"": 0, MISCONFIGURED: 0, TOPOLOGY: 1, WAITING: 2, EXCEEDS: 3, NO_MATCHING_FLAVOR: 4}
FIT, NO_FIT = Mode.FIT, Mode.NO_FIT


@dataclass(slots=True)
class Wanted:
    """A pod set with what quota counts of one pod, and what its node must have: `placed`."""

    pods: PodSet
    each: Amounts
    topology: TopologyRequest | None
    placed: Amounts

    def total(self, covers_pods: bool) -> Amounts:
        """What all pods ask for; the pods themselves where the queue counts them."""
        out = {name: amount * self.pods.count for name, amount in self.each.items()}
        if covers_pods:
            out[PODS] = self.pods.count
        return out


@dataclass(slots=True)
class PodSetChoice:
    """What was found for one pod set: resource -> (flavor, fits now), and why not."""

    wanted: Wanted
    flavors: dict[str, tuple[str, Mode]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    attempts: dict[str, tuple[Mode, str]] = field(default_factory=dict)  # flavor -> (mode, reason)
    tried: dict[str, int] = field(default_factory=dict)  # resource -> last flavor tried; -1 where all were
    error: str = ""
    places: dict[tuple[str, ...], int] = field(default_factory=dict)  # topology domain -> pods

    @property
    def mode(self) -> Mode:
        """The worst of the flavors."""
        if not self.reasons and not self.error:
            return FIT
        return min((mode for _, mode in self.flavors.values()), default=NO_FIT) if not self.error else NO_FIT


@dataclass(slots=True)
class WorkloadAssignment:
    """All pod sets so far: what they ask of each flavor, and what does not fit even an empty cluster."""

    chosen: list[PodSetChoice] = field(default_factory=list)
    usage: dict[Key, int] = field(default_factory=dict)
    shortages: list[Shortage] = field(default_factory=list)
    mismatches: dict[str, str] = field(default_factory=dict)  # flavor -> why it does not take the pods
    is_cut: bool = False  # pod sets after a failed one were not looked at

    @property
    def mode(self) -> Mode:
        """The worst of the pod sets."""
        return min((one.mode for one in self.chosen), default=NO_FIT)

    def message(self) -> str:
        """The condition's message."""
        said = []
        for one in self.chosen:
            if one.error:
                return f"failed to assign flavors to pod set {one.wanted.pods.name}: {one.error}"
            if one.reasons:
                why = ", ".join(sorted(one.reasons))
                said.append(f"couldn't assign flavors to pod set {one.wanted.pods.name}: {why}")
        return "; ".join(said)


def attempt(found: PodSetChoice, flavor: str, mode: Mode, why: str) -> None:
    """Note a flavor that was tried; the worst of several times counts."""
    known = found.attempts.get(flavor)
    found.attempts[flavor] = (min(known[0], mode), worse(known[1], why)) if known else (mode, why)


def worse(one: str, other: str) -> str:
    """The graver of two reasons."""
    return one if SEVERITY[one] >= SEVERITY[other] else other


def grouped(wanted: Sequence[Wanted]) -> list[list[tuple[int, Wanted]]]:
    """Pod sets with one group name go together."""
    groups: dict[str, list[tuple[int, Wanted]]] = {}
    for at, one in enumerate(wanted):
        group = one.topology.group if one.topology else ""
        groups.setdefault(group or f"#{at}", []).append((at, one))
    return list(groups.values())


def no_fit_reason(queue: StandingQueue, assignment: WorkloadAssignment) -> str:
    """The one reason of a workload that fits nowhere (resolveNoFitReason, v0.19.2).

    Where Kueue comes to none it is `Misconfigured` for an error, else `NoMatchingFlavor`.
    """
    overall = ""
    for one in assignment.chosen:
        if one.mode != NO_FIT:
            continue
        if not one.attempts:
            overall = worse(overall, NO_MATCHING_FLAVOR)
            continue
        least: dict[int, str] = {}
        for flavor, (mode, why) in one.attempts.items():
            if mode == NO_FIT:
                at = next(at for at, group in enumerate(queue.quotas.groups) if flavor in group.flavors)
                if at not in least or SEVERITY[why] < SEVERITY[least[at]]:
                    least[at] = why
        for why in least.values():
            overall = worse(overall, why)
    if any(one.error for one in assignment.chosen):
        return overall or MISCONFIGURED
    return overall or NO_MATCHING_FLAVOR
