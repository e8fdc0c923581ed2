"""The tree of queues and cohorts with its usage: Kueue's quota arithmetic.

Ported from pkg/cache/scheduler/{resource_node,fair_sharing,clusterqueue_snapshot}.go and
pkg/scheduler/preemption/classical/hierarchical_preemption.go of Kueue v0.19.2. v0.18.2 has the same
arithmetic; v0.15.2 does too, but its sums wrap around where those of v0.18.2 saturate at 2^63-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy

from gangplan.kueue.hierarchy import is_in_cohort_cycle
from gangplan.kueue.model import ClusterQueue, FlavorResource, Member
from gangplan.kueue.units import MOST_INT64
from gangplan.records import dataclass

# A share of the lendable quota: (1, ratio) for a borrower of weight zero, else (0, ratio / weight). Larger
# means more.
ShareRank = tuple[int, float]
LEAST_SHARE: ShareRank = (0, -1.0)
Usage = Mapping[int, int]  # index of a flavor and resource -> amount


@dataclass(frozen=True, slots=True)
class DominantShare:
    """The dominant resource share of a node, and the flavors and resources it borrows (fair_sharing.go)."""

    rank: ShareRank
    borrowed: tuple[int, ...]

    @property
    def is_borrowing(self) -> bool:
        """Whether it borrows anything."""
        return bool(self.borrowed)


def _list_flavor_resources(one: Member) -> Iterator[FlavorResource]:
    """Yield every flavor and resource that a member names."""
    yield from (*one.nominal, *one.borrowing, *one.lending)
    if isinstance(one, ClusterQueue):
        for group in one.groups:
            yield from ((flavor, resource) for flavor in group.flavors for resource in group.resources)


class QuotaTree:
    """The quota tree of all queues of a cluster, with the functions of `resourceNode` (resource_node.go).

    Nodes are numbers: first queues in their order (`numbers`), then cohorts. The parent of a root is -1.

    Pairs of flavor and resource are also numbers (`keys`, `index`). A cohort that is only referred to exists
    too: it has no quota and passes on everything. If cohorts form a cycle, nodes are not linked to their
    parents, because such queues are inactive.
    """

    def __init__(
        self, queues: Sequence[Member], cohorts: Sequence[Member], ceiling: int = MOST_INT64
    ) -> None:
        """Read the quotas: whole numbers in any unit; `ceiling` is the largest number that Kueue counts."""
        members: list[Member] = [*queues, *cohorts]
        named = {one.name for one in cohorts}
        for one in list(members):
            if one.parent and one.parent not in named:
                named.add(one.parent)
                members.append(Member(one.parent, "", {}, {}, {}))
        self.count, self._ceiling = len(queues), ceiling
        self.numbers = {one.name: place for place, one in enumerate(queues)}
        places = {one.name: place for place, one in enumerate(members) if place >= self.count}
        self.keys: list[FlavorResource] = list(
            dict.fromkeys(key for one in members for key in _list_flavor_resources(one))
        )
        self.index = {key: place for place, key in enumerate(self.keys)}
        parents = {one.name: one.parent for one in cohorts}
        endless = {name for name in places if is_in_cohort_cycle(parents, name)}
        self.parent = [
            places[one.parent]
            if one.parent and (one.name if place >= self.count else one.parent) not in endless
            else -1
            for place, one in enumerate(members)
        ]
        self.children: list[list[int]] = [[] for _ in members]
        for node, above in enumerate(self.parent):
            if above >= 0:
                self.children[above].append(node)
        self.weight = [one.weight for one in members]
        self.nominal = [[one.nominal.get(key, 0) for key in self.keys] for one in members]
        self.limit = [[one.borrowing.get(key) for key in self.keys] for one in members]
        self._lending = [[one.lending.get(key) for key in self.keys] for one in members]
        self.usage = [[0] * len(self.keys) for _ in members]
        self._measure()

    def _measure(self) -> None:
        """Compute what depends only on quotas: subtree and local quotas, heights, `potentialAvailable`."""
        size, ceiling = range(len(self.keys)), self._ceiling
        self.subtree = [list(row) for row in self.nominal]
        self.local = [[0] * len(self.keys) for _ in self.nominal]
        self.height = [0] * len(self.parent)
        for node in reversed(list(self._downwards())):
            below, own, local = self.children[node], self.subtree[node], self.local[node]
            for key in size:
                lent = sum(self.subtree[one][key] - self.local[one][key] for one in below) if below else 0
                own[key] = min(ceiling, own[key] + lent)
            for key, lending in enumerate(self._lending[node]):
                if lending is not None:
                    local[key] = max(0, own[key] - lending)
            if node >= self.count and below:
                self.height[node] = 1 + max(self.height[one] for one in below)
        self.potential = [list(row) for row in self.subtree]
        for node in self._downwards():
            above = self.parent[node]
            if above < 0:
                continue
            local, given, limits = self.local[node], self.potential[above], self.limit[node]
            own, potential = self.subtree[node], self.potential[node]
            for key in size:
                most, limit = local[key] + given[key], limits[key]
                if limit is not None:
                    most = min(most, own[key] + limit)
                potential[key] = min(ceiling, most)
        self._lendable: dict[int, dict[str, int]] = {}

    def lendable(self, node: int) -> dict[str, int]:
        """Return the most that a node can lend, by resource."""
        if node not in self._lendable:
            total: dict[str, int] = {}
            for (_, resource), amount in zip(self.keys, self.potential[node], strict=True):
                total[resource] = total.get(resource, 0) + amount
            self._lendable[node] = total
        return self._lendable[node]

    def _downwards(self) -> Iterator[int]:
        """Yield every node, parents before children."""
        waiting = [node for node, above in enumerate(self.parent) if above < 0]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += self.children[node]

    # --- positions in the tree --------------------------------------------------------------------------

    def above(self, node: int) -> Iterator[int]:
        """Yield the cohorts from a node's parent up to the root."""
        while (node := self.parent[node]) >= 0:
            yield node

    def root(self, node: int) -> int:
        """Return the root of a node's tree, which may be the node itself."""
        while self.parent[node] >= 0:
            node = self.parent[node]
        return node

    def queues_below(self, node: int) -> Iterator[int]:
        """Yield all queues of a subtree."""
        if node < self.count:
            yield node
        for child in self.children[node]:
            yield from self.queues_below(child)

    # --- usage ------------------------------------------------------------------------------------------

    def loaded(self, usage: Mapping[str, Mapping[FlavorResource, int]]) -> QuotaTree:
        """Return the same quotas with only this usage by queue; usage that is not in the tree is ignored."""
        tree = copy(self)
        tree.usage = [[0] * len(self.keys) for _ in self.parent]
        for name in usage.keys() & self.numbers.keys():
            known = {self.index[key]: used for key, used in usage[name].items() if key in self.index}
            tree.add(self.numbers[name], known)
        return tree

    def add(self, queue: int, usage: Usage) -> None:
        """Add usage to a queue, and the part beyond its local quota to its cohorts (`addUsage`)."""
        for key, amount in usage.items():
            node = queue
            while True:
                row = self.usage[node]
                free = self.local[node][key] - row[key]
                row[key] += amount
                if self.parent[node] < 0:
                    break
                if free > 0:
                    if amount <= free:
                        break
                    amount -= free
                node = self.parent[node]

    def remove(self, queue: int, usage: Usage) -> None:
        """Remove usage: the inverse of `add` (`removeUsage`)."""
        for key, amount in usage.items():
            node = queue
            while True:
                row = self.usage[node]
                stored = row[key] - self.local[node][key]
                row[key] -= amount
                if stored <= 0 or self.parent[node] < 0:
                    break
                amount = min(amount, stored)
                node = self.parent[node]

    def most(self, queue: str, key: FlavorResource) -> int:
        """Return the most that a queue can ever hold (`potentialAvailable`), or 0 for an unknown key."""
        at = self.index.get(key)
        return 0 if at is None else self.potential[self.numbers[queue]][at]

    def available(self, queue: int, key: int) -> int:
        """Return what a queue can still use; never below zero (`Available`, clusterqueue_snapshot.go)."""
        return max(0, self.balance(queue, key))

    def balance(self, node: int, key: int) -> int:
        """Return what a node can still use; negative if over quota (`available`, resource_node.go)."""
        used, above = self.usage[node][key], self.parent[node]
        if above < 0:
            return self.subtree[node][key] - used
        given, limit, local = self.balance(above, key), self.limit[node][key], self.local[node][key]
        if limit is not None:
            given = min(self.subtree[node][key] - local - max(0, used - local) + limit, given)
        found = max(0, local - used) + given
        return found if found < self._ceiling else self._ceiling

    def fits(self, queue: int, usage: Usage) -> bool:
        """Return whether usage could be added now (`Fits`, clusterqueue_snapshot.go)."""
        return all(amount <= self.available(queue, key) for key, amount in usage.items())

    def is_over(self, node: int, key: int, more: int = 0) -> bool:
        """Return whether a node borrows, or would with `more` (`BorrowingWith`, clusterqueue_snapshot.go).

        A queue borrows beyond its nominal quota, a cohort beyond that of its subtree.
        """
        return self.usage[node][key] + more > self.subtree[node][key]

    def is_within(self, node: int, keys: Iterable[int]) -> bool:
        """Return whether a node borrows none of these keys (`IsWithinNominalInResources`)."""
        own, used = self.subtree[node], self.usage[node]
        return all(used[key] <= own[key] for key in keys)

    def fits_own(self, node: int, asked: Usage) -> tuple[bool, dict[int, int]]:
        """Return whether more usage fits into a node's own quota, and what is left for its parent.

        See `QuantitiesFitInQuota`, resource_node.go.
        """
        own, used, local = self.subtree[node], self.usage[node], self.local[node]
        does = all(own[key] >= used[key] + amount for key, amount in asked.items())
        rest = {key: max(0, amount - max(0, local[key] - used[key])) for key, amount in asked.items()}
        return does, rest

    def reach(self, queue: int, key: int, amount: int) -> tuple[int, bool]:
        """Return the height of the smallest subtree that fits `amount` more, and whether it is below the
        root.

        Height 0 is the queue itself: nothing is borrowed (`FindHeightOfLowestSubtreeThatFits`,
        hierarchical_preemption.go).
        """
        if not self.is_over(queue, key, amount) or self.parent[queue] < 0:
            return 0, self.parent[queue] >= 0
        amount -= max(0, self.local[queue][key] - self.usage[queue][key])
        top = queue
        for top in self.above(queue):
            if not self.is_over(top, key, amount):
                return self.height[top], self.parent[top] >= 0
            amount -= max(0, self.local[top][key] - self.usage[top][key])
        return self.height[top], False

    # --- fair sharing -----------------------------------------------------------------------------------

    def share(self, node: int) -> DominantShare:
        """Return the borrowed share of what the parent can lend, by weight (`dominantResourceShare`)."""
        above = self.parent[node]
        if above < 0:
            return DominantShare((0, 0.0), ())
        own, used = self.subtree[node], self.usage[node]
        borrowed = tuple(key for key in range(len(own)) if used[key] > own[key])
        if not borrowed:
            return DominantShare((0, 0.0), ())
        total: dict[str, int] = {}
        for key in borrowed:
            resource = self.keys[key][1]
            total[resource] = total.get(resource, 0) + used[key] - own[key]
        lendable, ratio = self.lendable(above), 0.0
        for resource, amount in total.items():
            if lendable[resource] > 0:
                ratio = max(ratio, float(amount) * 1000.0 / float(lendable[resource]))
        weight = self.weight[node]
        if ratio and not weight:
            return DominantShare((1, ratio), borrowed)
        return DominantShare((0, ratio / weight if ratio else 0.0), borrowed)
