"""Quota trees made by hand: sums that are too large, cycles of cohorts, debts; the units of amounts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gangplan.kueue.flavors import (
    FlavorMode,
    find_flavor_quota_mode,
    is_preferred_flavor,
    should_try_next_flavor,
)
from gangplan.kueue.hierarchy import find_cohort_cycle, is_in_cohort_cycle
from gangplan.kueue.model import ClusterQueue, Fungibility, Member, PreemptionRules, ResourceGroup
from gangplan.kueue.tree import QuotaTree
from gangplan.kueue.units import MOST_INT64, convert_to_kueue_count, format_kueue_amount, round_to_kueue_count
from gangplan.model.support import KUEUE_LINES

KEY = ("pool", "gpu")


def member(name: str, parent: str = "", nominal: int = 0, **limits: int) -> Member:
    """Return a queue or cohort with one flavor and resource."""
    found = {field: {KEY: amount} for field, amount in limits.items()}
    return Member(name, parent, {KEY: nominal}, found.get("borrow", {}), found.get("lend", {}))


def test_sums_saturate_at_the_largest_number() -> None:
    """v0.18.2 and later: three quotas of 2^62 are together no more than 2^63-1 (v0.15.2 wraps around)."""
    tree = QuotaTree([member(name, "all", 2**62) for name in "abc"], [])
    assert tree.subtree[3] == [MOST_INT64]
    assert tree.most("a", KEY) == tree.balance(0, 0) == MOST_INT64
    tree = QuotaTree([member("a", "all", 2**62, lend=1), member("b", "all", MOST_INT64)], [])
    assert tree.most("a", KEY) == tree.balance(0, 0) == MOST_INT64
    assert QuotaTree([member(name, "all", 2**62) for name in "abc"], [], 2**70).most("a", KEY) == 3 * 2**62


def test_queues_below_a_cycle_have_only_their_own_quota() -> None:
    """cycle.go: a and b are above each other, c leads there; d is a root."""
    cohorts = [member("a", "b", 1), member("b", "a", 1), member("c", "a", 1), member("d", "", 1)]
    queues = [member(f"in-{name}", name, 4) for name in "abcd"]
    tree = QuotaTree(queues, cohorts)
    assert [tree.most(queue.name, KEY) for queue in queues] == [4, 4, 4, 5]
    assert tree.parent == [-1, -1, -1, 7, -1, -1, -1, -1]
    parents = {one.name: one.parent for one in cohorts}
    assert [is_in_cohort_cycle(parents, name) for name in ("a", "b", "c", "d", "only-named", "")] == [
        True
    ] * 3 + [False] * 3
    assert (
        find_cohort_cycle(parents, "b"),
        find_cohort_cycle(parents, "c"),
        find_cohort_cycle(parents, "d"),
    ) == (["b", "a", "b"], [], [])


def test_only_the_balance_shows_a_debt() -> None:
    """b holds 5 of the 4 that it and a own together."""
    idle = QuotaTree([member("a", "all", 2), member("b", "all", 2)], [])
    tree = idle.loaded({"b": {KEY: 5, ("pool", "unknown"): 1}, "unknown": {KEY: 7}})
    assert (tree.balance(0, 0), tree.available(0, 0)) == (-1, 0)
    assert idle.usage == [[0], [0], [0]]
    assert tree.most("a", ("pool", "unknown")) == 0


@pytest.mark.parametrize(
    ("reclaim", "amount", "expected"),
    [
        ("Never", 5, (FlavorMode.NO_FIT, 0)),  # more than they own together
        ("Never", 1, (FlavorMode.FIT, 0)),
        ("Never", 2, (FlavorMode.NO_CANDIDATES, 0)),  # its own quota, which the other queue holds
        ("Never", 3, (FlavorMode.NO_FIT, 1)),  # it would have to preempt for what it borrows
        ("Any", 3, (FlavorMode.NO_CANDIDATES, 1)),
    ],
)
def test_the_mode_of_a_flavor_depends_on_reclaim_and_amount(
    reclaim: str, amount: int, expected: tuple[FlavorMode, int]
) -> None:
    """Two queues own 2 each; the other one holds 3. The cluster uses fair sharing."""
    queue = ClusterQueue(
        *("a", "all", {KEY: 2}, {}, {}, 1.0, (ResourceGroup(("gpu",), ("pool",)),)),
        preemption=PreemptionRules(reclaim=reclaim),
    )
    tree = QuotaTree([queue, member("b", "all", 2)], []).loaded({"b": {KEY: 3}})
    assert find_flavor_quota_mode(tree, queue, 0, amount, is_fair=True) == expected


def test_the_search_for_a_flavor_goes_on_by_fungibility() -> None:
    stops, tries = Fungibility(), Fungibility("TryNextFlavor", "MayStopSearch")
    assert [should_try_next_flavor((mode, 0), stops) for mode in FlavorMode] == [
        True,
        True,
        True,
        True,
        False,
    ]
    assert [should_try_next_flavor((mode, 0), tries) for mode in FlavorMode] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert should_try_next_flavor((FlavorMode.FIT, 1), tries)
    assert not should_try_next_flavor((FlavorMode.FIT, 1), stops)


def test_the_preferred_flavor_follows_the_preference() -> None:
    near, far = (FlavorMode.PREEMPT, 0), (FlavorMode.FIT, 1)
    for rules, better, worse in (
        (Fungibility(), far, near),
        (Fungibility(preference="PreemptionOverBorrowing"), near, far),
    ):
        for kueue in (KUEUE_LINES["0.18"], KUEUE_LINES["0.19"]):
            assert is_preferred_flavor(better, worse, rules, kueue)
            assert not is_preferred_flavor(worse, better, rules, kueue)
            assert not is_preferred_flavor((FlavorMode.NO_FIT, 0), (FlavorMode.NO_FIT, 0), rules, kueue)
        assert is_preferred_flavor(worse, (FlavorMode.NO_CANDIDATES, 0), rules, KUEUE_LINES["0.19"])


def test_older_versions_prefer_other_flavors() -> None:
    """0.18 may prefer a flavor without candidates to borrowing; 0.15 has the two words swapped."""
    near, far = (FlavorMode.NO_CANDIDATES, 0), (FlavorMode.FIT, 1)
    careful = Fungibility(preference="PreemptionOverBorrowing")
    assert is_preferred_flavor(far, near, careful, KUEUE_LINES["0.19"])
    assert is_preferred_flavor(near, far, careful, KUEUE_LINES["0.18"])
    assert is_preferred_flavor(far, near, careful, KUEUE_LINES["0.15"])
    assert is_preferred_flavor(
        near, far, Fungibility(preference="BorrowingOverPreemption"), KUEUE_LINES["0.15"]
    )
    assert is_preferred_flavor(far, near, Fungibility(), KUEUE_LINES["0.15"])


def test_amounts_are_rounded_up() -> None:
    assert (
        round_to_kueue_count("cpu", 1),
        round_to_kueue_count("memory", 1),
        round_to_kueue_count("cpu", 10**30),
    ) == (1, 1, MOST_INT64)
    assert (convert_to_kueue_count("cpu", Fraction(1, 3)), convert_to_kueue_count("gpu", Fraction(1, 3))) == (
        334,
        1,
    )
    assert [
        format_kueue_amount("cpu", 1500),
        format_kueue_amount("memory", 2**30),
        format_kueue_amount("gpu", MOST_INT64),
    ] == [
        "1500m",
        "1Gi",
        "unlimited",
    ]
