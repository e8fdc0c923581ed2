"""The mode of a flavor and the rules for comparing flavors, shared by both flavor assigners.

Source: pkg/scheduler/flavorassigner/flavorassigner.go of Kueue v0.19.2 (fitsResourceQuota,
canPreemptWhileBorrowing, shouldTryNextFlavor, isPreferred), compared with v0.15.2 and v0.18.2.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf

from gangplan.kueue.model import NEVER, ClusterQueue, Fungibility
from gangplan.kueue.tree import QuotaTree
from gangplan.model.support import KueueLine


class FlavorMode(IntEnum):
    """How well a flavor fits (`granularMode`); larger is better."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


FlavorFit = tuple[FlavorMode, float]  # mode, and the height of borrowing in the tree
WORST_FIT: FlavorFit = (FlavorMode.NO_FIT, inf)


def find_flavor_quota_mode(
    tree: QuotaTree, queue: ClusterQueue, key: int, amount: int, is_fair: bool
) -> tuple[FlavorMode, int]:
    """Return the mode of one flavor and resource, and the height of borrowing (`fitsResourceQuota`).

    If only preemption can free the quota, the mode is `NO_CANDIDATES`: a caller that knows the other runs has
    to check what preemption gives.
    """
    number = tree.numbers[queue.name]
    if amount > tree.potential[number][key]:
        return FlavorMode.NO_FIT, 0
    height, may_reclaim = tree.reach(number, key, amount)
    if amount <= tree.available(number, key):
        return FlavorMode.FIT, height
    if tree.nominal[number][key] >= amount or may_reclaim or _may_preempt_while_borrowing(queue, is_fair):
        return FlavorMode.NO_CANDIDATES, height
    return FlavorMode.NO_FIT, height


def _may_preempt_while_borrowing(queue: ClusterQueue, is_fair: bool) -> bool:
    """Return whether a queue may preempt while borrowing (`canPreemptWhileBorrowing`)."""
    return queue.preemption.borrow != NEVER or (is_fair and queue.preemption.reclaim != NEVER)


def should_try_next_flavor(suits: FlavorFit, rules: Fungibility) -> bool:
    """Return whether the next flavor is tried as well (`shouldTryNextFlavor`)."""
    mode, height = suits
    if mode in (FlavorMode.NO_FIT, FlavorMode.NO_CANDIDATES):
        return True
    if mode in (FlavorMode.PREEMPT, FlavorMode.RECLAIM) and rules.when_preempt == "TryNextFlavor":
        return True
    return height > 0 and rules.when_borrow == "TryNextFlavor"


def is_preferred_flavor(one: FlavorFit, other: FlavorFit, rules: Fungibility, kueue: KueueLine) -> bool:
    """Return whether one flavor is preferred to another (`isPreferred`).

    v0.18.2 does not yet put flavors without candidates last, and v0.15.2 swaps the two preferences.
    """
    if one[0] is FlavorMode.NO_FIT:
        return False
    if other[0] is FlavorMode.NO_FIT:
        return True
    hopeless = one[0] is FlavorMode.NO_CANDIDATES, other[0] is FlavorMode.NO_CANDIDATES
    if kueue.ranks_hopeless_last and hopeless[0] != hopeless[1]:
        return not hopeless[0]
    if rules.preference == (
        "BorrowingOverPreemption" if kueue.swaps_preferences else "PreemptionOverBorrowing"
    ):
        return (-one[1], one[0]) > (-other[1], other[0])
    return (one[0], -one[1]) > (other[0], -other[1])
