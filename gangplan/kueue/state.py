"""The state of a scheduling cycle: the tree of quotas, admitted workloads and pending workloads.

Ported from pkg/cache/scheduler/{snapshot,clusterqueue}.go and pkg/workload/workload.go of Kueue v0.19.2. Up
to v0.18.2 an interrupted search does not count cycles (`keeps_progress`).
"""

from __future__ import annotations

from dataclasses import field
from math import inf

from gangplan.kueue.model import NEVER, ClusterQueue, KueueWorkload, Podset, QuotaSetup
from gangplan.kueue.tree import QuotaTree
from gangplan.records import dataclass

# pod set, group, flavor -> its requests: (flavor and resource, amount)
WorkloadRequests = tuple[tuple[tuple[tuple[tuple[int, int], ...], ...], ...], ...]
TriedFlavors = tuple[tuple[int, ...], ...]  # pod set, group -> index of the last flavor tried, -1 if all were


@dataclass(slots=True, eq=False)
class PendingWorkload:
    """A pending workload (`workload.Info`). `number` is its position in the order of submission.

    `rest` is the remaining duration in seconds. `tried` is how far the search for flavors got, in cycle
    `tried_in` at generation `tried_at` of its queue.
    """

    run: KueueWorkload
    queue: int
    number: int
    rest: float
    shape: tuple[object, ...]
    plan: WorkloadRequests
    tried: TriedFlavors | None = None
    tried_in: int = 0
    tried_at: int = 0

    @property
    def order(self) -> tuple[int, float, int]:
        """The sort key: priority, then time of arrival (preempted runs keep theirs), then submission."""
        return (-self.run.priority, self.run.arrival, self.number)


@dataclass(slots=True, eq=False)
class AdmittedWorkload:
    """An admitted workload that holds quota since `since`; `number` counts admissions."""

    asking: PendingWorkload
    usage: dict[int, int]
    since: float
    number: int

    @property
    def run(self) -> KueueWorkload:
        """The workload."""
        return self.asking.run

    @property
    def queue(self) -> int:
        """The number of its queue."""
        return self.asking.queue


@dataclass(slots=True)
class SchedulingState:
    """A cluster at one moment (`Snapshot`).

    `generation` of a queue counts the runs that left it (`AllocatableResourceGeneration`).
    """

    setup: QuotaSetup
    tree: QuotaTree = field(init=False)
    holdings: list[dict[int, AdmittedWorkload]] = field(init=False)  # by queue, then by the run's number
    generation: list[int] = field(init=False)
    cycle: int = 0
    _lowest: dict[int, float] = field(default_factory=dict)
    _borrowers: dict[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start with no quota in use."""
        self.tree = QuotaTree(self.setup.queues, self.setup.cohorts)
        self.holdings = [{} for _ in self.setup.queues]
        self.generation = [0 for _ in self.setup.queues]

    def queue(self, number: int) -> ClusterQueue:
        """Return a queue by its number."""
        return self.setup.queues[number]

    def hold(self, holding: AdmittedWorkload) -> None:
        """Record an admitted run (`AddWorkload`); the tree already counts it."""
        self.holdings[holding.queue][holding.asking.number] = holding
        self._changed()

    def release(self, holding: AdmittedWorkload) -> None:
        """Release the quota of a run (`RemoveWorkload`)."""
        del self.holdings[holding.queue][holding.asking.number]
        self.tree.remove(holding.queue, holding.usage)
        self.generation[holding.queue] += 1
        self._changed()

    def _changed(self) -> None:
        self._lowest.clear()
        self._borrowers.clear()

    def has_candidates(self, asking: PendingWorkload) -> bool:
        """Return whether candidates may exist: lower priorities in its queue, or queues that borrow.

        It looks at the quota held between cycles and returns True if unsure. This is a shortcut for
        `findCandidates` (preemption.go) that Kueue does not have.
        """
        queue, rules = asking.queue, self.queue(asking.queue).preemption
        if rules.within != NEVER:
            lowest, mine = self._lowest_in(queue), asking.run.priority
            if lowest < mine or (lowest == mine and rules.within == "LowerOrNewerEqualPriority"):
                return True
        if rules.reclaim == NEVER or self.tree.parent[queue] < 0:
            return False
        return bool(self._borrowers_of(self.tree.root(queue)) - {queue})

    def _lowest_in(self, queue: int) -> float:
        if queue not in self._lowest:
            held = self.holdings[queue].values()
            self._lowest[queue] = min((one.run.priority for one in held), default=inf)
        return self._lowest[queue]

    def _borrowers_of(self, root: int) -> frozenset[int]:
        if root not in self._borrowers:
            usage, own = self.tree.usage, self.tree.nominal
            self._borrowers[root] = frozenset(
                queue
                for queue in self.tree.queues_below(root)
                if any(used > there for used, there in zip(usage[queue], own[queue], strict=True))
            )
        return self._borrowers[root]


def workload_equivalence_key_of(run: KueueWorkload) -> tuple[object, ...]:
    """Return the key of runs that are equal to the scheduler: pods and priority.

    See `computeSchedulingHash`, v0.18.2 and later.
    """
    return (run.priority, *(_build_podset_key(podset) for podset in run.podsets))


def _build_podset_key(podset: Podset) -> tuple[object, ...]:
    return podset.name, podset.count, tuple(sorted(podset.amounts.items())), podset.flavors


def list_podset_requests_by_flavor(
    tree: QuotaTree, queue: ClusterQueue, run: KueueWorkload
) -> WorkloadRequests:
    """Return the requests of each pod set in each flavor that its pods fit, by group; devices come first.

    Computed once for the shortcut in `cycle.py`, which Kueue does not have.
    """
    return tuple(
        tuple(
            tuple(
                _list_podset_requests(tree, podset, flavor, group.resources)
                for flavor in group.flavors
                if _may_podset_use_flavor(podset, flavor)
            )
            for group in queue.groups
            if any(podset.amounts.get(resource) for resource in group.resources)
        )
        for podset in run.podsets
    )


def _may_podset_use_flavor(podset: Podset, flavor: str) -> bool:
    return podset.flavors is None or flavor in podset.flavors


def _list_podset_requests(
    tree: QuotaTree, podset: Podset, flavor: str, resources: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    wanted = sorted((name in ("cpu", "memory"), name) for name in resources if podset.amounts.get(name))
    return tuple((tree.index[flavor, name], podset.amounts[name]) for _, name in wanted)
