"""One cycle of the scheduler: the head of every queue is nominated and processed in Kueue's order.

Ported from pkg/scheduler/{scheduler.go,fair_sharing_iterator.go} of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from gangplan.kueue.assigner import Assignment, assign_flavors_to_podsets
from gangplan.kueue.pending import PendingQueue
from gangplan.kueue.preemption import find_preemption_targets
from gangplan.kueue.state import AdmittedWorkload, PendingWorkload, SchedulingState
from gangplan.kueue.tree import ShareRank
from gangplan.records import dataclass


@dataclass(slots=True, eq=False)
class _Entry:
    """The head of a queue with its flavor assignment and preemption targets."""

    asking: PendingWorkload
    found: Assignment
    targets: list[AdmittedWorkload]


@dataclass(slots=True)
class Cycle:
    """The result of a cycle.

    `is_news`: it changed something; `is_maybe`: another cycle may find something else.
    """

    admitted: list[tuple[PendingWorkload, dict[int, int]]] = field(default_factory=list)
    preempted: list[AdmittedWorkload] = field(default_factory=list)
    is_news: bool = False
    is_maybe: bool = False


def run_kueue_scheduling_cycle(state: SchedulingState, queues: list[PendingQueue]) -> Cycle:
    """Schedule every head once (`schedule`). Admitted runs leave their queues and are counted in the tree.

    Preempted runs are only returned: they hold their quota until their pods are gone.
    """
    state.cycle += 1
    result = Cycle()
    heads = [head for pending in queues if (head := pending.head()) is not None]
    entries = [_nominate_workload(state, asking) for asking in heads]
    reserved: list[tuple[int, dict[int, int]]] = []
    order = (
        _iterate_fair_sharing_order(state, entries)
        if state.setup.fair_sharing
        else _iterate_classical_order(entries)
    )
    for entry in order:
        _process_nominated_workload(state, queues[entry.asking.queue], entry, result, reserved)
    for queue, usage in reserved:
        state.tree.remove(queue, usage)
    return result


def _nominate_workload(state: SchedulingState, asking: PendingWorkload) -> _Entry:
    if _is_hopeless(state, asking):
        # The skipped search would end at the last flavor, so the next one starts at the first.
        asking.tried = None
        return _Entry(asking, Assignment(fits=False, is_possible=False), [])
    found = assign_flavors_to_podsets(state, asking)
    asking.tried, asking.tried_in = tuple(found.tried), state.cycle
    asking.tried_at = state.generation[asking.queue]
    if found.fits or not found.is_possible:
        return _Entry(asking, found, [])
    return _Entry(asking, found, find_preemption_targets(state, asking, found.usage, found.needs))


def _is_hopeless(state: SchedulingState, asking: PendingWorkload) -> bool:
    """Return whether a run certainly has to wait and reserves no quota, without a full search.

    That is so if there are no preemption candidates and some pod set fits no flavor even without the others.
    """
    tree, queue = state.tree, asking.queue
    if tree.parent[queue] >= 0 and state.queue(queue).preemption.reclaim != "Any":
        return False
    for groups in asking.plan:
        for flavors in groups:
            if not any(
                all(amount <= tree.available(queue, key) for key, amount in asked) for asked in flavors
            ):
                return not state.has_candidates(asking)
    return False


def _process_nominated_workload(
    state: SchedulingState,
    pending: PendingQueue,
    entry: _Entry,
    result: Cycle,
    reserved: list[tuple[int, dict[int, int]]],
) -> None:
    asking, found = entry.asking, entry.found
    if not found.is_possible:
        _requeue_workload(pending, entry, result)
        return
    if not found.fits and not entry.targets:
        if state.queue(asking.queue).preemption.reclaim != "Any":
            kept = _compute_quota_reserved_for_workload(state, entry)
            state.tree.add(asking.queue, kept)
            reserved.append((asking.queue, kept))
        _requeue_workload(pending, entry, result)
        return
    going = {id(one): one for one in (*result.preempted, *entry.targets)}
    is_taken = len(going) < len(result.preempted) + len(entry.targets)
    if is_taken or not _fits_without_preempted_workloads(state, entry, list(going.values())):
        # Another entry took the quota first; Kueue tries again at once.
        result.is_maybe = True
        if not state.setup.kueue.keeps_progress:
            asking.tried = None
        return
    state.tree.add(asking.queue, found.usage)
    result.is_news = True
    asking.tried = None
    if found.fits:
        pending.take(asking)
        result.admitted.append((asking, found.usage))
        return
    reserved.append((asking.queue, found.usage))
    result.preempted += entry.targets
    pending.preempts(asking)


def _requeue_workload(pending: PendingQueue, entry: _Entry, result: Cycle) -> None:
    if entry.found.has_pending_flavors:
        result.is_maybe = True
    elif pending.block(entry.asking):
        result.is_news = True


def _fits_without_preempted_workloads(
    state: SchedulingState, entry: _Entry, gone: list[AdmittedWorkload]
) -> bool:
    for one in gone:
        state.tree.remove(one.queue, one.usage)
    fits = state.tree.fits(entry.asking.queue, entry.found.usage)
    for one in gone:
        state.tree.add(one.queue, one.usage)
    return fits


def _compute_quota_reserved_for_workload(state: SchedulingState, entry: _Entry) -> dict[int, int]:
    """Return the quota reserved for a waiting run that cannot reclaim any, so that none overtakes it."""
    tree, queue = state.tree, entry.asking.queue
    kept = {}
    for key, amount in entry.found.usage.items():
        free = tree.nominal[queue][key] - tree.usage[queue][key]
        limit = tree.limit[queue][key]
        if entry.found.borrowing:
            kept[key] = amount if limit is None else min(amount, free + limit)
        else:
            kept[key] = max(0, min(amount, free))
    return kept


def _iterate_classical_order(entries: list[_Entry]) -> Iterator[_Entry]:
    """Yield the entries in classical order: without borrowing first, then by priority, then by time."""
    yield from sorted(entries, key=lambda entry: (entry.found.borrowing, *entry.asking.order))


def _iterate_fair_sharing_order(state: SchedulingState, entries: list[_Entry]) -> Iterator[_Entry]:
    """Yield per tree the entry with the smallest share of queue and cohorts, recomputed each time."""
    left = {entry.asking.queue: entry for entry in entries}
    tree = state.tree
    while left:
        queue = next(iter(left))
        root = tree.root(queue)
        if root != queue:
            winner = _find_fair_sharing_winner(
                state, root, left, _compute_fair_sharing_ranks(state, root, left)
            )
            queue = winner.asking.queue if winner else queue
        yield left.pop(queue)


Ranks = dict[tuple[int, int], tuple[bool, ShareRank]]  # cohort, queue -> whether it borrows, share


def _compute_fair_sharing_ranks(state: SchedulingState, root: int, left: dict[int, _Entry]) -> Ranks:
    """Return the share of each node on the path to the root, as if its entry were admitted."""
    tree, ranks = state.tree, {}
    own_first = state.setup.kueue.puts_own_first
    for queue, entry in left.items():
        if tree.root(queue) != root:
            continue
        usage = entry.found.usage
        tree.add(queue, usage)
        below = queue
        for cohort in tree.above(queue):
            share = tree.share(below)
            borrows = own_first and any(usage.get(key, 0) > 0 for key in share.borrowed)
            ranks[cohort, queue] = (borrows, share.rank)
            below = cohort
        tree.remove(queue, usage)
    return ranks


def _find_fair_sharing_winner(
    state: SchedulingState, cohort: int, left: dict[int, _Entry], ranks: Ranks
) -> _Entry | None:
    tree = state.tree
    best: _Entry | None = None
    children = tree.children[cohort]
    deep = [_find_fair_sharing_winner(state, child, left, ranks) for child in children if child >= tree.count]
    for entry in (*deep, *(left.get(child) for child in children if child < tree.count)):
        if entry is not None and (
            best is None
            or _build_fair_sharing_key(cohort, entry, ranks) < _build_fair_sharing_key(cohort, best, ranks)
        ):
            best = entry
    return best


def _build_fair_sharing_key(cohort: int, entry: _Entry, ranks: Ranks) -> tuple[object, ...]:
    return (*ranks[cohort, entry.asking.queue], *entry.asking.order)
