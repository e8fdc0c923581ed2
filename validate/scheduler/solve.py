"""Solves a question: splits it into independent parts and answers each by counting or search."""

from __future__ import annotations

from functools import lru_cache

from gangplan.validate.scheduler.counting import (
    pack_one_pod_beside_many_on_nodes,
    pack_single_pod_kind_on_nodes,
)
from gangplan.validate.scheduler.model import FitQuestion, Packing, PodKind, SpreadConstraint
from gangplan.validate.scheduler.node import has_node_room_for_all_pods
from gangplan.validate.scheduler.search import search_best_pod_packing


@lru_cache(maxsize=4096)
def solve_fit_question(question: FitQuestion) -> Packing:
    """Return the answer to a question; equal questions are answered once."""
    placed: list[tuple[int, ...]] = [()] * len(question.kinds)
    is_most, sure = True, 0
    is_known = True
    for part in _group_pod_kinds_competing_for_nodes(question):
        answer = _solve_part_of_fit_question(_select_pod_kinds_of_fit_question(question, part))
        for at, kind in enumerate(part):
            placed[kind] = answer.placed[at]
        is_most = is_most and answer.is_most
        is_known = is_known and answer.sure is not None
        sure += answer.sure or 0
    return Packing(tuple(placed), is_most, sure if is_known else None)


def _solve_part_of_fit_question(question: FitQuestion) -> Packing:
    """Solve one part by the first method that covers it."""
    answer: Packing | None = None
    kinds = question.kinds
    if len(kinds) == 1:
        answer = pack_single_pod_kind_on_nodes(question, 0)
    elif len(kinds) == 2 and min(kind.count for kind in kinds) == 1:
        single = 1 if kinds[1].count == 1 else 0
        answer = pack_one_pod_beside_many_on_nodes(question, 1 - single, single)
    return answer or search_best_pod_packing(question)


def _group_pod_kinds_competing_for_nodes(question: FitQuestion) -> list[list[int]]:
    """Group the kinds: two are together if they compete for nodes or one's constraints count the other."""
    tight = [
        at
        for at, pool in enumerate(question.pools)
        if pool.count and not has_node_room_for_all_pods(question, at)
    ]
    parts: list[list[int]] = []
    for kind in range(len(question.kinds)):
        touched = [
            part for part in parts if any(_can_kinds_interact(question, kind, other, tight) for other in part)
        ]
        parts = [part for part in parts if part not in touched]
        parts.append(sorted([kind, *(other for part in touched for other in part)]))
    return sorted(parts)


def _can_kinds_interact(question: FitQuestion, kind: int, other: int, tight: list[int]) -> bool:
    one, two = question.kinds[kind], question.kinds[other]
    shared = any(one.homes[at] and two.homes[at] for at in tight)
    return shared or other in _list_counted_kinds(one) or kind in _list_counted_kinds(two)


def _list_counted_kinds(one: PodKind) -> frozenset[int]:
    """Return the kinds that the constraints of a kind count."""
    apart = [kinds for _, kinds in one.apart]
    return one.friends.union(*apart, *(each.matched for each in one.spreads))


def _select_pod_kinds_of_fit_question(question: FitQuestion, part: list[int]) -> FitQuestion:
    """Return the question for some kinds, renumbered."""
    number = {kind: at for at, kind in enumerate(part)}
    stages = sorted({question.kinds[kind].stage for kind in part})

    def kept(kinds: frozenset[int]) -> frozenset[int]:
        return frozenset(number[kind] for kind in kinds if kind in number)

    kinds = []
    for kind in part:
        one = question.kinds[kind]
        kinds.append(
            PodKind(
                one.count,
                stages.index(one.stage),
                one.needs,
                one.homes,
                kept(one.clashes),
                one.near,
                kept(one.friends),
                tuple((key, kept(strangers)) for key, strangers in one.apart),
                tuple(_replace_spread_kinds(each, kept(each.matched)) for each in one.spreads),
                one.is_pinned,
            )
        )
    return FitQuestion(question.pools, tuple(kinds))


def _replace_spread_kinds(each: SpreadConstraint, matched: frozenset[int]) -> SpreadConstraint:
    return SpreadConstraint(each.key, each.skew, each.domains, matched, each.counts_itself, each.counted)
