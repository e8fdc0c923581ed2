"""The proof of admission: reports a run that Kueue would never admit at the field that causes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from gangplan.kueue.units import KUEUE_CPU, convert_from_kueue_count
from gangplan.model.amounts import format_amount, format_with_unit, is_gpu
from gangplan.model.backend import BACKEND_BY_KIND, MPIJOB, TRAINJOB
from gangplan.objects import Body
from gangplan.rules.admission import NO_FLAVOR, NO_TOPOLOGY, NOT_QUEUED, OVER_QUOTA
from gangplan.validate.apiserver.labels import has_all_labels
from gangplan.validate.expand import job_of
from gangplan.validate.kueue import queues
from gangplan.validate.kueue.annotations import SLICE_SIZE
from gangplan.validate.kueue.elsewhere import check_pool_of_assigned_flavor
from gangplan.validate.kueue.members import read_kueue_line
from gangplan.validate.kueue.model import (
    EXCEEDS_MAX_QUOTA,
    NO_MATCHING_FLAVOR,
    TOPOLOGY_FAILED,
    AdmissionVerdict,
    Shortage,
    count_pods_kueue_admits_without_node,
)
from gangplan.validate.kueue.podsets import list_workload_pod_sets, replace_mpijob_worker_count
from gangplan.validate.kueue.refusals import QUEUE_NAME_LABEL
from gangplan.validate.kueue.solver import judge_admission, verdict_of
from gangplan.validate.kueue.standing import read_kueue_world
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World, find_spec_field_asking_for_resource


def check_kueue_admission_of_run(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Report a run that is never admitted, or that bypasses the queues of a cluster with Kueue."""
    found = job_of(run.bodies)
    if found is None or read_kueue_line(world) is None:
        return
    verdict = verdict_of(world, run)
    if verdict.outcome == "admit":
        if not verdict.queue:
            yield found[0], _report_run_without_queue_label(world, found[1])
        for problem in check_pool_of_assigned_flavor(run.unit.job, verdict):
            yield found[0], problem
        for name, rest in count_pods_kueue_admits_without_node(verdict).items():
            yield found[0], _report_unplaced_slice_pods(world, run, name, verdict.requests[name][0], rest)
        if run.unit.job.trial is not None:
            from gangplan.validate.kueue.sweeps import (
                check_trials_kueue_admits_at_once,
            )  # few workspaces have sweeps

            yield from (
                (found[0], problem) for problem in check_trials_kueue_admits_at_once(world, run, verdict)
            )
        return
    if _is_cluster_queue_reported(world, verdict):
        return
    # No shortage can be counted for a resource that no flavor of the queue has.
    if verdict.cause not in (EXCEEDS_MAX_QUOTA, NO_MATCHING_FLAVOR, TOPOLOGY_FAILED) or (
        verdict.cause == EXCEEDS_MAX_QUOTA and not verdict.shortages
    ):
        from gangplan.validate.kueue.refused import describe_run_refused_by_kueue  # few runs are refused

        refused = describe_run_refused_by_kueue(world, run, found[0], verdict)
        if refused is not None:
            yield refused
        return
    verdict = restrict_verdict_to_selected_flavors(world, run.bodies, verdict)
    field, most = _find_most_admitted_workers(world, run, verdict)
    yield (
        found[0],
        Problem(
            _count_at(found[1]),
            _describe_kueue_admission_failure(world, run, verdict),
            f"{_describe_smallest_change_for_admission(world, run, verdict, most)} Kueue would say:"
            f" {_quote_kueue_admission_message(verdict)}.{_describe_contact_for_kueue_quota(world, verdict)}",
            OVER_QUOTA
            if verdict.cause == EXCEEDS_MAX_QUOTA
            else NO_FLAVOR
            if verdict.cause == NO_MATCHING_FLAVOR
            else NO_TOPOLOGY,
            field=field,
        ),
    )


def _describe_contact_for_kueue_quota(world: World, verdict: AdmissionVerdict) -> str:
    """Return where to ask for quota, if the cluster's file says so and quota is what is missing."""
    return (
        f" {world.asks_at} is where to ask for more."
        if world.asks_at and verdict.cause == EXCEEDS_MAX_QUOTA
        else ""
    )


