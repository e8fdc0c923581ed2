"""Computes the `Fit` of pods: how many find a node, where, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from gangplan.objects import Body
from gangplan.validate.kueue.request import build_run_request
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.node import count_pods_fitting_on_node
from gangplan.validate.scheduler.pods import (
    PodShape,
    add_project_node_selector,
    list_pod_shapes_to_schedule,
)
from gangplan.validate.scheduler.reduce import Reducer, list_unjudged_scheduling_constraints
from gangplan.validate.scheduler.solve import solve_fit_question
from gangplan.validate.scheduler.words import describe_pods_without_fitting_node
from gangplan.validate.world import World

Value = TypeVar("Value")


def fit_run_pods_onto_nodes(world: World, bodies: Sequence[Body]) -> Fit:
    """Return whether the pods of a run find nodes on an otherwise empty cluster.

    `bodies` are the built objects of one run (TrainJob and TrainingRuntime, a JobSet, or a Job). Kueue is
    ignored: `admitted.py` considers it. Raises `NeverError` if the run's runtime does not exist.
    """
    pods = list_pod_shapes_to_schedule(world, build_run_request(world, bodies))
    return fit_pods(world, [add_project_node_selector(world, one) for one in pods])


def fit_pods(world: World, pods: Sequence[PodShape]) -> Fit:
    """Return the fit of pods by shape; pods of a later phase start when the earlier ones have ended."""
    phases = [
        _fit_phase_pods_onto_nodes(world, [one for one in pods if one.phase == phase])
        for phase in sorted({one.phase for one in pods})
    ]
    known = [one.sure for one in phases if one.sure is not None]
    return Fit(
        sum(one.pods for one in phases),
        sum(one.bound for one in phases),
        sum(known) if len(known) == len(phases) else None,
        all(one.is_exact for one in phases),
        _merge_phase_mappings([one.wanted for one in phases]),
        _merge_phase_mappings([one.placements for one in phases]),
        _merge_phase_mappings([one.nodes for one in phases]),
        tuple(reason for one in phases for reason in one.reasons),
    )


def _merge_phase_mappings(parts: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    return {name: value for part in parts for name, value in part.items()}


def _fit_phase_pods_onto_nodes(world: World, pods: Sequence[PodShape]) -> Fit:
    """Return the fit of the pods of one phase, which run at the same time."""
    total, wanted = sum(one.count for one in pods), {one.name: one.count for one in pods}
    unknown = [told for one in pods for told in list_unjudged_scheduling_constraints(one, world.nodes)]
    if unknown:
        return Fit(total, 0, None, False, wanted, reasons=tuple(unknown))
    reducer = Reducer(world, pods)
    question = reducer.question()
    answer = solve_fit_question(question)
    names = [group.name for group in world.nodes]
    placements = {
        one.name: {names[at]: n for at, n in enumerate(row) if n}
        for one, row in zip(pods, answer.placed, strict=True)
    }
    nodes = {
        one.name: {
            names[at]: -(-n // max(1, count_pods_fitting_on_node(question, at, kind)))
            for at, n in enumerate(row)
            if n
        }
        for kind, (one, row) in enumerate(zip(pods, answer.placed, strict=True))
    }
    reasons = tuple(
        describe_pods_without_fitting_node(world, reducer, question, answer, kind)
        for kind, one in enumerate(pods)
        if sum(answer.placed[kind]) < one.count
    )
    return Fit(total, answer.bound, answer.sure, answer.is_most, wanted, placements, nodes, reasons)
