"""Contention of runs: which run can be preempted and lose its work, and which ones block others.

A run that certainly borrows or has the lowest priority is judged by itself. Checks of all runs of a cluster
start from `sum_run_demand`, a small summary of each run, and are in `validate/collisions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from gangplan.kueue.model import NEVER, FlavorResource, PreemptionRules
from gangplan.kueue.units import convert_from_kueue_count
from gangplan.model.amounts import format_with_unit
from gangplan.model.pods import CHECKPOINT_ENV
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.contention import PREEMPTIBLE_WITHOUT_CHECKPOINT
from gangplan.rules.model import NOTE
from gangplan.validate.apiserver.labels import has_all_labels
from gangplan.validate.expand import job_of
from gangplan.validate.kueue import AdmissionVerdict, verdict_of
from gangplan.validate.kueue.matching import find_untolerated_taint
from gangplan.validate.kueue.places import find_admission_place_of_run
from gangplan.validate.kueue.request import RunRequest, build_run_request
from gangplan.validate.kueue.requests import adjust_workload_pod_spec, requests_of
from gangplan.validate.kueue.solver import find_idle_verdict
from gangplan.validate.kueue.standing import read_kueue_world
from gangplan.validate.memo import Memo, digest_memo_key
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, NodeGroup, World, find_pod_templates

PRIORITY = "kueue.x-k8s.io/priority-class"
_Items = tuple[tuple[Any, Fraction], ...]
DIRECTORY, _, RESUME = CHECKPOINT_ENV
# Volumes that end with their pod.
_OF_POD = frozenset({"emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected"})
CHECKPOINT_HELP = "Add checkpoint: {to: CLAIM} and load CHECKPOINT_DIR when the program starts"


def can_preempted_run_resume(bodies: Sequence[Body]) -> bool:
    """Return whether a restarted run resumes: a container gets CHECKPOINT_DIR and CHECKPOINT_RESUME=true.

    A spec may set both itself; the directory has to outlive its pod.
    """
    for body in bodies:
        for _, template in find_pod_templates(body):
            pod = template.get("spec") or {}
            for container in pod.get("containers") or ():
                env = {one["name"]: one.get("value") for one in container.get("env") or ()}
                folder = env.get(DIRECTORY) or ""
                if env.get(RESUME) == "true" and _outlives_pod(folder, container, pod):
                    return True
    return False


def _outlives_pod(folder: str, container: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Return whether what a container saves in a folder, or at a URL, is there for the next pod."""
    if "://" in folder:
        return True
    mounts = [one for one in container.get("volumeMounts") or () if _is_at_or_below(folder, one["mountPath"])]
    if not mounts:
        return False
    name = max(mounts, key=lambda one: len(one["mountPath"]))["name"]
    volume: Mapping[str, Any] = next((one for one in pod.get("volumes") or () if one["name"] == name), {})
    return not _OF_POD & volume.keys()


def _is_at_or_below(folder: str, mount: str) -> bool:
    return f"{folder}/".startswith(f"{mount.rstrip('/')}/")


def find_workload_priority_of_run(world: World, request: RunRequest) -> int:
    """Return the priority of a run: from its WorkloadPriorityClass, else its pods' PriorityClass, else 0.

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


def prove_preempted_run_resumes(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Report a run without a checkpoint that may be preempted, as it borrows or has the lowest priority."""
    found = job_of(run.bodies)
    if found is None or can_preempted_run_resume(run.bodies):
        return
    verdict = verdict_of(world, run)
    if verdict.outcome != "admit" or not verdict.queue:
        return
    mine = find_workload_priority_of_run(world, run.once(build_run_request, world))
    owner = _describe_owners_of_borrowed_quota(world, verdict, mine)
    if owner:
        is_trial = run.unit.job.trial is not None  # the queue of a sweep has no quota of its own
        otherwise = "" if is_trial else ", or ask for no more than the team's own quota"
        yield found[0], _report_reclaimable_borrowed_quota(verdict, owner, otherwise)
        return
    # A team's default is not the run's choice, so it is not reported for each run.
    origin = run.unit.job.origins.get("priority")
    above = (
        _list_higher_workload_priorities(world, verdict.queue, mine)
        if origin and origin.layer == "spec"
        else ""
    )
    if above:
        yield found[0], _report_preemption_by_priority(above)