def _report_unplaced_slice_pods(world: World, run: BuiltRun, name: str, count: int, rest: int) -> Problem:
    """Return the problem of pods beyond the last whole slice: Kueue admits them but never ungates them."""
    one = next(each for each in list_workload_pod_sets(run.bodies, world) if each.name == name)
    size = int(one.annotations.get(SLICE_SIZE) or 0)
    slices = f"slices of {size} pods ({SLICE_SIZE})" if size else "slices"
    message = (
        f"Kueue places pods in {slices}: it admits the run, but {rest} of {count} pods of '{name}' never"
        " get a node"
    )
    divided = f"{count - rest} or {count - rest + size} pods" if size else f"{count - rest} pods"
    help = f"Use {divided} of '{name}', or a slice size that divides {count}."
    return Problem(run.unit.job.backend.workers, message, help, NO_TOPOLOGY, field="workers")


def _report_run_without_queue_label(world: World, job: Body) -> Problem:
    namespace = job["metadata"].get("namespace") or ""
    names = [body["metadata"]["name"] for body in world.of_kind("LocalQueue", namespace)]
    message = "the run names no queue, so Kueue lets it start at once, outside every quota"
    listed = f" of the queues {', '.join(names)}" if names else ""
    help = f"Keep the label {QUEUE_NAME_LABEL} with one{listed}."
    return Problem(("metadata", "labels", QUEUE_NAME_LABEL), message, help, NOT_QUEUED, field="queue")


def _is_cluster_queue_reported(world: World, verdict: AdmissionVerdict) -> bool:
    """Return whether the queue or an object it refers to has its own finding, which runs do not repeat."""
    if verdict.about != "ClusterQueue" or not verdict.queue:
        return False
    standing = read_kueue_world(world)
    index = world.once(_build_queue_index)
    return any(
        any(queues.check_queue_alone(body)) or bool(queues.check_queue_references(body, index))
        for body in standing.around(verdict.queue)
    )


def _build_queue_index(world: World) -> queues.QueueIndex:
    """Build the index; for `World.once`."""
    return queues.QueueIndex(world.standing, world.manager.external_checks)


def restrict_verdict_to_selected_flavors(
    world: World, bodies: Sequence[Body], verdict: AdmissionVerdict
) -> AdmissionVerdict:
    """Restrict a verdict to the flavors that the pods select by a label, if they select any.

    Kueue assigns a flavor without labels to any pod, but such a flavor was not meant.
    """
    pods = next((one for one in list_workload_pod_sets(bodies, world) if one.name == verdict.failed), None)
    selector = (pods.spec.get("nodeSelector") or {}) if pods else {}
    meant = {
        body["metadata"]["name"]
        for body in world.of_kind("ResourceFlavor")
        if (labels := (body.get("spec") or {}).get("nodeLabels")) and has_all_labels(labels, selector)
    }
    shortages = tuple(one for one in verdict.shortages if one.flavor in meant)
    mismatches = {flavor: why for flavor, why in verdict.mismatches.items() if flavor in meant}
    if verdict.cause == EXCEEDS_MAX_QUOTA and (shortages or mismatches):
        cause = EXCEEDS_MAX_QUOTA if shortages else NO_MATCHING_FLAVOR
        return replace(verdict, cause=cause, shortages=shortages, mismatches=mismatches)
    return verdict


def _describe_kueue_admission_failure(world: World, run: BuiltRun, verdict: AdmissionVerdict) -> str:
    """Return the message; about quota it uses the wording of the founding documents."""
    if verdict.cause == TOPOLOGY_FAILED:
        return "No place in the cluster's topology is large enough."
    if verdict.cause == NO_MATCHING_FLAVOR:
        why = ", ".join(sorted(verdict.mismatches.values()))
        return f"No flavor of queue '{verdict.queue}' takes the run's pods{': ' + why if why else ''}."
    short = _find_worst_quota_shortage(verdict.shortages)
    asked, most = format_amount(short.resource, short.requested), format_amount(short.resource, short.most)
    where = _describe_pool_quotas_for_admission(world, run, verdict, short)
    if is_gpu(short.resource):
        return f"Requested {asked} GPUs, but project quota is {most}. Contact admin or reduce workers.{where}"
    if short.resource == KUEUE_CPU:
        return (
            f"Job requires {asked} CPU cores, but project quota is {most} cores."
            f" Request quota increase or reduce workers.{where}"
        )
    return (
        f"Job requires {asked} of {short.resource}, but project quota is {most}."
        f" Request quota increase or reduce workers.{where}"
    )


def _quote_kueue_admission_message(verdict: AdmissionVerdict) -> str:
    """Quote Kueue's message, only the part about the flavor and resource in question if there are several."""
    words = verdict.cause_message.rstrip(".")
    if not verdict.shortages:
        return words
    short = _find_worst_quota_shortage(verdict.shortages)
    about = re.search(
        rf"insufficient quota for {re.escape(short.resource)} in flavor {re.escape(short.flavor)},"
        r".*? > maximum capacity \([^)]*\)",
        words,
    )
    return about[0] if about else words


