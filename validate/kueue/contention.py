"""Runs that stand in each other's way: who can be thrown out and lose its work, and who holds what up.

One run alone can be judged where it certainly borrows or ranks last; what needs all runs of a cluster
starts from `demand_of`, a small summary of each, and ends in `collisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from gangplan.kueue.model import NEVER, Key, PreemptionRules
from gangplan.kueue.units import exact
from gangplan.model.amounts import say
from gangplan.records import dataclass
from gangplan.rules.contention import PREEMPTIBLE_WITHOUT_CHECKPOINT
from gangplan.rules.model import NOTE
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.apiserver.labels import has_all
from gangplan.validate.expand import job_of
from gangplan.validate.kueue import Verdict, verdict_of
from gangplan.validate.kueue.matching import untolerated
from gangplan.validate.kueue.places import place_of
from gangplan.validate.kueue.request import RunRequest, request_of
from gangplan.validate.kueue.requests import adjusted, requests_of
from gangplan.validate.kueue.solver import idle_verdict
from gangplan.validate.kueue.standing import read
from gangplan.validate.memo import Memo, key_of
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, NodeGroup, World, templates_of

PRIORITY = "kueue.x-k8s.io/priority-class"
_Items = tuple[tuple[Any, Fraction], ...]
DIRECTORY, RESUME = "CHECKPOINT_DIR", "CHECKPOINT_RESUME"
HELP = "Add checkpoint: {to: CLAIM} and load CHECKPOINT_DIR when the program starts"


def can_resume(bodies: Sequence[Body]) -> bool:
    """Whether a run that starts again goes on from a checkpoint: some container is told where, and to do
    so.
    """
    for body in bodies:
        for _, template in templates_of(body):
            for container in (template.get("spec") or {}).get("containers") or ():
                env = {one["name"]: one.get("value") for one in container.get("env") or ()}
                if env.get(DIRECTORY) and env.get(RESUME) == "true":
                    return True
    return False


def priority_of(world: World, request: RunRequest) -> int:
    """The priority of a run in its queue: that of its WorkloadPriorityClass, else of its pods' class, else 0.

    Source: Kueue v0.19.2 pkg/util/priority, pkg/controller/jobframework/reconciler.go.
    """
    if request.job is None:
        return 0
    name = (request.job["metadata"].get("labels") or {}).get(PRIORITY)
    if name:
        own = world.find("WorkloadPriorityClass", name)
        return int(own["value"]) if own else 0
    pods = request.pod_sets()
    named = pods[0].spec.get("priorityClassName") if pods else None
    own = world.find("PriorityClass", named) if named else None
    return int(own["value"]) if own else 0


def prove_resumable(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """A run without checkpoint that others may throw out: it borrows by itself, or it ranks below all
    others.
    """
    found = job_of(run.bodies)
    if found is None or can_resume(run.bodies):
        return
    verdict = verdict_of(world, run)
    if verdict.outcome != "admit" or not verdict.queue:
        return
    mine = priority_of(world, run.once(request_of, world))
    owner = _owner(world, verdict, mine)
    if owner:
        yield found[0], _taken_back(verdict, owner)
        return
    # A team's default is no choice of the run's: what is stated once for all runs is not told at each.
    origin = run.unit.job.origins.get("priority")
    above = _above(world, verdict.queue, mine) if origin and origin.layer == "spec" else ""
    if above:
        yield found[0], _outranked(above)


def _taken_back(verdict: Verdict, owner: str) -> Problem:
    """What the run borrows goes back to `owner`."""
    (flavor, resource), amount = max(verdict.borrowed.items(), key=lambda item: (_is_device(item[0]), item))
    return Problem(
        ("spec", "trainer"),
        f"the run borrows {say(resource, amount)} of flavor {flavor} even when its queue is idle; when"
        f" {owner} wants its quota back, Kueue stops the run, and without a checkpoint all its work is lost",
        f"{HELP}, or ask for no more than the team's own quota.",
        PREEMPTIBLE_WITHOUT_CHECKPOINT,
        "workers",
    )


def _outranked(above: str) -> Problem:
    """Runs of its own queue with these priorities go first."""
    return Problem(
        ("metadata", "labels", PRIORITY),
        f"runs with priority {above} in the same queue preempt this one, which then starts from scratch:"
        " it has no checkpoint",
        f"{HELP}, or raise its priority.",
        PREEMPTIBLE_WITHOUT_CHECKPOINT,
        "priority",
        NOTE,
    )


def _preemption(world: World, queue: str) -> PreemptionRules:
    return read(world).quotas[queue].preemption


def _values(world: World) -> list[tuple[int, str]]:
    """The priorities of runs, lowest first; for `World.once`."""
    classes = world.of_kind("WorkloadPriorityClass")
    return sorted((int(body["value"]), body["metadata"]["name"]) for body in classes)


def _owner(world: World, verdict: Verdict, mine: int) -> str:
    """Queues that own what the run borrows and may take it back; "" when there is none."""
    if not verdict.borrowed:
        return ""
    values = world.once(_values)
    can_be_outranked = bool(values) and values[-1][0] > mine
    owners = read(world).owners(verdict.queue, frozenset(verdict.borrowed), can_be_outranked)
    first = [name for name in islice(owners, 4) if name != verdict.queue]
    more = len(owners) - (verdict.queue in owners)
    if more > 2:
        return f"one of {more} other queues ({first[0]}, {first[1]}, ...)"
    return " or ".join(f"queue {name}" for name in first)


def _above(world: World, queue: str, mine: int) -> str:
    """The classes above the lowest one, if the run is of that and its queue preempts by priority."""
    if _preemption(world, queue).within == NEVER:
        return ""
    values = world.once(_values)
    if not values or mine != values[0][0]:
        return ""
    return ", ".join(name for value, name in values if value > mine)


def _is_device(key: Key) -> bool:
    return key[1] not in ("cpu", "memory")


# --- all runs of a cluster ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunDemand:
    """What one run wants: `count` pods of `each` on nodes of `groups`; its queue, rank and quota.

    `is_gang`: something starts all its pods together, or none. `usage` is its quota on an idle cluster,
    `most` the most that its queue can have of the same; `gives_way`: runs of its queue preempt by priority;
    `borrows`: it takes more than its queue owns even when that is idle.
    """

    count: int
    each: Mapping[str, Fraction]
    groups: tuple[str, ...]
    is_gang: bool
    queue: str = ""
    priority: int = 0
    resumes: bool = True
    gives_way: bool = False
    borrows: bool = False
    usage: Mapping[Key, Fraction] | None = None
    most: Mapping[Key, Fraction] | None = None

    def __reduce__(self) -> tuple[Callable[..., RunDemand], tuple[Any, ...]]:
        """Whoever gets the demands of many runs from workers holds equal amounts once."""
        amounts = (None if own is None else tuple(own.items()) for own in (self.each, self.usage, self.most))
        plain = (self.count, self.groups, self.is_gang, self.queue, self.priority)
        return _met_again, (*amounts, *plain, self.resumes, self.gives_way, self.borrows)


def _met_again(each: _Items, usage: _Items | None, most: _Items | None, *plain: Any) -> RunDemand:
    count, *others = plain
    at_most = (None if own is None else _amounts(own) for own in (usage, most))
    return RunDemand(count, _amounts(each), *others, *at_most)


@lru_cache(4096)
def _amounts(items: _Items) -> Mapping[Any, Fraction]:
    return dict(items)


def demand_of(world: World, bodies: Sequence[Body]) -> RunDemand | None:
    """The summary of a run; None where there are no pods or it can never run."""
    return demand_for(world, request_of(world, bodies), can_resume(bodies))


class _Demands:
    """What was answered, by request, and by pods and place; for `World.once`."""

    def __init__(self, _: World) -> None:
        self.of_runs: Memo[RunDemand | None] = Memo()
        self.of_places: Memo[RunDemand | None] = Memo()


def demand_for(world: World, request: RunRequest, resumes: bool) -> RunDemand | None:
    """The summary of a run that asks for this; equal requests get one answer, and one object."""
    key = request.key and request.key + bytes([resumes])
    return world.once(_Demands).of_runs.answer(key, lambda: _in_place(world, request, resumes))


def _in_place(world: World, request: RunRequest, resumes: bool) -> RunDemand | None:
    """The same, of another queue of the same kind where one was asked before."""
    place = place_of(world, request)
    if place is None:
        return summed_up(world, request, resumes)
    key = key_of(request.pods_key, place.kind, resumes, priority_of(world, request))
    demand = world.once(_Demands).of_places.answer(key, lambda: summed_up(world, request, resumes))
    is_other = demand is not None and demand.queue not in ("", place.queue)
    return replace(demand, queue=place.queue) if demand is not None and is_other else demand


def summed_up(world: World, request: RunRequest, resumes: bool) -> RunDemand | None:
    """The same without looking at earlier answers."""
    verdict = idle_verdict(world, request)
    if request.job is None or verdict.outcome == "never":
        return None
    pods = {one.name: one for one in request.pod_sets()}
    # What nodes must have, which is not what quota counts where the manager is told to count otherwise.
    plain = verdict.requests if world.manager.counts_as_written else {}
    requests = plain or _requests(world, request)
    if not requests:
        return None
    name, (count, each) = max(requests.items(), key=lambda item: (item[1][0], item[0]))
    groups = tuple(group.name for group in world.nodes if _may_run(group, pods[name].spec))
    is_gang = bool(verdict.queue) or request.is_gang
    if not verdict.queue:
        return RunDemand(count, dict(each), groups, is_gang)
    usage, idle = verdict.usage, read(world).idle
    return RunDemand(
        count,
        dict(each),
        groups,
        is_gang,
        verdict.queue,
        priority_of(world, request),
        resumes,
        _preemption(world, verdict.queue).within != NEVER,
        bool(verdict.borrowed),
        usage,
        {key: exact(key[1], idle.most(verdict.queue, key)) for key in usage},
    )


def _requests(world: World, request: RunRequest) -> Mapping[str, tuple[int, Mapping[str, Fraction]]]:
    """Pods and what one of them asks for, where there is no Kueue to count it."""
    standing, job = read(world), request.job or {"metadata": {}}
    ranges = standing.ranges(job["metadata"].get("namespace") or "")
    return {
        one.name: (
            one.count,
            {
                name: exact(name, amount)
                for name, amount in requests_of(adjusted(one.spec, ranges, standing.overheads)).items()
            },
        )
        for one in request.pod_sets()
    }


def _may_run(group: NodeGroup, spec: Body) -> bool:
    taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in group.taints]
    fits = has_all(spec.get("nodeSelector") or {}, group.labels)
    return fits and untolerated(taints, spec.get("tolerations") or ()) is None
