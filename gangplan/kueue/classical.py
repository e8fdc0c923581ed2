"""Classical preemption: by priority within a queue, and of borrowers in other queues to reclaim quota.

Ported from pkg/scheduler/preemption/{preemption.go,classical} of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Callable

from gangplan.kueue.attempt import Attempt, fill_back_workloads, restore_usage
from gangplan.kueue.model import NEVER
from gangplan.kueue.state import AdmittedWorkload
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class _Candidate:
    holding: AdmittedWorkload
    common: int  # the lowest cohort above both queues; -1 for the same queue
    without_borrowing: bool = False


def find_classical_preemption_targets(attempt: Attempt) -> list[AdmittedWorkload]:
    """Return the runs that would be preempted (`classicalPreemptions`); empty if preemption does not help."""
    rules = attempt.state.queue(attempt.queue).preemption
    near, far = _list_cohort_reclaim_candidates(attempt)
    own = [
        _Candidate(one, -1)
        for one in attempt.state.holdings[attempt.queue].values()
        if attempt.may_take(one, rules.within)
    ]
    for group in (near, far, own):
        group.sort(key=lambda candidate: attempt.order(candidate.holding))
    forbidden = rules.borrow == NEVER
    tree = attempt.state.tree
    is_under = all(tree.nominal[attempt.queue][key] > tree.usage[attempt.queue][key] for key in attempt.needs)
    ways: tuple[bool, ...]
    if not (near or far) or (forbidden and not is_under):
        ways = (True,)
    elif forbidden and not near:
        ways = (False, True)
    else:
        ways = (True, False)
    for borrowing in ways:
        chosen = _choose_classical_preemption_targets(attempt, [*near, *far, *own], borrowing)
        if chosen:
            return chosen
    return []


def _choose_classical_preemption_targets(
    attempt: Attempt, candidates: list[_Candidate], borrowing: bool
) -> list[AdmittedWorkload]:
    tree = attempt.state.tree
    chosen: list[AdmittedWorkload] = []
    for candidate in candidates:
        if not _is_valid_preemption_candidate(attempt, candidate, borrowing):
            continue
        tree.remove(candidate.holding.queue, candidate.holding.usage)
        chosen.append(candidate.holding)
        if attempt.fits(borrowing):
            chosen = fill_back_workloads(attempt, chosen, borrowing)
            restore_usage(attempt, chosen)
            return chosen
    restore_usage(attempt, chosen)
    return []


def _is_valid_preemption_candidate(attempt: Attempt, candidate: _Candidate, borrowing: bool) -> bool:
    """Return whether a candidate's queue, and its cohorts below the common one, still borrow."""
    queue = candidate.holding.queue
    if queue == attempt.queue:
        return True
    if borrowing and candidate.without_borrowing:
        return False
    tree = attempt.state.tree
    if tree.is_within(queue, attempt.needs):
        return False
    for node in tree.above(queue):
        if node == candidate.common:
            break
        if tree.is_within(node, attempt.needs):
            return False
    return True


def _list_cohort_reclaim_candidates(attempt: Attempt) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return the candidates of other queues: those with a hierarchical advantage of the run, and the rest."""
    near: list[_Candidate] = []
    far: list[_Candidate] = []
    state, tree = attempt.state, attempt.state.tree
    rules = state.queue(attempt.queue).preemption
    if tree.parent[attempt.queue] < 0 or rules.reclaim == NEVER:
        return near, far
    has_right, rest = tree.fits_own(attempt.queue, attempt.usage)
    done = -1
    for cohort in tree.above(attempt.queue):
        into = near if has_right else far
        _collect_cohort_preemption_candidates(
            attempt, cohort, cohort, done, _build_no_borrowing_predicate(attempt, has_right), into
        )
        fits, rest = tree.fits_own(cohort, rest)
        has_right = has_right or fits
        done = cohort
    return near, far


def _build_no_borrowing_predicate(attempt: Attempt, has_right: bool) -> Callable[[AdmittedWorkload], bool]:
    """Return a predicate: whether a candidate may be preempted only if the run then borrows nothing."""
    rules, mine = attempt.state.queue(attempt.queue).preemption, attempt.asking.run.priority

    def binds(one: AdmittedWorkload) -> bool:
        if has_right:
            return False
        if rules.borrow == NEVER or one.run.priority >= mine:
            return True
        return rules.threshold is not None and one.run.priority > rules.threshold

    return binds


def _collect_cohort_preemption_candidates(
    attempt: Attempt,
    cohort: int,
    common: int,
    done: int,
    binds: Callable[[AdmittedWorkload], bool],
    into: list[_Candidate],
) -> None:
    """Collect all candidates below a cohort, except in the finished subtree and within their own quota."""
    state, tree = attempt.state, attempt.state.tree
    policy = state.queue(attempt.queue).preemption.reclaim
    for child in tree.children[cohort]:
        if child in (done, attempt.queue) or tree.is_within(child, attempt.needs):
            continue
        if child >= tree.count:
            _collect_cohort_preemption_candidates(attempt, child, common, done, binds, into)
            continue
        into += [
            _Candidate(one, common, binds(one))
            for one in state.holdings[child].values()
            if attempt.may_take(one, policy)
        ]