def _describe_pool_quotas_for_admission(
    world: World, run: BuiltRun, verdict: AdmissionVerdict, short: Shortage
) -> str:
    """Name the pool of the quota and what other pools for workers provide; empty without others.

    Kueue takes all resources of a pod set from one flavor, so a run cannot combine the quotas of two pools.
    """
    standing = read_kueue_world(world)
    others = {
        flavor: most
        for flavor, resource in sorted(standing.quotas[verdict.queue].nominal)
        if resource == short.resource
        and flavor != short.flavor
        and find_pool_name(flavor) in run.unit.job.pools
        and (most := standing.idle.most(verdict.queue, (flavor, resource))) > 0
    }
    if not others:
        return ""
    listed = ", ".join(
        f"{format_amount(short.resource, convert_from_kueue_count(short.resource, most))}"
        f" of {find_pool_name(flavor)}"
        for flavor, most in others.items()
    )
    return (
        f" Pool {find_pool_name(short.flavor)} can provide no more; there are {listed}, too, but all workers"
        " of a run use one pool."
    )


def find_pool_name(flavor: str) -> str:
    """Return the pool of a flavor; a flavor with a topology has a hash after the pool's name."""
    return re.sub(r"-[0-9a-f]{6}$", "", flavor)


def _find_worst_quota_shortage(shortages: Sequence[Shortage]) -> Shortage:
    """Return the worst shortage: GPUs before cores before memory, in the flavor that has most of it."""

    def rank(one: Shortage) -> tuple[int, Fraction]:
        order = 0 if is_gpu(one.resource) else 1 if one.resource == KUEUE_CPU else 2
        return order, -one.most

    return min(shortages, key=rank)


def _find_most_admitted_workers(world: World, run: BuiltRun, verdict: AdmissionVerdict) -> tuple[str, int]:
    """Return the field that is the cause and the largest number of workers that is admitted, or 0."""
    low, high = 0, run.unit.layout.workers
    while high - low > 1:
        middle = (low + high) // 2
        if judge_admission(world, with_workers(run.bodies, middle)).outcome == "admit":
            low = middle
        else:
            high = middle
    if low:
        return "workers", low
    if verdict.cause == NO_MATCHING_FLAVOR:
        return "nodePool", 0
    resource = _find_worst_quota_shortage(verdict.shortages).resource if verdict.shortages else ""
    return find_spec_field_asking_for_resource(run.unit, resource) if resource else "workers", 0


def with_workers(bodies: Sequence[Body], workers: int) -> list[Body]:
    """Return the run with another number of workers."""
    return [_RESIZED[body["kind"]](body, workers) if body["kind"] in _RESIZED else body for body in bodies]


def _replace_trainjob_nodes(job: Body, workers: int) -> Body:
    trainer = {**(job["spec"].get("trainer") or {}), "numNodes": workers}
    return {**job, "spec": {**job["spec"], "trainer": trainer}}


_RESIZED = {TRAINJOB.kind: _replace_trainjob_nodes, MPIJOB.kind: replace_mpijob_worker_count}


def _describe_smallest_change_for_admission(
    world: World, run: BuiltRun, verdict: AdmissionVerdict, most: int
) -> str:
    workers = run.unit.layout.workers
    if most:
        return f"Use at most {most} workers (not {workers}): that many are admitted on an idle cluster."
    if verdict.cause == NO_MATCHING_FLAVOR:
        if (queue := read_kueue_world(world).queue(verdict.queue)) and queue.is_concurrent:
            return "With concurrentAdmission all pods of a run use one pool: give them one, or remove it."
        return "Choose a node pool that the team has quota on, or correct the queue's flavors in the overlay."
    alone = with_workers(run.bodies, 1)
    one = restrict_verdict_to_selected_flavors(world, alone, judge_admission(world, alone))
    if one.shortages:
        short = _find_worst_quota_shortage(one.shortages)
        pool = find_pool_name(short.flavor)
        if any(group.name == pool and not group.count for group in world.nodes):
            file = f"overlays/{world.cluster}/cluster.yaml"
            return f"Name another pool: '{pool}' has count: 0 in {file}, and no autoscale that adds nodes."
        return (
            "Fewer workers do not help:"
            f" even one needs {format_with_unit(short.resource, short.requested)},"
            f" and at most {format_amount(short.resource, short.most)} is ever available."
        )
    return (
        "Fewer workers do not help: even one finds no place. Choose a wider topology level or another pool."
    )


def _count_at(job: Body) -> tuple[str, ...]:
    """Return the path of the number of workers."""
    made = BACKEND_BY_KIND.get(job["kind"])
    return made.workers if made else ("spec",)