def _report_reclaimable_borrowed_quota(verdict: AdmissionVerdict, owner: str, otherwise: str) -> Problem:
    """Return the problem that `owner` may take back what the run borrows; `otherwise` is another way out."""
    (flavor, resource), amount = max(verdict.borrowed.items(), key=lambda item: (_is_device(item[0]), item))
    return Problem(
        ("spec", "trainer"),
        f"the run borrows {format_with_unit(resource, amount)} of flavor {flavor} even when its queue is"
        f" idle; when {owner} wants its quota back, Kueue stops the run, and without a checkpoint all its"
        " work is lost",
        f"{CHECKPOINT_HELP}{otherwise}.",
        PREEMPTIBLE_WITHOUT_CHECKPOINT,
        "workers",
    )


def _report_preemption_by_priority(above: str) -> Problem:
    """Return the problem that runs of the same queue with these priorities preempt the run."""
    return Problem(
        ("metadata", "labels", PRIORITY),
        f"runs with priority {above} in the same queue preempt this one, which then starts from scratch:"
        " it has no checkpoint",
        f"{CHECKPOINT_HELP}, or raise its priority.",
        PREEMPTIBLE_WITHOUT_CHECKPOINT,
        "priority",
        NOTE,
    )


def _read_preemption_rules(world: World, queue: str) -> PreemptionRules:
    return read_kueue_world(world).quotas[queue].preemption


def _list_priority_values(world: World) -> list[tuple[int, str]]:
    """List the priorities of runs, lowest first; for `World.once`."""
    classes = world.of_kind("WorkloadPriorityClass")
    return sorted((int(body["value"]), body["metadata"]["name"]) for body in classes)


def _describe_owners_of_borrowed_quota(world: World, verdict: AdmissionVerdict, mine: int) -> str:
    """Name the queues that own what the run borrows and may take it back; "" without any."""
    if not verdict.borrowed:
        return ""
    values = world.once(_list_priority_values)
    can_be_outranked = bool(values) and values[-1][0] > mine
    owners = read_kueue_world(world).owners(verdict.queue, frozenset(verdict.borrowed), can_be_outranked)
    first = [name for name in islice(owners, 4) if name != verdict.queue]
    more = len(owners) - (verdict.queue in owners)
    if more > 2:
        return f"one of {more} other queues ({first[0]}, {first[1]}, ...)"
    return " or ".join(f"queue {name}" for name in first)


def _list_higher_workload_priorities(world: World, queue: str, mine: int) -> str:
    """List the higher priority classes if the run has the lowest one and its queue preempts by priority."""
    if _read_preemption_rules(world, queue).within == NEVER:
        return ""
    values = world.once(_list_priority_values)
    if not values or mine != values[0][0]:
        return ""
    return ", ".join(name for value, name in values if value > mine)


def _is_device(key: FlavorResource) -> bool:
    return key[1] not in ("cpu", "memory")


