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

from gangplan.validate.scheduler.counting import pack_single_pod_kind_on_nodes
from gangplan.validate.scheduler.model import FitQuestion, Packing
from gangplan.validate.scheduler.node import NodeContent, count_pods_fitting_on_node
from gangplan.validate.scheduler.state import Board, BoardState, DomainPath, has_nested_domains

BUDGET = 3000
Move = tuple[int, DomainPath, NodeContent]
Taste = Callable[[Move], tuple[int, int]]


def search_best_pod_packing(question: FitQuestion, budget: int = BUDGET) -> Packing:
    """Return the best placement found; `budget` limits the number of states."""
    if not has_nested_domains(question):
        return Packing(_build_empty_placement(question), False, None)
    board = Board(question)
    wanted = tuple(kind.count for kind in question.kinds)
    ceiling = _compute_ceiling_of_pods_on_nodes(question)
    best, reached = board.start(), 0
    for state in _iterate_greedy_pod_placements(board, wanted):
        placed = sum(board.total(state))
        if placed > reached:
            best, reached = state, placed
        if reached == ceiling:
            break
    found = _search_all_pod_placements(board, wanted, budget)
    if found is None:
        return Packing(_build_placement_table(board, best), reached == ceiling, None)
    most, least = found
    return Packing(_build_placement_table(board, most), True, least)


def _build_empty_placement(question: FitQuestion) -> tuple[tuple[int, ...], ...]:
    return tuple((0,) * len(question.pools) for _ in question.kinds)


def _compute_ceiling_of_pods_on_nodes(question: FitQuestion) -> int:
    """Return an upper bound of placed pods.

    Each kind is placed alone, or counts as its room on all nodes if other kinds may help to place it.
    """
    total = 0
    for at, kind in enumerate(question.kinds):
        itself = frozenset({at})
        helped = kind.friends - itself or any(each.matched - itself for each in kind.spreads)
        answer = None if helped else pack_single_pod_kind_on_nodes(question, at)
        if answer is not None:
            total += answer.bound
            continue
        rooms = (
            pool.count * count_pods_fitting_on_node(question, place, at)
            for place, pool in enumerate(question.pools)
            if kind.homes[place]
        )
        total += min(kind.count, sum(rooms))
    return total


def _build_placement_table(board: Board, state: BoardState) -> tuple[tuple[int, ...], ...]:
    by_pool = [board.in_pool(state, at) for at in range(len(board.question.pools))]
    return tuple(tuple(content[at] for content in by_pool) for at in range(len(board.question.kinds)))


def _list_moves_for_next_pods(board: Board, state: BoardState, wanted: NodeContent) -> dict[int, list[Move]]:
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


def _list_node_preferences() -> Sequence[Taste]:
    """Return the preferences among nodes: the fullest or emptiest, of the first or last pools."""
    return (
        lambda move: (-sum(move[2]), move[0]),
        lambda move: (sum(move[2]), move[0]),
        lambda move: (-sum(move[2]), -move[0]),
        lambda move: (sum(move[2]), -move[0]),
    )


def _iterate_greedy_pod_placements(board: Board, wanted: NodeContent) -> Iterator[BoardState]:
    """Yield placements by every preference, in several orders of the kinds, and from every first step."""
    kinds = range(len(wanted))
    orders = list(permutations(kinds)) if len(wanted) <= 3 else [tuple(kinds), tuple(reversed(kinds))]
    for order in orders:
        for taste in _list_node_preferences():
            yield _place_pods_greedily_on_nodes(board, wanted, board.start(), order, taste)
    for order in orders:
        for pool, path, _ in list(board.moves(board.start(), order[0])):
            state = board.put(board.start(), order[0], pool, path)
            yield _place_pods_greedily_on_nodes(board, wanted, state, order, _list_node_preferences()[0])


def _place_pods_greedily_on_nodes(
    board: Board, wanted: NodeContent, state: BoardState, order: Sequence[int], taste: Taste
) -> BoardState:
    """Place pods until no pod of any kind finds a node."""
    while steps := _list_moves_for_next_pods(board, state, wanted):
        kind = next(kind for kind in order if steps.get(kind))
        pool, path, _ = min(steps[kind], key=taste)
        state = board.put(state, kind, pool, path)
    return state


def _search_all_pod_placements(
    board: Board, wanted: NodeContent, budget: int
) -> tuple[BoardState, int] | None:
    """Return the fullest placement and the fewest pods of any dead end; None if there are too many states."""
    start = board.start()
    seen, waiting = {start}, [start]
    most, reached, least = start, 0, sum(wanted)
    while waiting:
        state = waiting.pop()
        placed = sum(board.total(state))
        if placed > reached:
            most, reached = state, placed
        steps = _list_moves_for_next_pods(board, state, wanted)
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
