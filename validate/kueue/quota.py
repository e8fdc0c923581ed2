"""Quotas of the cohort tree with what is in use: how much is free for a queue, and how far it must borrow.

Source: Kueue v0.19.2 pkg/cache/scheduler/resource_node.go (available, potentialAvailable, addUsage) and
pkg/scheduler/preemption/classical/hierarchical_preemption.go (FindHeightOfLowestSubtreeThatFits); v0.15.2 has
the same arithmetic. Amounts are Kueue's whole numbers (`model.units`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gangplan.validate.apiserver.forms import Body
from gangplan.validate.kueue.model import MOST_INT64, Usage, counted, units

Key = tuple[str, str]  # flavor, resource


@dataclass(slots=True)
class Node:
    """A ClusterQueue or Cohort; `local`, `subtree` and `usage` are by flavor and resource."""

    name: str
    is_queue: bool
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    nominal: dict[Key, int] = field(default_factory=dict)
    borrowing: dict[Key, int] = field(default_factory=dict)
    lending: dict[Key, int] = field(default_factory=dict)
    subtree: dict[Key, int] = field(default_factory=dict)
    usage: dict[Key, int] = field(default_factory=dict)

    def local(self, key: Key) -> int:
        """What is never lent to the parent."""
        limit = self.lending.get(key)
        return 0 if limit is None else max(0, self.subtree.get(key, 0) - limit)

    def local_free(self, key: Key) -> int:
        """What of it is not in use."""
        return max(0, self.local(key) - self.usage.get(key, 0))

    def available(self, key: Key) -> int:
        """What is free now; negative where more is in use than there is."""
        subtree, used = self.subtree.get(key, 0), self.usage.get(key, 0)
        if self.parent is None:
            return subtree - used
        above = self.parent.available(key)
        limit = self.borrowing.get(key)
        if limit is not None:
            local = self.local(key)
            above = min(subtree - local - max(0, used - local) + limit, above)
        return _most(self.local_free(key) + above)

    def potential(self, key: Key) -> int:
        """The most that there can ever be."""
        if self.parent is None:
            return self.subtree.get(key, 0)
        most = self.local(key) + self.parent.potential(key)
        limit = self.borrowing.get(key)
        return _most(most if limit is None else min(most, self.subtree.get(key, 0) + limit))

    def height_for(self, key: Key, amount: int) -> tuple[int, bool]:
        """How far up the amount must be borrowed (0: not at all), and whether that is below the root."""
        if not self._exceeds(key, amount) or self.parent is None:
            return 0, self.parent is not None
        left = amount - self.local_free(key)
        node: Node | None = self.parent
        while node is not None:
            if not node._exceeds(key, left):
                return node.height(), node.parent is not None
            left -= node.local_free(key)
            last, node = node, node.parent
        return last.height(), False

    def _exceeds(self, key: Key, amount: int) -> bool:
        return self.usage.get(key, 0) + amount > self.subtree.get(key, 0)

    def height(self) -> int:
        """Steps to the deepest queue below (getNodeHeight)."""
        below = [child.height() for child in self.children if not child.is_queue]
        direct = any(child.is_queue for child in self.children)
        return max([(1 if direct else 0), *(1 + height for height in below)], default=0)

    def use(self, key: Key, amount: int) -> None:
        """Take an amount; what is not local is taken from the parent as well."""
        free = self.local_free(key)
        self.usage[key] = self.usage.get(key, 0) + amount
        if self.parent is not None and amount > free:
            self.parent.use(key, amount - free)


def _most(amount: int) -> int:
    return min(amount, MOST_INT64)


def forest(bodies: Sequence[Body]) -> dict[str, Node]:
    """The ClusterQueues by name, each in its tree; nothing is in use.

    A cohort that is only named exists and has nothing. Where cohorts go in a circle the nodes are not linked
    to their parents: such queues are inactive.
    """
    queues: dict[str, Node] = {}
    cohorts: dict[str, Node] = {}
    parents: dict[str, str] = {}
    for body in bodies:
        if body["kind"] == "Cohort":
            name = body["metadata"]["name"]
            cohorts[name] = _node(body, name, is_queue=False)
            parents[name] = (body.get("spec") or {}).get("parentName") or ""
    for body in bodies:
        if body["kind"] == "ClusterQueue":
            name = body["metadata"]["name"]
            queues[name] = _node(body, name, is_queue=True)
            above = (body.get("spec") or {}).get("cohortName") or ""
            if above and not in_circle(parents, above):
                _link(queues[name], _cohort(cohorts, above))
    for name, above in parents.items():
        if above and not in_circle(parents, name):
            _link(cohorts[name], _cohort(cohorts, above))
    for node in [*cohorts.values(), *queues.values()]:
        if node.parent is None:
            _gather(node)
    return queues


def _node(body: Body, name: str, *, is_queue: bool) -> Node:
    node = Node(name, is_queue)
    for group in (body.get("spec") or {}).get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for item in flavor["resources"]:
                key = flavor["name"], item["name"]
                node.nominal[key] = units(item["name"], item.get("nominalQuota", 0))
                for name_of, found in (("borrowingLimit", node.borrowing), ("lendingLimit", node.lending)):
                    if item.get(name_of) is not None:
                        found[key] = units(item["name"], item[name_of])
    return node


def _cohort(cohorts: dict[str, Node], name: str) -> Node:
    return cohorts.setdefault(name, Node(name, is_queue=False))


def _link(node: Node, parent: Node) -> None:
    node.parent = parent
    parent.children.append(node)


def in_circle(parents: Mapping[str, str], name: str) -> bool:
    """Whether the way up from a cohort never ends (pkg/cache/hierarchy/cycle.go)."""
    seen = set()
    while name and name not in seen:
        seen.add(name)
        name = parents.get(name, "")
    return bool(name)


def _gather(node: Node) -> None:
    node.subtree = dict(node.nominal)
    for child in node.children:
        _gather(child)
        for key, amount in child.subtree.items():
            node.subtree[key] = _most(node.subtree.get(key, 0) + amount - child.local(key))


def take(queues: Mapping[str, Node], usage: Usage) -> None:
    """Put what is in use into the tree; queues that are not there are left out."""
    for name, flavors in usage.items():
        if name in queues:
            for flavor, resources in flavors.items():
                for resource, used in resources.items():
                    queues[name].use((flavor, resource), counted(resource, used))
