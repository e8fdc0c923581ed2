"""The admission solver: computes Kueue's verdict about a run on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from gangplan.kueue.model import FlavorResource
from gangplan.kueue.tree import QuotaTree
from gangplan.kueue.units import convert_from_kueue_count, convert_to_kueue_count
from gangplan.model.support import KueueLine
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.kueue import refusals
from gangplan.validate.kueue.annotations import parse_topology_annotations
from gangplan.validate.kueue.chosen import (
    FIT_MODE,
    NO_FIT_MODE,
    REASON_SEVERITY,
    PodSetRequest,
    WorkloadAssignment,
    find_workload_no_fit_reason,
)
from gangplan.validate.kueue.flavors import Assigner
from gangplan.validate.kueue.members import read_kueue_line
from gangplan.validate.kueue.model import (
    SUSPENDED_REASON,
    WAITING_FOR_QUOTA,
    AdmissionVerdict,
    FlavorUsage,
    NeverError,
    PodSet,
)
from gangplan.validate.kueue.places import find_admission_place_of_run
from gangplan.validate.kueue.placing import place_pod_sets_in_topology
from gangplan.validate.kueue.request import RunRequest, build_run_request
from gangplan.validate.kueue.requests import (
    adjust_workload_pod_spec,
    count_requests,
    refuse_workload_beyond_limit_ranges,
    requests_of,
    resolve_claimed_resources,
)
from gangplan.validate.kueue.standing import KueueWorld, QueueState, read_kueue_world
from gangplan.validate.memo import Memo, digest_memo_key
from gangplan.validate.world import BuiltRun, World


class _Verdicts:
    """Cached verdicts for an idle cluster, by request, and by pods and place; for `World.once`."""

    def __init__(self, _: World) -> None:
        self.of_runs: Memo[AdmissionVerdict] = Memo()
        self.of_places: Memo[AdmissionVerdict] = Memo()


def verdict_of(world: World, run: BuiltRun) -> AdmissionVerdict:
    """Return the verdict about a built run on an idle cluster."""
    return find_idle_verdict(world, run.once(build_run_request, world))


def find_idle_verdict(world: World, request: RunRequest) -> AdmissionVerdict:
    """Return the verdict about a request on an idle cluster; equal requests share one verdict."""
    return world.once(_Verdicts).of_runs.answer(
        request.key, lambda: _judge_admission_by_equivalent_queue(world, request)
    )


def _judge_admission_by_equivalent_queue(world: World, request: RunRequest) -> AdmissionVerdict:
    """Return the verdict, reusing the one for an equivalent queue."""
    place = find_admission_place_of_run(world, request)
    if place is None:
        return solve_admission_without_cache(world, request)
    key = digest_memo_key(request.pods_key, place.kind)
    verdict = world.once(_Verdicts).of_places.answer(
        key, lambda: solve_admission_without_cache(world, request)
    )
    is_other = verdict.queue not in ("", place.queue)  # "": refused before a queue was found
    return replace(verdict, queue=place.queue) if is_other else verdict


def judge_admission(
    world: World, bodies: Sequence[Body], usage: FlavorUsage | None = None
) -> AdmissionVerdict:
    """Return Kueue's verdict about the run among `bodies` (a TrainJob and its runtime, a JobSet or a Job).

    Without `usage` the cluster is idle: the run is admitted at once or never. With it (ClusterQueue -> flavor
    -> resource -> cores, bytes or devices in use) the run is admitted now, waits, or is never admitted.
    Topology is judged as if nodes were free, and nothing is preempted. Without Kueue or without a queue, the
    verdict is `admit` with an empty `queue`: nothing holds the run back. Bodies must fit their schemas.
    """
    request = build_run_request(world, bodies)
    return (
        find_idle_verdict(world, request)
        if usage is None
        else solve_admission_without_cache(world, request, usage)
    )


def solve_admission_without_cache(
    world: World, request: RunRequest, usage: FlavorUsage | None = None
) -> AdmissionVerdict:
    """Compute the verdict about a request without the cache."""
    job, kueue = request.job, read_kueue_line(world)
    if job is None or kueue is None:
        return AdmissionVerdict("admit")
    standing = read_kueue_world(world)
    verdict = AdmissionVerdict("never")
    try:
        pods = request.pod_sets()
        local = refusals.find_local_queue_name_of_job(job, standing)
        if not local:
            return AdmissionVerdict(
                "admit",
                requests=_convert_requests_from_kueue_counts(
                    _build_pod_set_requests(pods, job, standing, kueue)
                ),
            )
        refusals.check_job_against_kueue_webhooks(job, pods, standing, kueue)
        wanted = _build_pod_set_requests(pods, job, standing, kueue)
        verdict = replace(verdict, requests=_convert_requests_from_kueue_counts(wanted))
        queue = refusals.find_cluster_queue_of_local_queue(job, local, standing)
        verdict = replace(verdict, queue=queue.name)
        if queue.inactive:
            message = f"ClusterQueue {queue.name} is inactive"
            raise NeverError(SUSPENDED_REASON, message, "ClusterQueue", queue.inactive)
        refusals.check_namespace_of_queued_run(job, queue, standing, kueue)
        refuse_workload_beyond_limit_ranges(
            [one.pods for one in wanted], standing.ranges(job["metadata"].get("namespace") or "")
        )
    except NeverError as no:
        why = f"{no.message}: {no.detail}" if no.detail else no.message
        return replace(
            verdict,
            reason=no.reason,
            message=no.message,
            cause=no.reason,
            cause_message=why,
            about=no.about,
        )
    return _judge_admission_of_queued_workload(QueuedWorkload(standing, queue, kueue, wanted), verdict, usage)


def _build_pod_set_requests(
    pods: Sequence[PodSet], job: Body, standing: KueueWorld, kueue: KueueLine
) -> list[PodSetRequest]:
    """Return the pod sets with the requests that Kueue counts."""
    ranges, manager = standing.ranges(job["metadata"].get("namespace") or ""), standing.manager
    found = []
    for one in pods:
        spec = adjust_workload_pod_spec(one.spec, ranges, standing.overheads)
        whole = replace(one, template={**one.template, "spec": spec})
        each = placed = requests_of(spec)
        if not manager.counts_as_written:
            each = count_requests(spec, manager, kueue)
            # SinglePodRequests of tas_flavorassigner.go
            placed = placed if kueue.places_as_written else each
        if one.claimed or one.uncountable:
            each = {**each}
            for resource, count in resolve_claimed_resources(one, manager).items():
                each[resource] = each.get(resource, 0) + count
        found.append(PodSetRequest(whole, each, parse_topology_annotations(one.annotations, kueue), placed))
    return found


def _convert_requests_from_kueue_counts(
    wanted: Sequence[PodSetRequest],
) -> dict[str, tuple[int, Mapping[str, Fraction]]]:
    return {
        one.pods.name: (
            one.pods.count,
            {name: convert_from_kueue_count(name, amount) for name, amount in one.each.items()},
        )
        for one in wanted
    }


@dataclass(frozen=True, slots=True)
class QueuedWorkload:
    """A workload in an active queue."""

    standing: KueueWorld
    queue: QueueState
    kueue: KueueLine
    wanted: Sequence[PodSetRequest]

    def attempts(self, tree: QuotaTree) -> list[WorkloadAssignment]:
        """Return the attempts that Kueue makes; the last one fits if any does.

        With ConcurrentAdmission each flavor has its own workload, whose pods all go there
        (pkg/controller/concurrentadmission, Kueue v0.18.2 and v0.19.2). Which fitting one is admitted first
        is random; here it is the preferred one.
        """
        if not self.queue.is_concurrent:
            return self._one_by_one(tree)
        made: list[WorkloadAssignment] = []
        for flavor in (name for group in self.queue.quotas.groups for name in group.flavors):
            made += self._one_by_one(tree, flavor)
            if made[-1].mode == FIT_MODE:
                break
        return made

    def _one_by_one(self, tree: QuotaTree, only: str = "") -> list[WorkloadAssignment]:
        """Return the attempts of one workload; Kueue continues with the next flavor while any is left."""
        start: tuple[Mapping[str, int], ...] = ()
        seen = set()
        made: list[WorkloadAssignment] = []
        while True:
            assigner = Assigner(self.standing, self.queue, tree, self.kueue, start, only)
            assignment = assigner.assign(self.wanted)
            if assignment.mode != NO_FIT_MODE and not assignment.is_cut:
                place_pod_sets_in_topology(self.standing, self.queue, self.kueue, assignment)
            made.append(assignment)
            if assignment.mode == FIT_MODE:
                return made
            start = tuple(one.tried for one in assignment.chosen)
            key = tuple(tuple(sorted(one.items())) for one in start)
            if key in seen or all(at == -1 for one in start for at in one.values()):
                return made
            seen.add(key)


def _judge_admission_of_queued_workload(
    case: QueuedWorkload, verdict: AdmissionVerdict, usage: FlavorUsage | None
) -> AdmissionVerdict:
    tree = case.standing.idle
    made = case.attempts(tree)
    now = made[-1]
    if now.mode != FIT_MODE:
        told = [(find_workload_no_fit_reason(case.queue, one), one) for one in made]
        cause, best = min(told, key=lambda pair: REASON_SEVERITY[pair[0]])
        return replace(
            verdict,
            reason=told[-1][0],
            message=now.message(),
            cause=cause,
            cause_message=best.message(),
            shortages=tuple(dict.fromkeys(best.shortages)),
            mismatches=best.mismatches,
            failed=next((one.wanted.pods.name for one in best.chosen if one.mode == NO_FIT_MODE), ""),
        )
    if usage is not None:
        tree = tree.loaded(
            {queue: _convert_usage_to_kueue_counts(flavors) for queue, flavors in usage.items()}
        )
        now = case.attempts(tree)[-1]
    if now.mode != FIT_MODE:
        return replace(verdict, outcome="queue", reason=WAITING_FOR_QUOTA, message=now.message())
    assignment = {
        one.wanted.pods.name: {name: flavor for name, (flavor, _) in sorted(one.flavors.items())}
        for one in now.chosen
    }
    placement = {one.wanted.pods.name: one.places for one in now.chosen if one.places}
    borrowed, queue = {}, tree.numbers[case.queue.name]
    for (flavor, name), amount in now.usage.items():
        at = tree.index[flavor, name]
        own = max(0, tree.nominal[queue][at] - tree.usage[queue][at])
        if amount > own:
            borrowed[flavor, name] = convert_from_kueue_count(name, amount - own)
    return replace(verdict, outcome="admit", assignment=assignment, placement=placement, borrowed=borrowed)


def _convert_usage_to_kueue_counts(
    flavors: Mapping[str, Mapping[str, Fraction]],
) -> dict[FlavorResource, int]:
    return {
        (flavor, name): convert_to_kueue_count(name, used)
        for flavor, resources in flavors.items()
        for name, used in resources.items()
    }
