"""The most that a queue can ever get: the plan, the built objects and a brute force agree."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.kueue.tree import QuotaTree
from gangplan.kueue.units import NANO
from gangplan.model.quantity import Quantity
from gangplan.model.site import (
    FlavorQuota,
    QueuePreemption,
    QuotaAmount,
    Site,
    SiteCohort,
    SiteFlavor,
    SiteQueue,
)
from gangplan.resolve.tree import resolve_queue_maximum_by_flavor
from gangplan.validate.kueue.members import read_cohort_members, split_members

KEY = ("pool", "cpu")
ONE = Quantity.of(1)
LIMITS = st.one_of(st.none(), st.integers(0, 6))


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str, str, int, int | None, int | None]]:
    """Draw kind, name, parent, nominal, borrowing and lending limit of the nodes of a tree without cycles."""
    cohorts = [f"c{number}" for number in range(draw(st.integers(1, 4)))]
    found: list[tuple[str, str, str, int, int | None, int | None]] = []
    for number, name in enumerate(cohorts):
        parent = draw(st.sampled_from(["", *cohorts[:number]])) if number else ""
        limits = (draw(LIMITS), draw(LIMITS)) if parent else (None, None)
        found.append(("Cohort", name, parent, draw(st.integers(0, 5)), *limits))
    for number in range(draw(st.integers(1, 4))):
        parent, nominal = draw(st.sampled_from(cohorts)), draw(st.integers(0, 5))
        lend = draw(st.one_of(st.none(), st.integers(0, nominal)))
        found.append(("ClusterQueue", f"q{number}", parent, nominal, draw(LIMITS), lend))
    return found


def site(tree: list[Any]) -> Site:
    """Return the tree as the generator sees it."""

    def quota(nominal: int, borrow: int | None, lend: int | None) -> tuple[FlavorQuota, ...]:
        limits = [None if limit is None else Quantity.of(limit) for limit in (borrow, lend)]
        return (FlavorQuota("pool", (QuotaAmount("cpu", Quantity.of(nominal), *limits),)),)

    cohorts = tuple(
        SiteCohort(name, parent, ONE, quota(*amounts))
        for kind, name, parent, *amounts in tree
        if kind == "Cohort"
    )
    preempt = QueuePreemption("Never", "Never", "Never")
    queues = tuple(
        SiteQueue(name, name, name, "training", parent, ONE, quota(*amounts), preempt)
        for kind, name, parent, *amounts in tree
        if kind == "ClusterQueue"
    )
    return Site("x", None, (), ("cpu",), None, (SiteFlavor("pool", "pool", (), ()),), cohorts, queues)  # type: ignore[arg-type]


def bodies(tree: list[Any]) -> list[dict[str, Any]]:
    """Return the tree as the API server sees it."""
    found = []
    for kind, name, parent, nominal, borrow, lend in tree:
        item = {"name": "cpu", "nominalQuota": str(nominal)}
        item |= {} if borrow is None else {"borrowingLimit": str(borrow)}
        item |= {} if lend is None else {"lendingLimit": str(lend)}
        group = {"coveredResources": ["cpu"], "flavors": [{"name": "pool", "resources": [item]}]}
        above = {"cohortName" if kind == "ClusterQueue" else "parentName": parent} if parent else {}
        found.append({"kind": kind, "metadata": {"name": name}, "spec": {**above, "resourceGroups": [group]}})
    return found


def brute_force(tree: list[Any], queue: str) -> int:
    """Return the largest amount that flows to a queue when every edge carries what its limits allow.

    Every node may pass up at most what it lends of its subtree, and take down at most what it may borrow
    beyond its subtree; all ways of splitting are tried.
    """
    nodes = {name: (parent, nominal, borrow, lend) for _, name, parent, nominal, borrow, lend in tree}

    def subtree(name: str) -> int:
        own = nodes[name][1]
        return own + sum(passed(child) for child, node in nodes.items() if node[0] == name)

    def passed(name: str) -> int:
        whole, lend = subtree(name), nodes[name][3]
        return max(amount for amount in range(whole + 1) if lend is None or amount <= lend)

    def most(name: str) -> int:
        parent, _, borrow, _ = nodes[name]
        whole = subtree(name)
        if not parent:
            return whole
        reachable = {
            kept + taken
            for kept, taken in product([whole - passed(name)], range(most(parent) + 1))
            if borrow is None or kept + taken <= whole + borrow
        }
        # If a limit forbids taking anything, at least its own part is left.
        return max(reachable, default=whole + (borrow or 0))

    return most(queue)


@settings(max_examples=400, deadline=None)
@given(trees())
def test_the_potential_of_a_queue_equals_brute_force(tree: list[Any]) -> None:
    planned = resolve_queue_maximum_by_flavor(site(tree))
    judge = QuotaTree(*split_members(read_cohort_members(bodies(tree))))
    for kind, name, *_ in tree:
        if kind == "ClusterQueue":
            expected = brute_force(tree, name)
            assert planned[name]["pool"]["cpu"] == Quantity.of(expected)
            assert judge.most(name, KEY) == expected * NANO


def test_a_cohort_without_an_object_has_no_limits() -> None:
    tree = [("ClusterQueue", "a", "x", 3, None, None), ("ClusterQueue", "b", "x", 4, None, 1)]
    judge = QuotaTree(*split_members(read_cohort_members(bodies(tree))))
    assert judge.most("a", KEY) == 4 * NANO
    assert judge.most("b", KEY) == 7 * NANO
