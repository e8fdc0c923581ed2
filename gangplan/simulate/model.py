"""What the simulation thinks with: queues and cohorts of a cluster, runs that arrive, and what happens to
them.

Amounts are whole numbers as Kueue counts them (pkg/resources, v0.19.2): thousandths of a core for cpu, whole
units (bytes, devices) for everything else, both rounded up. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

Key = tuple[str, str]  # flavor, resource
Happening = Literal["admitted", "preempted", "finished"]
NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Preemption:
    """Preemption of a queue, in Kueue's words. `threshold` is maxPriorityThreshold of borrowWithinCohort."""

    within: str = NEVER
    reclaim: str = NEVER
    borrow: str = NEVER
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Fungibility:
    """When the search for a flavor goes on (spec.flavorFungibility); the defaults are Kueue's."""

    when_borrow: str = "MayStopSearch"
    when_preempt: str = "TryNextFlavor"
    preference: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group: resources that always come from one flavor, and the flavors in order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A ClusterQueue or a Cohort with its amounts; `parent` is empty for a root."""

    name: str
    parent: str
    nominal: Mapping[Key, int]
    borrowing: Mapping[Key, int]
    lending: Mapping[Key, int]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Queue(Member):
    """A ClusterQueue."""

    groups: tuple[Group, ...] = ()
    is_strict: bool = False
    preemption: Preemption = Preemption()
    fungibility: Fungibility = Fungibility()


@dataclass(frozen=True, slots=True)
class Setup:
    """All of a cluster's queues. `strategies` are those of fair sharing; `kueue` is the minor (0, 19)."""

    queues: tuple[Queue, ...]
    cohorts: tuple[Member, ...]
    fair_sharing: bool = True
    strategies: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    kueue: tuple[int, int] = (0, 19)

    def without_borrowing(self) -> Setup:
        """The same quotas as fixed walls: every queue stands alone, as a ResourceQuota per team would have
        it.
        """
        alone = tuple(
            Queue(
                queue.name,
                "",
                queue.nominal,
                {},
                {},
                queue.weight,
                queue.groups,
                queue.is_strict,
                Preemption(queue.preemption.within),
                queue.fungibility,
            )
            for queue in self.queues
        )
        return Setup(alone, (), False, self.strategies, self.kueue)


@dataclass(frozen=True, slots=True)
class Podset:
    """Pods of one shape: how many, the amounts of all of them together, and the flavors whose nodes they fit.

    `flavors` None is any flavor.
    """

    name: str
    count: int
    amounts: Mapping[str, int]
    flavors: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A run that asks for quota at `arrival` and holds it for `duration`.

    A preempted run starts again from its last checkpoint: `checkpoint` is the time between two of them, 0
    means that nothing is ever lost, None that everything is.
    """

    name: str
    queue: str
    podsets: tuple[Podset, ...]
    priority: int = 0
    duration: float = 0.0
    arrival: float = 0.0
    checkpoint: float | None = None
    team: str = ""

    @property
    def is_hopeless(self) -> bool:
        """Whether some of its pods fit no flavor at all, so that it waits for ever."""
        return any(one.flavors is not None and not one.flavors for one in self.podsets)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run."""

    time: float
    what: Happening
    run: str


def kueue_units(resource: str, amount: Fraction) -> int:
    """An amount as Kueue counts it (resources.ResourceValue, v0.19.2)."""
    return ceil(amount * 1000) if resource == "cpu" else ceil(amount)
