"""The cohort tree: the most that a queue can ever get, by Kueue's own arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gangplan.model.quantity import ZERO, Format, Quantity
from gangplan.model.site import Cohort, Queue, Site

COHORT = "cohort/"  # queues and cohorts may have the same names


@dataclass(frozen=True, slots=True)
class Node:
    """A queue or cohort for one flavor and resource, in billionths; None is no limit. A root has no parent."""

    parent: str
    nominal: int = 0
    borrow: int | None = None
    lend: int | None = None


@dataclass(slots=True)
class Tree:
    """Queues and cohorts by name. Parents must not go round in a circle."""

    nodes: dict[str, Node]
    _members: dict[str, list[str]] = field(default_factory=dict)
    _subtrees: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, node in self.nodes.items():
            self._members.setdefault(node.parent, []).append(name)

    def most(self, name: str) -> int:
        """The most that a node can ever get: what it keeps for itself, what its parent can give it, its limit.

        Kueue: `potentialAvailable` in pkg/cache/scheduler/resource_node.go, v0.19.2.
        """
        node = self.nodes[name]
        if node.parent not in self.nodes:
            return self._subtree(name)
        most = self._kept(name) + self.most(node.parent)
        return most if node.borrow is None else min(most, self._subtree(name) + node.borrow)

    def _subtree(self, name: str) -> int:
        """Its own quota and what its members lend."""
        if name not in self._subtrees:
            lent = sum(self._subtree(member) - self._kept(member) for member in self._members.get(name, ()))
            self._subtrees[name] = self.nodes[name].nominal + lent
        return self._subtrees[name]

    def _kept(self, name: str) -> int:
        """What a node does not lend."""
        lend = self.nodes[name].lend
        return 0 if lend is None else max(0, self._subtree(name) - lend)


def most_by_queue(site: Site) -> dict[str, dict[str, dict[str, Quantity]]]:
    """The most that each queue can ever admit at once: queue -> flavor -> resource -> amount."""
    trees = _trees(site)
    most: dict[str, dict[str, dict[str, Quantity]]] = {}
    for queue in site.queues:
        most[queue.name] = {
            quota.flavor: {
                resource: _amount(resource, trees[quota.flavor, resource].most(queue.name))
                for resource in site.covered
            }
            for quota in queue.quotas
        }
    return most


def summed(by_flavor: dict[str, dict[str, Quantity]]) -> dict[str, Quantity]:
    """One queue's amounts over all of its flavors."""
    total: dict[str, Quantity] = {}
    for amounts in by_flavor.values():
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, ZERO) + amount
    return total


def _amount(resource: str, nano: int) -> Quantity:
    return Quantity(nano, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI)


def _trees(site: Site) -> dict[tuple[str, str], Tree]:
    """The tree of every flavor and resource."""
    members: list[tuple[str, str, Queue | Cohort]] = [
        (COHORT + cohort.name, cohort.parent, cohort) for cohort in site.cohorts
    ]
    members += [(queue.name, queue.cohort, queue) for queue in site.queues]
    flavors = [flavor.name for flavor in site.flavors]
    nodes: dict[tuple[str, str], dict[str, Node]] = {
        (flavor, resource): {name: Node(COHORT + parent) for name, parent, _ in members}
        for flavor in flavors
        for resource in site.covered
    }
    for name, parent, member in members:
        for flavor, resource, node in _stated(member, COHORT + parent):
            nodes[flavor, resource][name] = node
    return {key: Tree(tree) for key, tree in nodes.items()}


def _stated(member: Queue | Cohort, parent: str) -> Iterable[tuple[str, str, Node]]:
    for quota in member.quotas:
        for amount in quota.amounts:
            borrow = None if amount.borrow is None else amount.borrow.nano
            lend = None if amount.lend is None else amount.lend.nano
            yield quota.flavor, amount.resource, Node(parent, amount.nominal.nano, borrow, lend)
