"""Answers by search, for questions that counting does not cover: several kinds, several constraints.

Greedy placement comes first: pods go one after another to nodes that accept them, packed or spread, in
several orders. kube-scheduler could take every such step, so the result is a possible placement. To find the
worst case, and whether more pods can be placed, every distinct sequence of steps is tried up to `BUDGET`
states; equal nodes and domains are one choice. Beyond that, the answer is the best placement found, marked as
possibly not the most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from gangplan.validate.scheduler.counting import alone
from gangplan.validate.scheduler.model import Packing, Question
from gangplan.validate.scheduler.node import Content, capacity
from gangplan.validate.scheduler.state import Board, Path, State, nests

BUDGET = 3000
Move = tuple[int, Path, Content]
Taste = Callable[[Move], tuple[int, int]]


def search(question: Question, budget: int = BUDGET) -> Packing:
    """Return the best placement found; `budget` limits the number of states."""
    if not nests(question):
        return Packing(_nowhere(question), False, None)
    board = Board(question)
    wanted = tuple(kind.count for kind in question.kinds)
    ceiling = _ceiling(question)
    best, reached = board.start(), 0
    for state in _greedy(board, wanted):
        placed = sum(board.total(state))
        if placed > reached:
            best, reached = state, placed
        if reached == ceiling:
            break
    found = _exhaust(board, wanted, budget)
    if found is None:
        return Packing(_table(board, best), reached == ceiling, None)
    most, least = found
    return Packing(_table(board, most), True, least)


def _nowhere(question: Question) -> tuple[tuple[int, ...], ...]:
    return tuple((0,) * len(question.pools) for _ in question.kinds)


def _ceiling(question: Question) -> int:
    """Return an upper bound of placed pods.

    Each kind is placed alone, or counts as its room on all nodes if other kinds may help to place it.
    """
    total = 0
    for at, kind in enumerate(question.kinds):
        itself = frozenset({at})
        helped = kind.friends - itself or any(each.matched - itself for each in kind.spreads)
        answer = None if helped else alone(question, at)
        if answer is not None:
            total += answer.bound
            continue
        rooms = (
            pool.count * capacity(question, place, at)
            for place, pool in enumerate(question.pools)
            if kind.homes[place]
        )
        total += min(kind.count, sum(rooms))
    return total


def _table(board: Board, state: State) -> tuple[tuple[int, ...], ...]:
    by_pool = [board.in_pool(state, at) for at in range(len(board.question.pools))]
    return tuple(tuple(content[at] for content in by_pool) for at in range(len(board.question.kinds)))


def _steps(board: Board, state: State, wanted: Content) -> dict[int, list[Move]]:
    """Return where the next pod of each kind may go.

    A stage starts when the earlier ones run or cannot continue.
    """
    have, kinds = board.total(state), board.question.kinds
    for stage in sorted({kind.stage for kind in kinds}):
        steps = {
            at: list(board.moves(state, at))
            for at, kind in enumerate(kinds)
            if kind.stage == stage and have[at] < wanted[at]
        }
        if any(steps.values()):
            return steps
    return {}


def _tastes() -> Sequence[Taste]:
    """Return the preferences among nodes: the fullest or emptiest, of the first or last pools."""
    return (
        lambda move: (-sum(move[2]), move[0]),
        lambda move: (sum(move[2]), move[0]),
        lambda move: (-sum(move[2]), -move[0]),
        lambda move: (sum(move[2]), -move[0]),
    )


def _greedy(board: Board, wanted: Content) -> Iterator[State]:
    """Yield placements by every preference, in several orders of the kinds, and from every first step."""
    kinds = range(len(wanted))
    orders = list(permutations(kinds)) if len(wanted) <= 3 else [tuple(kinds), tuple(reversed(kinds))]
    for order in orders:
        for taste in _tastes():
            yield _run(board, wanted, board.start(), order, taste)
    for order in orders:
        for pool, path, _ in list(board.moves(board.start(), order[0])):
            state = board.put(board.start(), order[0], pool, path)
            yield _run(board, wanted, state, order, _tastes()[0])


def _run(board: Board, wanted: Content, state: State, order: Sequence[int], taste: Taste) -> State:
    """Place pods until no pod of any kind finds a node."""
    while steps := _steps(board, state, wanted):
        kind = next(kind for kind in order if steps.get(kind))
        pool, path, _ = min(steps[kind], key=taste)
        state = board.put(state, kind, pool, path)
    return state


def _exhaust(board: Board, wanted: Content, budget: int) -> tuple[State, int] | None:
    """Return the fullest placement and the fewest pods of any dead end; None if there are too many states."""
    start = board.start()
    seen, waiting = {start}, [start]
    most, reached, least = start, 0, sum(wanted)
    while waiting:
        state = waiting.pop()
        placed = sum(board.total(state))
        if placed > reached:
            most, reached = state, placed
        steps = _steps(board, state, wanted)
        if not steps:
            least = min(least, placed)
        for kind, moves in steps.items():
            for pool, path, _ in moves:
                after = board.put(state, kind, pool, path)
                if after in seen:
                    continue
                if len(seen) >= budget:
                    return None
                seen.add(after)
                waiting.append(after)
    return most, least
