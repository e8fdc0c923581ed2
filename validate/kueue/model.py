"""The nouns of the admission solver: a verdict, a pod set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Literal

from gangplan.kueue.model import Key
from gangplan.kueue.units import PODS
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body

Outcome = Literal["admit", "queue", "never"]
# What is in use: ClusterQueue -> flavor -> resource -> cores, bytes or devices.
Usage = Mapping[str, Mapping[str, Mapping[str, Fraction]]]
Amounts = dict[str, int]  # resource -> thousandths of a core, or whole bytes and devices

# Reasons of the condition QuotaReserved (KEP-10852; apis/kueue/v1beta2/workload_types.go, Kueue v0.19.2).
NO_MATCHING_FLAVOR = "NoMatchingFlavor"
EXCEEDS = "ExceedsMaxQuota"
TOPOLOGY = "TopologyPlacementFailed"
MISCONFIGURED = "Misconfigured"
SUSPENDED = "Suspended"
WAITING = "WaitingForQuota"
# No condition: there is no Workload, because an API server or webhook refuses it or Kueue cannot make it.
NO_WORKLOAD = "NoWorkload"


@dataclass(frozen=True, slots=True)
class Shortage:
    """Too much of one resource: what all pod sets so far ask of a flavor, and the most the queue can get."""

    podset: str
    resource: str
    flavor: str
    requested: Fraction
    most: Fraction


@dataclass(frozen=True, slots=True)
class Verdict:
    """What Kueue says of a run.

    `reason` and `message` are those of the Workload's condition QuotaReserved (reason "" when it is admitted;
    `NoWorkload` with the words of the API server where no Workload comes to be). `assignment` is pod set ->
    resource -> flavor; `requests` is pod set -> (pods, amounts of one pod in cores, bytes and devices);
    `queue` is the ClusterQueue; `borrowed` is (flavor, resource) -> what is beyond the queue's own quota.
    `placement` is pod set -> topology domain (values of its levels, widest first) -> pods.
    Kueue tries the flavors that are left after each failure, so its condition tells of the last attempt;
    `cause` and `cause_message` are of the attempt that came furthest, and so are `failed` (the pod set),
    `shortages` and `mismatches` (flavor -> why it does not take the pods).
    """

    outcome: Outcome
    reason: str = ""
    message: str = ""
    assignment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    requests: Mapping[str, tuple[int, Mapping[str, Fraction]]] = field(default_factory=dict)
    queue: str = ""
    borrowed: Mapping[Key, Fraction] = field(default_factory=dict)
    placement: Mapping[str, Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    cause: str = ""
    cause_message: str = ""
    shortages: tuple[Shortage, ...] = ()
    mismatches: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    about: str = ""  # kind of the object that is to blame, where it is not the run

    @property
    def usage(self) -> dict[Key, Fraction]:
        """What it takes of each flavor and resource: cores, bytes, devices, and pods where they count."""
        total: dict[Key, Fraction] = {}
        for podset, flavors in self.assignment.items():
            count, each = self.requests[podset]
            for resource, flavor in flavors.items():
                one = each.get(resource, Fraction(resource == PODS))
                total[flavor, resource] = total.get((flavor, resource), Fraction(0)) + count * one
        return total


def left_over(verdict: Verdict) -> dict[str, int]:
    """Pods of each pod set that Kueue admits without a place in the topology: what no whole slice holds."""
    found = {}
    for name, places in verdict.placement.items():
        rest = verdict.requests[name][0] - sum(places.values())
        if rest > 0:
            found[name] = rest
    return found


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one shape: how many, their pod template, and the index of the object that it stands in."""

    name: str
    count: int
    template: Body
    index: int = 0

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
        """`about` is the kind of the object to blame, `detail` what Kueue says elsewhere."""
        super().__init__(message)
        self.detail = detail
        self.reason = reason
        self.message = message
        self.about = about
