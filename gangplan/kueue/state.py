"""What a scheduling cycle works on: the tree of quotas, the runs that hold quota, the runs that ask for
some.

Written after pkg/cache/scheduler/{snapshot,clusterqueue}.go and pkg/workload/workload.go of Kueue v0.19.2. Up
to v0.18.2 there is no count of cycles in a search that was interrupted (`keeps_progress`).
"""

from __future__ import annotations

from dataclasses import field
from math import inf

from gangplan.kueue.model import NEVER, ClusterQueue, Podset, Setup, Workload
from gangplan.kueue.tree import QuotaTree
from gangplan.records import dataclass

# podset, group, flavor -> what is asked of it: (flavor and resource, amount)
Plan = tuple[tuple[tuple[tuple[tuple[int, int], ...], ...], ...], ...]
Tried = tuple[tuple[int, ...], ...]  # podset, group -> index of the flavor tried last, -1 when all were


@dataclass(slots=True, eq=False)
class Asking:
    """A run on its way through the queue (`workload.Info`). `number` is its place in the order of submission.

    `tried` is how far the search for flavors came, in cycle `tried_in` at generation `tried_at` of its queue.
    """

    run: Workload
    queue: int
    number: int
    rest: float
    shape: tuple[object, ...]
    plan: Plan
    tried: Tried | None = None
    tried_in: int = 0
    tried_at: int = 0

    @property
    def order(self) -> tuple[int, float, int]:
        """Smaller comes first: priority, then time of arrival (preempted runs keep theirs), then
        submission.
        """
        return (-self.run.priority, self.run.arrival, self.number)


@dataclass(slots=True, eq=False)
class Holding:
    """A run that holds quota since `since`; `number` counts admissions."""

    asking: Asking
    usage: dict[int, int]
    since: float
    number: int

    @property
    def run(self) -> Workload:
        """The run."""
        return self.asking.run

    @property
    def queue(self) -> int:
        """Its queue."""
        return self.asking.queue


@dataclass(slots=True)
class State:
    """A cluster at a moment (`Snapshot`). `generation` of a queue counts the runs that left it
    (`AllocatableResourceGeneration`).
    """

    setup: Setup
    tree: QuotaTree = field(init=False)
    holdings: list[dict[int, Holding]] = field(init=False)  # by queue, then by the run's number
    generation: list[int] = field(init=False)
    cycle: int = 0
    _lowest: dict[int, float] = field(default_factory=dict)
    _borrowers: dict[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Nothing is used yet."""
        self.tree = QuotaTree(self.setup.queues, self.setup.cohorts)
        self.holdings = [{} for _ in self.setup.queues]
        self.generation = [0 for _ in self.setup.queues]

    def queue(self, number: int) -> ClusterQueue:
        """A queue by its number."""
        return self.setup.queues[number]

    def hold(self, holding: Holding) -> None:
        """A run got quota (`AddWorkload`); the tree counts it already."""
        self.holdings[holding.queue][holding.asking.number] = holding
        self._changed()

    def release(self, holding: Holding) -> None:
        """A run gives its quota back (`RemoveWorkload`)."""
        del self.holdings[holding.queue][holding.asking.number]
        self.tree.remove(holding.queue, holding.usage)
        self.generation[holding.queue] += 1
        self._changed()

    def _changed(self) -> None:
        self._lowest.clear()
        self._borrowers.clear()

    def has_candidates(self, asking: Asking) -> bool:
        """Whether some run might have to give way to this one: lower ones of its queue, other queues that
        borrow.

        Looks at what is held between cycles, and says yes where it is not sure: a short cut for
        `findCandidates` (preemption.go), which has no counterpart in Kueue.
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


def shape_of(run: Workload) -> tuple[object, ...]:
    """What makes runs equal to the scheduler (`computeSchedulingHash`, v0.18.2 and later): pods and
    priority.
    """
    return (run.priority, *(_shape(podset) for podset in run.podsets))


def _shape(podset: Podset) -> tuple[object, ...]:
    return podset.name, podset.count, tuple(sorted(podset.amounts.items())), podset.flavors


def plan_of(tree: QuotaTree, queue: ClusterQueue, run: Workload) -> Plan:
    """What each podset would ask of each flavor that its pods fit, group by group; devices come first.

    Worked out once, for the short cut of `cycle`; Kueue has no such thing.
    """
    return tuple(
        tuple(
            tuple(
                _asked(tree, podset, flavor, group.resources)
                for flavor in group.flavors
                if _suits(podset, flavor)
            )
            for group in queue.groups
            if any(podset.amounts.get(resource) for resource in group.resources)
        )
        for podset in run.podsets
    )


def _suits(podset: Podset, flavor: str) -> bool:
    return podset.flavors is None or flavor in podset.flavors


def _asked(
    tree: QuotaTree, podset: Podset, flavor: str, resources: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    wanted = sorted((name in ("cpu", "memory"), name) for name in resources if podset.amounts.get(name))
    return tuple((tree.index[flavor, name], podset.amounts[name]) for _, name in wanted)
