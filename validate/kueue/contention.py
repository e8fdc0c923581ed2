"""Runs that stand in each other's way: who can be thrown out and lose its work, and who holds what up.

One run alone can be judged where it certainly borrows or ranks last; what needs all runs of a cluster
starts from `demand_of`, a small summary of each, and ends in `collisions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gangplan.kueue.model import NEVER, Key, PreemptionRules
from gangplan.kueue.units import exact
from gangplan.model.amounts import say
from gangplan.rules.contention import PREEMPTIBLE_WITHOUT_CHECKPOINT
from gangplan.rules.model import NOTE
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.apiserver.labels import has_all
from gangplan.validate.kueue import Verdict, judge, verdict_of
from gangplan.validate.kueue.matching import untolerated
from gangplan.validate.kueue.model import PodSet
from gangplan.validate.kueue.podsets import job_of, pod_sets
from gangplan.validate.kueue.requests import adjusted, requests_of
from gangplan.validate.kueue.standing import read
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, NodeGroup, World

PRIORITY = "kueue.x-k8s.io/priority-class"
DIRECTORY, RESUME = "CHECKPOINT_DIR", "CHECKPOINT_RESUME"
HELP = "Add checkpoint: {to: CLAIM} and load CHECKPOINT_DIR when the program starts"


def can_resume(bodies: Sequence[Body]) -> bool:
    """Whether a run that starts again goes on from a checkpoint: some container is told where, and to do
    so.
    """
    for body in bodies:
        if body["kind"] != "TrainingRuntime":
            continue
        for job in body["spec"]["template"]["spec"]["replicatedJobs"]:
            for container in job["template"]["spec"]["template"]["spec"]["containers"]:
                env = {one["name"]: one.get("value") for one in container.get("env") or ()}
                if env.get(DIRECTORY) and env.get(RESUME) == "true":
                    return True
    return False


def priority_of(world: World, bodies: Sequence[Body]) -> int:
    """The priority of a run in its queue: that of its WorkloadPriorityClass, else of its pods' class, else 0.

    Source: Kueue v0.19.2 pkg/util/priority, pkg/controller/jobframework/reconciler.go.
    """
    found = job_of(bodies)
    if found is None:
        return 0
    name = (found[1]["metadata"].get("labels") or {}).get(PRIORITY)
    if name:
        own = world.find("WorkloadPriorityClass", name)
        return int(own["value"]) if own else 0
    pods = pod_sets(bodies, world.standing)
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
    mine = priority_of(world, run.bodies)
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
    return read(world).queues[queue].quotas.preemption


def _values(world: World) -> list[tuple[int, str]]:
    classes = world.of_kind("WorkloadPriorityClass")
    return sorted((int(body["value"]), body["metadata"]["name"]) for body in classes)


def _owner(world: World, verdict: Verdict, mine: int) -> str:
    """Queues that own what the run borrows and may take it back; "" when there is none."""
    if not verdict.borrowed:
        return ""
    standing = read(world)
    can_be_outranked = any(value > mine for value, _ in _values(world))
    owners = []
    for one in standing.others_of(verdict.queue):
        policy = one.preemption.reclaim
        may = policy == "Any" or (policy == "LowerPriority" and can_be_outranked)
        if may and any(one.nominal.get(key, 0) > 0 for key in verdict.borrowed):
            owners.append(one.name)
    if len(owners) > 2:
        return f"one of {len(owners)} other queues ({owners[0]}, {owners[1]}, ...)"
    return " or ".join(f"queue {name}" for name in owners)


def _above(world: World, queue: str, mine: int) -> str:
    """The classes above the lowest one, if the run is of that and its queue preempts by priority."""
    if _preemption(world, queue).within == NEVER:
        return ""
    values = _values(world)
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


def demand_of(world: World, bodies: Sequence[Body]) -> RunDemand | None:
    """The summary of a run; None where there are no pods or it can never run."""
    found = job_of(bodies)
    verdict = judge(world, bodies)
    if found is None or verdict.outcome == "never":
        return None
    pods = {one.name: one for one in pod_sets(bodies, world.standing)}
    requests = verdict.requests or _requests(world, found[1], list(pods.values()))
    if not requests:
        return None
    name, (count, each) = max(requests.items(), key=lambda item: (item[1][0], item[0]))
    groups = tuple(group.name for group in world.nodes if _may_run(group, pods[name].spec))
    is_gang = bool(verdict.queue) or any(
        body["kind"] == "TrainingRuntime" and body["spec"].get("podGroupPolicy") for body in bodies
    )
    if not verdict.queue:
        return RunDemand(count, dict(each), groups, is_gang)
    usage, idle = verdict.usage, read(world).idle
    return RunDemand(
        count,
        dict(each),
        groups,
        is_gang,
        verdict.queue,
        priority_of(world, bodies),
        can_resume(bodies),
        _preemption(world, verdict.queue).within != NEVER,
        bool(verdict.borrowed),
        usage,
        {key: exact(key[1], idle.most(verdict.queue, key)) for key in usage},
    )


def _requests(
    world: World, job: Body, pods: Sequence[PodSet]
) -> Mapping[str, tuple[int, Mapping[str, Fraction]]]:
    """Pods and what one of them asks for, where there is no Kueue to count it."""
    standing = read(world)
    ranges = standing.ranges(job["metadata"].get("namespace") or "")
    return {
        one.name: (
            one.count,
            {
                name: exact(name, amount)
                for name, amount in requests_of(adjusted(one.spec, ranges, standing.overheads)).items()
            },
        )
        for one in pods
    }


def _may_run(group: NodeGroup, spec: Body) -> bool:
    taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in group.taints]
    fits = has_all(spec.get("nodeSelector") or {}, group.labels)
    return fits and untolerated(taints, spec.get("tolerations") or ()) is None