# --- all runs of a cluster ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunDemand:
    """The demand of a run: `count` pods that request `each` on nodes of `groups`; queue, priority and quota.

    `is_gang`: its pods start all together or not at all. `usage` is its quota on an idle cluster, `most` is
    the most of the same that its queue can have. `gives_way`: runs of its queue preempt by priority.
    `borrows`: it uses more than its queue owns even if the queue is idle.
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
    usage: Mapping[FlavorResource, Fraction] | None = None
    most: Mapping[FlavorResource, Fraction] | None = None

    def __reduce__(self) -> tuple[Callable[..., RunDemand], tuple[Any, ...]]:
        """Pickle the demand so that a process that receives many demands shares equal amounts."""
        amounts = (None if own is None else tuple(own.items()) for own in (self.each, self.usage, self.most))
        plain = (self.count, self.groups, self.is_gang, self.queue, self.priority)
        return _rebuild_run_demand, (*amounts, *plain, self.resumes, self.gives_way, self.borrows)


def _rebuild_run_demand(each: _Items, usage: _Items | None, most: _Items | None, *plain: Any) -> RunDemand:
    count, *others = plain
    at_most = (None if own is None else _build_shared_amounts(own) for own in (usage, most))
    return RunDemand(count, _build_shared_amounts(each), *others, *at_most)


@lru_cache(4096)
def _build_shared_amounts(items: _Items) -> Mapping[Any, Fraction]:
    return dict(items)


def sum_run_demand(world: World, bodies: Sequence[Body]) -> RunDemand | None:
    """Summarise the demand of a run; return None if it has no pods or can never run."""
    return summarise_demand_of_queued_run(
        world, build_run_request(world, bodies), can_preempted_run_resume(bodies)
    )


class _Demands:
    """Cached demands, by request, and by pods and place; for `World.once`."""

    def __init__(self, _: World) -> None:
        self.of_runs: Memo[RunDemand | None] = Memo()
        self.of_places: Memo[RunDemand | None] = Memo()


def summarise_demand_of_queued_run(world: World, request: RunRequest, resumes: bool) -> RunDemand | None:
    """Summarise the demand of a request; equal requests share one object."""
    key = request.key and request.key + bytes([resumes])
    return world.once(_Demands).of_runs.answer(
        key, lambda: _summarise_demand_by_equivalent_queue(world, request, resumes)
    )


def _summarise_demand_by_equivalent_queue(
    world: World, request: RunRequest, resumes: bool
) -> RunDemand | None:
    """Summarise the demand, reusing the answer for an equivalent queue."""
    place = find_admission_place_of_run(world, request)
    if place is None:
        return summed_up(world, request, resumes)
    key = digest_memo_key(
        request.pods_key, place.kind, resumes, find_workload_priority_of_run(world, request)
    )
    demand = world.once(_Demands).of_places.answer(key, lambda: summed_up(world, request, resumes))
    is_other = demand is not None and demand.queue not in ("", place.queue)
    return replace(demand, queue=place.queue) if demand is not None and is_other else demand


def summed_up(world: World, request: RunRequest, resumes: bool) -> RunDemand | None:
    """Summarise the demand without the cache."""
    verdict = find_idle_verdict(world, request)
    if request.job is None or verdict.outcome == "never":
        return None
    pods = {one.name: one for one in request.pod_sets()}
    # What nodes must have; quota may count differently if Kueue's manager is configured so.
    plain = verdict.requests if world.manager.counts_as_written else {}
    requests = plain or _compute_pod_set_requests(world, request)
    if not requests:
        return None
    name, (count, each) = max(requests.items(), key=lambda item: (item[1][0], item[0]))
    groups = tuple(group.name for group in world.nodes if _may_run(group, pods[name].spec))
    is_gang = bool(verdict.queue) or request.is_gang
    if not verdict.queue:
        return RunDemand(count, dict(each), groups, is_gang)
    usage, idle = verdict.usage, read_kueue_world(world).idle
    return RunDemand(
        count,
        dict(each),
        groups,
        is_gang,
        verdict.queue,
        find_workload_priority_of_run(world, request),
        resumes,
        _read_preemption_rules(world, verdict.queue).within != NEVER,
        bool(verdict.borrowed),
        usage,
        {key: convert_from_kueue_count(key[1], idle.most(verdict.queue, key)) for key in usage},
    )


def _compute_pod_set_requests(
    world: World, request: RunRequest
) -> Mapping[str, tuple[int, Mapping[str, Fraction]]]:
    """Return the number of pods and the requests of one pod by pod set, without Kueue's settings."""
    standing, job = read_kueue_world(world), request.job or {"metadata": {}}
    ranges = standing.ranges(job["metadata"].get("namespace") or "")
    return {
        one.name: (
            one.count,
            {
                name: convert_from_kueue_count(name, amount)
                for name, amount in requests_of(
                    adjust_workload_pod_spec(one.spec, ranges, standing.overheads)
                ).items()
            },
        )
        for one in request.pod_sets()
    }


def _may_run(group: NodeGroup, spec: Body) -> bool:
    taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in group.taints]
    fits = has_all_labels(spec.get("nodeSelector") or {}, group.labels)
    return fits and find_untolerated_taint(taints, spec.get("tolerations") or ()) is None
