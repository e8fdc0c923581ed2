"""The admission solver: computes Kueue's verdict about a run on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from gangplan.kueue.model import Key
from gangplan.kueue.tree import QuotaTree
from gangplan.kueue.units import counted, exact
from gangplan.model.support import KueueLine
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.kueue import refusals
from gangplan.validate.kueue.annotations import topology_request
from gangplan.validate.kueue.chosen import FIT, NO_FIT, SEVERITY, Wanted, WorkloadAssignment, no_fit_reason
from gangplan.validate.kueue.flavors import Assigner
from gangplan.validate.kueue.members import line_of
from gangplan.validate.kueue.model import (
    SUSPENDED,
    WAITING,
    NeverError,
    PodSet,
    Usage,
    Verdict,
)
from gangplan.validate.kueue.places import place_of
from gangplan.validate.kueue.placing import place_all
from gangplan.validate.kueue.request import RunRequest, request_of
from gangplan.validate.kueue.requests import adjusted, check, counted_requests, requests_of
from gangplan.validate.kueue.standing import KueueWorld, StandingQueue, read
from gangplan.validate.memo import Memo, key_of
from gangplan.validate.world import BuiltRun, World


class _Verdicts:
    """Cached verdicts for an idle cluster, by request, and by pods and place; for `World.once`."""

    def __init__(self, _: World) -> None:
        self.of_runs: Memo[Verdict] = Memo()
        self.of_places: Memo[Verdict] = Memo()


def verdict_of(world: World, run: BuiltRun) -> Verdict:
    """Return the verdict about a built run on an idle cluster."""
    return idle_verdict(world, run.once(request_of, world))


def idle_verdict(world: World, request: RunRequest) -> Verdict:
    """Return the verdict about a request on an idle cluster; equal requests share one verdict."""
    return world.once(_Verdicts).of_runs.answer(request.key, lambda: _in_place(world, request))


def _in_place(world: World, request: RunRequest) -> Verdict:
    """Return the verdict, reusing the one for an equivalent queue."""
    place = place_of(world, request)
    if place is None:
        return decide(world, request)
    key = key_of(request.pods_key, place.kind)
    verdict = world.once(_Verdicts).of_places.answer(key, lambda: decide(world, request))
    is_other = verdict.queue not in ("", place.queue)  # "": refused before a queue was found
    return replace(verdict, queue=place.queue) if is_other else verdict


def judge(world: World, bodies: Sequence[Body], usage: Usage | None = None) -> Verdict:
    """Return Kueue's verdict about the run among `bodies` (a TrainJob and its runtime, a JobSet or a Job).

    Without `usage` the cluster is idle: the run is admitted at once or never. With it (ClusterQueue -> flavor
    -> resource -> cores, bytes or devices in use) the run is admitted now, waits, or is never admitted.
    Topology is judged as if nodes were free, and nothing is preempted. Without Kueue or without a queue, the
    verdict is `admit` with an empty `queue`: nothing holds the run back. Bodies must fit their schemas.
    """
    request = request_of(world, bodies)
    return idle_verdict(world, request) if usage is None else decide(world, request, usage)


def decide(world: World, request: RunRequest, usage: Usage | None = None) -> Verdict:
    """Compute the verdict about a request without the cache."""
    job, kueue = request.job, line_of(world)
    if job is None or kueue is None:
        return Verdict("admit")
    standing = read(world)
    verdict = Verdict("never")
    try:
        pods = request.pod_sets()
        local = refusals.queue_name(job, standing)
        if not local:
            return Verdict("admit", requests=_shown_requests(_wanted(pods, job, standing, kueue)))
        refusals.check_job(job, pods, standing, kueue)
        wanted = _wanted(pods, job, standing, kueue)
        verdict = replace(verdict, requests=_shown_requests(wanted))
        queue = refusals.queue_of(job, local, standing)
        verdict = replace(verdict, queue=queue.name)
        if queue.inactive:
            message = f"ClusterQueue {queue.name} is inactive"
            raise NeverError(SUSPENDED, message, "ClusterQueue", queue.inactive)
        refusals.check_namespace(job, queue, standing, kueue)
        check([one.pods for one in wanted], standing.ranges(job["metadata"].get("namespace") or ""))
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
    return _in_queue(QueuedWorkload(standing, queue, kueue, wanted), verdict, usage)


def _wanted(pods: Sequence[PodSet], job: Body, standing: KueueWorld, kueue: KueueLine) -> list[Wanted]:
    """Return the pod sets with the requests that Kueue counts."""
    ranges, manager = standing.ranges(job["metadata"].get("namespace") or ""), standing.manager
    found = []
    for one in pods:
        spec = adjusted(one.spec, ranges, standing.overheads)
        whole = replace(one, template={**one.template, "spec": spec})
        each = placed = requests_of(spec)
        if not manager.counts_as_written:
            each = counted_requests(spec, manager, kueue)
            # SinglePodRequests of tas_flavorassigner.go
            placed = placed if kueue.places_as_written else each
        found.append(Wanted(whole, each, topology_request(one.annotations, kueue), placed))
    return found


def _shown_requests(wanted: Sequence[Wanted]) -> dict[str, tuple[int, Mapping[str, Fraction]]]:
    return {
        one.pods.name: (one.pods.count, {name: exact(name, amount) for name, amount in one.each.items()})
        for one in wanted
    }


@dataclass(frozen=True, slots=True)
class QueuedWorkload:
    """A workload in an active queue."""

    standing: KueueWorld
    queue: StandingQueue
    kueue: KueueLine
    wanted: Sequence[Wanted]

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
            if made[-1].mode == FIT:
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
            if assignment.mode != NO_FIT and not assignment.is_cut:
                place_all(self.standing, self.queue, self.kueue, assignment)
            made.append(assignment)
            if assignment.mode == FIT:
                return made
            start = tuple(one.tried for one in assignment.chosen)
            key = tuple(tuple(sorted(one.items())) for one in start)
            if key in seen or all(at == -1 for one in start for at in one.values()):
                return made
            seen.add(key)


def _in_queue(case: QueuedWorkload, verdict: Verdict, usage: Usage | None) -> Verdict:
    tree = case.standing.idle
    made = case.attempts(tree)
    now = made[-1]
    if now.mode != FIT:
        told = [(no_fit_reason(case.queue, one), one) for one in made]
        cause, best = min(told, key=lambda pair: SEVERITY[pair[0]])
        return replace(
            verdict,
            reason=told[-1][0],
            message=now.message(),
            cause=cause,
            cause_message=best.message(),
            shortages=tuple(dict.fromkeys(best.shortages)),
            mismatches=best.mismatches,
            failed=next(one.wanted.pods.name for one in best.chosen if one.mode == NO_FIT),
        )
    if usage is not None:
        tree = tree.loaded({queue: _in_use(flavors) for queue, flavors in usage.items()})
        now = case.attempts(tree)[-1]
    if now.mode != FIT:
        return replace(verdict, outcome="queue", reason=WAITING, message=now.message())
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
            borrowed[flavor, name] = exact(name, amount - own)
    return replace(verdict, outcome="admit", assignment=assignment, placement=placement, borrowed=borrowed)


def _in_use(flavors: Mapping[str, Mapping[str, Fraction]]) -> dict[Key, int]:
    return {
        (flavor, name): counted(name, used)
        for flavor, resources in flavors.items()
        for name, used in resources.items()
    }
