"""The types of the port of Kueue: queues and cohorts of a cluster, and runs that request quota.

The fields are those of apis/kueue/v1beta2/{clusterqueue,cohort,workload}_types.go of Kueue v0.19.2; v0.15.2
and v0.18.2 have them too. Amounts are whole numbers as Kueue counts them (`units`). Times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gangplan.kueue.units import KUEUE_PODS
from gangplan.model.support import LATEST_KUEUE, KueueLine
from gangplan.records import dataclass

FlavorResource = tuple[str, str]  # flavor, resource
NEVER = "Never"


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """The preemption policies of a queue, in Kueue's words (`ClusterQueuePreemption`).

    `threshold` is the maxPriorityThreshold of borrowWithinCohort.
    """

    within: str = NEVER
    reclaim: str = NEVER
    borrow: str = NEVER
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Fungibility:
    """When the search for a flavor continues (spec.flavorFungibility); the defaults are Kueue's."""

    when_borrow: str = "MayStopSearch"
    when_preempt: str = "TryNextFlavor"
    preference: str = ""


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """A resource group: resources that always come from one flavor, and the flavors in order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A ClusterQueue or a Cohort with its amounts; `parent` is empty for a root."""

    name: str
    parent: str
    nominal: Mapping[FlavorResource, int]
    borrowing: Mapping[FlavorResource, int]
    lending: Mapping[FlavorResource, int]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ClusterQueue(Member):
    """A ClusterQueue with its resource groups and policies."""

    groups: tuple[ResourceGroup, ...] = ()
    is_strict: bool = False
    preemption: PreemptionRules = PreemptionRules()
    fungibility: Fungibility = Fungibility()

    @property
    def has_quota(self) -> bool:
        """Whether it owns any quota except for a number of pods."""
        return any(amount for (_, resource), amount in self.nominal.items() if resource != KUEUE_PODS)

    def group_of(self, resource: str) -> ResourceGroup | None:
        """Return the group of a resource (`RGByResource`, pkg/cache/scheduler/clusterqueue_snapshot.go)."""
        return next((group for group in self.groups if resource in group.resources), None)


@dataclass(frozen=True, slots=True)
class QuotaSetup:
    """All queues and cohorts of a cluster. `strategies` are those of fair sharing."""

    queues: tuple[ClusterQueue, ...]
    cohorts: tuple[Member, ...]
    fair_sharing: bool = True
    strategies: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    kueue: KueueLine = LATEST_KUEUE

    def without_borrowing(self) -> QuotaSetup:
        """Return the same quotas without borrowing, as a ResourceQuota per team would be."""
        # A queue without its own quota, such as a sweep's, uses its cohort's quota, so they stay together.
        shared = {one.parent for one in self.queues if one.parent and not one.has_quota}
        alone = tuple(
            replace(
                queue,
                parent=queue.parent if queue.parent in shared else "",
                borrowing={} if queue.has_quota else queue.borrowing,
                lending={} if queue.has_quota else queue.lending,
                preemption=replace(queue.preemption, borrow=NEVER)
                if queue.parent in shared
                else PreemptionRules(queue.preemption.within),
            )
            for queue in self.queues
        )
        roots = tuple(
            replace(one, parent="", borrowing={}, lending={}) for one in self.cohorts if one.name in shared
        )
        return replace(self, queues=alone, cohorts=roots, fair_sharing=False)


@dataclass(frozen=True, slots=True)
class Podset:
    """Equal pods (`PodSet`): their number, their total amounts, and the flavors whose nodes they fit.

    `flavors` None means any flavor.
    """

    name: str
    count: int
    amounts: Mapping[str, int]
    flavors: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class KueueWorkload:
    """A run that requests quota at `arrival` and holds it for `duration`.

    A preempted run restarts from its last checkpoint: `checkpoint` is the interval between two of them; 0
    means that no work is ever lost, None that all of it is.
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
        """Whether a pod set fits no flavor, so that the workload can never be admitted."""
        return any(one.flavors is not None and not one.flavors for one in self.podsets)
