"""Preemption with fair sharing; its order of admission is in `cycle.py`.

Ported from pkg/scheduler/preemption/fairsharing, preemption.go and fair_sharing_iterator.go of Kueue v0.19.2.
Two of the rules (own quota first) exist since v0.17 (gates FairSharingPreemptWithinNominal and
FairSharingPrioritizeNonBorrowing, on by default).
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.kueue.attempt import Attempt, fill_back_workloads, restore_usage
from gangplan.kueue.model import NEVER
from gangplan.kueue.state import AdmittedWorkload
from gangplan.kueue.tree import LEAST_SHARE, ShareRank


def find_fair_preemption_targets(attempt: Attempt) -> list[AdmittedWorkload]:
    """Return the runs that would be preempted (`fairPreemptions`); empty if preemption does not help."""
    candidates = sorted(_list_fair_preemption_candidates(attempt), key=attempt.order)
    if not candidates:
        return []
    tree, strategies = attempt.state.tree, attempt.state.setup.strategies
    tree.add(attempt.queue, attempt.usage)
    fits, chosen, retry = _apply_first_fair_sharing_strategy(attempt, candidates, strategies[0])
    if not fits and len(strategies) > 1:
        fits = _apply_second_fair_sharing_strategy(attempt, retry, chosen)
    tree.remove(attempt.queue, attempt.usage)
    if not fits:
        restore_usage(attempt, chosen)
        return []
    chosen = fill_back_workloads(attempt, chosen, True)
    restore_usage(attempt, chosen)
    return chosen


def _list_fair_preemption_candidates(attempt: Attempt) -> Iterator[AdmittedWorkload]:
    state, tree, queue = attempt.state, attempt.state.tree, attempt.queue
    rules = state.queue(queue).preemption
    for one in state.holdings[queue].values():
        if attempt.may_take(one, rules.within):
            yield one
    if tree.parent[queue] < 0 or rules.reclaim == NEVER:
        return
    for other in tree.queues_below(tree.root(queue)):
        if other != queue and any(tree.is_over(other, key) for key in attempt.needs):
            yield from (one for one in state.holdings[other].values() if attempt.may_take(one, rules.reclaim))


def _fits_without_own_usage(attempt: Attempt) -> bool:
    """Return whether the run fits, without its own usage, which is counted to compare shares."""
    tree = attempt.state.tree
    tree.remove(attempt.queue, attempt.usage)
    fits = attempt.fits(True)
    tree.add(attempt.queue, attempt.usage)
    return fits


def _apply_first_fair_sharing_strategy(
    attempt: Attempt, candidates: list[AdmittedWorkload], strategy: str
) -> tuple[bool, list[AdmittedWorkload], list[AdmittedWorkload]]:
    tree, queue = attempt.state.tree, attempt.queue
    ordering = _Ordering(attempt, candidates)
    chosen: list[AdmittedWorkload] = []
    retry: list[AdmittedWorkload] = []
    has_right = attempt.state.setup.kueue.puts_own_first and not any(
        tree.is_over(queue, key) for key in attempt.needs
    )
    for other in ordering.queues():
        if other == queue or has_right:
            one = ordering.pop(other)
            tree.remove(one.queue, one.usage)
            chosen.append(one)
            if _fits_without_own_usage(attempt):
                return True, chosen, []
            continue
        mine, theirs = ordering.shares(other)
        while ordering.waiting[other]:
            one = ordering.pop(other)
            if strategy == "LessThanInitialShare":
                passes = mine < theirs
            else:
                tree.remove(one.queue, one.usage)
                passes = mine <= ordering.shares(other)[1]
                tree.add(one.queue, one.usage)
            if not passes:
                retry.append(one)
                continue
            tree.remove(one.queue, one.usage)
            chosen.append(one)
            if _fits_without_own_usage(attempt):
                return True, chosen, []
            break
    return False, chosen, retry


def _apply_second_fair_sharing_strategy(
    attempt: Attempt, retry: list[AdmittedWorkload], chosen: list[AdmittedWorkload]
) -> bool:
    """Apply rule S2-b: take at most one more run of each queue whose share is larger than the preemptor's."""
    tree = attempt.state.tree
    ordering = _Ordering(attempt, retry)
    for other in ordering.queues():
        mine, theirs = ordering.shares(other)
        one = ordering.pop(other)
        if mine < theirs:
            tree.remove(one.queue, one.usage)
            chosen.append(one)
            if _fits_without_own_usage(attempt):
                return True
        ordering.dropped.add(other)
    return False


class _Ordering:
    """The queues to preempt from, largest share first, recomputed after every step."""

    def __init__(self, attempt: Attempt, candidates: list[AdmittedWorkload]) -> None:
        self._attempt, self._tree = attempt, attempt.state.tree
        self._way = set(self._tree.above(attempt.queue))
        self.waiting: dict[int, list[AdmittedWorkload]] = {}
        for one in candidates:
            self.waiting.setdefault(one.queue, []).append(one)
        self.dropped: set[int] = set()

    def pop(self, queue: int) -> AdmittedWorkload:
        return self.waiting[queue].pop(0)

    def queues(self) -> Iterator[int]:
        queue = self._attempt.queue
        root = self._tree.root(queue)
        if root == queue:
            while queue not in self.dropped and self.waiting.get(queue):
                yield queue
            return
        while root not in self.dropped:
            found = self._next(root)
            if found >= 0:
                yield found

    def _next(self, cohort: int) -> int:
        """Return the next queue below a cohort, or -1 if this step only dropped a cohort."""
        tree, children = self._tree, self._tree.children[cohort]
        best, best_rank = -1, LEAST_SHARE
        for queue in (one for one in children if one < tree.count and one not in self.dropped):
            share = tree.share(queue)
            if (not share.is_borrowing and queue != self._attempt.queue) or not self.waiting.get(queue):
                self.dropped.add(queue)
            elif share.rank > best_rank or (
                best >= 0 and share.rank == best_rank and self._goes(queue, best)
            ):
                best, best_rank = queue, share.rank
        deep, deep_rank = -1, LEAST_SHARE
        for child in (one for one in children if one >= tree.count and one not in self.dropped):
            share = tree.share(child)
            if not share.is_borrowing and child not in self._way:
                self.dropped.add(child)
            elif share.rank >= deep_rank:
                deep, deep_rank = child, share.rank
        if best < 0 and deep < 0:
            self.dropped.add(cohort)
            return -1
        return self._next(deep) if deep >= 0 and deep_rank >= best_rank else best

    def _goes(self, queue: int, other: int) -> bool:
        order = self._attempt.order
        return order(self.waiting[queue][0]) < order(self.waiting[other][0])

    def shares(self, other: int) -> tuple[ShareRank, ShareRank]:
        """Return the shares of both sides, each just below the lowest cohort above both queues."""
        common = next(node for node in self._tree.above(other) if node in self._way)
        return self._below(self._attempt.queue, common), self._below(other, common)

    def _below(self, queue: int, common: int) -> ShareRank:
        node = queue
        while self._tree.parent[node] != common:
            node = self._tree.parent[node]
        return self._tree.share(node).rank
