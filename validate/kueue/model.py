"""The types of the admission solver: verdict, shortage, pod set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Literal

from gangplan.kueue.model import FlavorResource
from gangplan.kueue.units import KUEUE_PODS
from gangplan.objects import Body
from gangplan.records import dataclass

AdmissionOutcome = Literal["admit", "queue", "never"]
# Quota in use: ClusterQueue -> flavor -> resource -> cores, bytes or devices.
FlavorUsage = Mapping[str, Mapping[str, Mapping[str, Fraction]]]
CountedAmounts = dict[str, int]  # resource -> thousandths of a core, or whole bytes and devices

# Reasons of the condition QuotaReserved (KEP-10852; apis/kueue/v1beta2/workload_types.go, Kueue v0.19.2).
NO_MATCHING_FLAVOR = "NoMatchingFlavor"
EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
TOPOLOGY_FAILED = "TopologyPlacementFailed"
MISCONFIGURED = "Misconfigured"
SUSPENDED_REASON = "Suspended"
WAITING_FOR_QUOTA = "WaitingForQuota"
# Not a condition: no Workload exists because an API server or webhook refuses it or Kueue cannot create it.
NO_WORKLOAD = "NoWorkload"


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource that is short: the requests of all pod sets so far, and the most that the queue can get."""

    podset: str
    resource: str
    flavor: str
    requested: Fraction
    most: Fraction


@dataclass(frozen=True, slots=True)
class AdmissionVerdict:
    """Kueue's verdict about a run.

    `reason` and `message` are those of the Workload's condition QuotaReserved (reason "" if it is admitted;
    `NoWorkload` with the API server's message if no Workload is created). `assignment` is pod set -> resource
    -> flavor; `requests` is pod set -> (pods, amounts of one pod in cores, bytes and devices); `queue` is the
    ClusterQueue; `borrowed` is (flavor, resource) -> the amount beyond the queue's own quota. `placement` is
    pod set -> topology domain (values of its levels, widest first) -> pods. Kueue tries the remaining flavors
    after each failure, so its condition describes the last attempt; `cause` and `cause_message` describe the
    attempt that got furthest, and so do `failed` (the pod set), `shortages` and `mismatches` (flavor -> why
    the pods cannot use it).
    """

    outcome: AdmissionOutcome
    reason: str = ""
    message: str = ""
    assignment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    requests: Mapping[str, tuple[int, Mapping[str, Fraction]]] = field(default_factory=dict)
    queue: str = ""
    borrowed: Mapping[FlavorResource, Fraction] = field(default_factory=dict)
    placement: Mapping[str, Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    cause: str = ""
    cause_message: str = ""
    shortages: tuple[Shortage, ...] = ()
    mismatches: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    about: str = ""  # kind of the object that is the cause, if it is not the run

    @property
    def usage(self) -> dict[FlavorResource, Fraction]:
        """Its usage of each flavor and resource: cores, bytes, devices, and pods if they count."""
        total: dict[FlavorResource, Fraction] = {}
        for podset, flavors in self.assignment.items():
            count, each = self.requests[podset]
            for resource, flavor in flavors.items():
                one = each.get(resource, Fraction(resource == KUEUE_PODS))
                total[flavor, resource] = total.get((flavor, resource), Fraction(0)) + count * one
        return total


def count_pods_kueue_admits_without_node(verdict: AdmissionVerdict) -> dict[str, int]:
    """Return the pods per pod set that Kueue admits but does not place, as they do not fill a slice."""
    found = {}
    for name, places in verdict.placement.items():
        rest = verdict.requests[name][0] - sum(places.values())
        if rest > 0:
            found[name] = rest
    return found


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods: their number, their pod template, and the index of the object with the template.

    `claimed` are the devices that each pod gets by claims, by the name of their class; `uncountable` says why
    Kueue counts not all of them.
    """

    name: str
    count: int
    template: Body
    index: int = 0
    claimed: tuple[tuple[str, int], ...] = ()
    uncountable: str = ""

    @property
    def spec(self) -> Body:
        """The pod's spec."""
        found: Body = self.template.get("spec") or {}
        return found

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the pods."""
        found: Mapping[str, str] = (self.template.get("metadata") or {}).get("annotations") or {}
        return found


class NeverError(Exception):
    """The run can never be admitted."""

    def __init__(self, reason: str, message: str, about: str = "", detail: str = "") -> None:
        """`about` is the kind of the object that is the cause, `detail` is what Kueue reports elsewhere."""
        super().__init__(message)
        self.detail = detail
        self.reason = reason
        self.message = message
        self.about = about
