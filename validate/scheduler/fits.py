"""Computes the `Fit` of pods: how many find a node, where, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from gangplan.validate.apiserver.forms import Body
from gangplan.validate.kueue.request import request_of
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.node import capacity
from gangplan.validate.scheduler.pods import PodShape, pods_of
from gangplan.validate.scheduler.reduce import Reducer, unjudged
from gangplan.validate.scheduler.solve import solve
from gangplan.validate.scheduler.words import reason
from gangplan.validate.world import World

Value = TypeVar("Value")


def fits(world: World, bodies: Sequence[Body]) -> Fit:
    """Return whether the pods of a run find nodes on an otherwise empty cluster.

    `bodies` are the built objects of one run (TrainJob and TrainingRuntime, a JobSet, or a Job). Kueue is
    ignored: `admitted.py` considers it. Raises `NeverError` if the run's runtime does not exist.
    """
    return fit_pods(world, pods_of(world, request_of(world, bodies)))


def fit_pods(world: World, pods: Sequence[PodShape]) -> Fit:
    """Return the fit of pods by shape; pods of a later phase start when the earlier ones have ended."""
    phases = [
        _phase(world, [one for one in pods if one.phase == phase])
        for phase in sorted({one.phase for one in pods})
    ]
    known = [one.sure for one in phases if one.sure is not None]
    return Fit(
        sum(one.pods for one in phases),
        sum(one.bound for one in phases),
        sum(known) if len(known) == len(phases) else None,
        all(one.is_exact for one in phases),
        _joined([one.wanted for one in phases]),
        _joined([one.placements for one in phases]),
        _joined([one.nodes for one in phases]),
        tuple(reason for one in phases for reason in one.reasons),
    )


def _joined(parts: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    return {name: value for part in parts for name, value in part.items()}


def _phase(world: World, pods: Sequence[PodShape]) -> Fit:
    """Return the fit of the pods of one phase, which run at the same time."""
    total, wanted = sum(one.count for one in pods), {one.name: one.count for one in pods}
    unknown = [told for one in pods for told in unjudged(one, world.nodes)]
    if unknown:
        return Fit(total, 0, None, False, wanted, reasons=tuple(unknown))
    reducer = Reducer(world, pods)
    question = reducer.question()
    answer = solve(question)
    names = [group.name for group in world.nodes]
    placements = {
        one.name: {names[at]: n for at, n in enumerate(row) if n}
        for one, row in zip(pods, answer.placed, strict=True)
    }
    nodes = {
        one.name: {names[at]: -(-n // max(1, capacity(question, at, kind))) for at, n in enumerate(row) if n}
        for kind, (one, row) in enumerate(zip(pods, answer.placed, strict=True))
    }
    reasons = tuple(
        reason(world, reducer, question, answer, kind)
        for kind, one in enumerate(pods)
        if sum(answer.placed[kind]) < one.count
    )
    return Fit(total, answer.bound, answer.sure, answer.is_most, wanted, placements, nodes, reasons)
