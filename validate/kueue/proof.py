"""The proof of admission: reports a run that Kueue would never admit at the field that causes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from gangplan.kueue.units import CPU, exact
from gangplan.model.amounts import bare, is_gpu, say
from gangplan.model.backend import BY_KIND, MPIJOB, TRAINJOB
from gangplan.rules.admission import NO_FLAVOR, NO_TOPOLOGY, NOT_QUEUED, OVER_QUOTA
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.apiserver.labels import has_all
from gangplan.validate.expand import job_of
from gangplan.validate.kueue import queues
from gangplan.validate.kueue.annotations import SIZE
from gangplan.validate.kueue.elsewhere import elsewhere
from gangplan.validate.kueue.members import line_of
from gangplan.validate.kueue.model import (
    EXCEEDS,
    NO_MATCHING_FLAVOR,
    TOPOLOGY,
    Shortage,
    Verdict,
    left_over,
)
from gangplan.validate.kueue.podsets import pod_sets, with_replicas
from gangplan.validate.kueue.refusals import QUEUE
from gangplan.validate.kueue.solver import judge, verdict_of
from gangplan.validate.kueue.standing import read
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World, asked_by


def admission(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Report a run that is never admitted, or that bypasses the queues of a cluster with Kueue."""
    found = job_of(run.bodies)
    if found is None or line_of(world) is None:
        return
    verdict = verdict_of(world, run)
    if verdict.outcome == "admit":
        if not verdict.queue:
            yield found[0], _unqueued(world, found[1])
        for problem in elsewhere(run.unit.job, verdict):
            yield found[0], problem
        for name, rest in left_over(verdict).items():
            yield found[0], _sliced(world, run, name, verdict.requests[name][0], rest)
        if run.unit.job.trial is not None:
            from gangplan.validate.kueue.sweeps import held_back  # few workspaces have sweeps

            yield from ((found[0], problem) for problem in held_back(world, run, verdict))
        return
    if _is_told(world, verdict):
        return
    # No shortage can be counted for a resource that no flavor of the queue has.
    if verdict.cause not in (EXCEEDS, NO_MATCHING_FLAVOR, TOPOLOGY) or (
        verdict.cause == EXCEEDS and not verdict.shortages
    ):
        from gangplan.validate.kueue.refused import refused  # few runs are refused

        yield refused(world, run, found[0], verdict)
        return
    verdict = aimed(world, run.bodies, verdict)
    field, most = _most_workers(world, run, verdict)
    yield (
        found[0],
        Problem(
            _count_at(found[1]),
            _sentence(world, run, verdict),
            f"{_smallest_change(world, run, verdict, most)} Kueue would say: {_quote(verdict)}."
            f"{_asking(world, verdict)}",
            OVER_QUOTA
            if verdict.cause == EXCEEDS
            else NO_FLAVOR
            if verdict.cause == NO_MATCHING_FLAVOR
            else NO_TOPOLOGY,
            field=field,
        ),
    )


def _asking(world: World, verdict: Verdict) -> str:
    """Return where to ask for quota, if the cluster's file says so and quota is what is missing."""
    return f" {world.asks_at} is where to ask for more." if world.asks_at and verdict.cause == EXCEEDS else ""


def _sliced(world: World, run: BuiltRun, name: str, count: int, rest: int) -> Problem:
    """Return the problem of pods beyond the last whole slice: Kueue admits them but never ungates them."""
    one = next(each for each in pod_sets(run.bodies, world) if each.name == name)
    size = int(one.annotations.get(SIZE) or 0)
    slices = f"slices of {size} pods ({SIZE})" if size else "slices"
    message = (
        f"Kueue places pods in {slices}: it admits the run, but {rest} of {count} pods of '{name}' never"
        " get a node"
    )
    divided = f"{count - rest} or {count - rest + size} pods" if size else f"{count - rest} pods"
    help = f"Use {divided} of '{name}', or a slice size that divides {count}."
    return Problem(run.unit.job.backend.workers, message, help, NO_TOPOLOGY, field="workers")


def _unqueued(world: World, job: Body) -> Problem:
    namespace = job["metadata"].get("namespace") or ""
    names = [body["metadata"]["name"] for body in world.of_kind("LocalQueue", namespace)]
    message = "the run names no queue, so Kueue lets it start at once, outside every quota"
    listed = f" of the queues {', '.join(names)}" if names else ""
    help = f"Keep the label {QUEUE} with one{listed}."
    return Problem(("metadata", "labels", QUEUE), message, help, NOT_QUEUED, field="queue")


def _is_told(world: World, verdict: Verdict) -> bool:
    """Return whether the queue or an object it refers to has its own finding, which runs do not repeat."""
    if verdict.about != "ClusterQueue" or not verdict.queue:
        return False
    standing = read(world)
    index = world.once(_index)
    return any(
        any(queues.alone(body)) or bool(queues.problems(body, index))
        for body in standing.around(verdict.queue)
    )


def _index(world: World) -> queues.Index:
    """Build the index; for `World.once`."""
    return queues.Index(world.standing, world.manager.external_checks)


def aimed(world: World, bodies: Sequence[Body], verdict: Verdict) -> Verdict:
    """Restrict a verdict to the flavors that the pods select by a label, if they select any.

    Kueue assigns a flavor without labels to any pod, but such a flavor was not meant.
    """
    pods = next((one for one in pod_sets(bodies, world) if one.name == verdict.failed), None)
    selector = (pods.spec.get("nodeSelector") or {}) if pods else {}
    meant = {
        body["metadata"]["name"]
        for body in world.of_kind("ResourceFlavor")
        if (labels := (body.get("spec") or {}).get("nodeLabels")) and has_all(labels, selector)
    }
    shortages = tuple(one for one in verdict.shortages if one.flavor in meant)
    mismatches = {flavor: why for flavor, why in verdict.mismatches.items() if flavor in meant}
    if verdict.cause == EXCEEDS and (shortages or mismatches):
        cause = EXCEEDS if shortages else NO_MATCHING_FLAVOR
        return replace(verdict, cause=cause, shortages=shortages, mismatches=mismatches)
    return verdict


def _sentence(world: World, run: BuiltRun, verdict: Verdict) -> str:
    """Return the message; about quota it uses the wording of the founding documents."""
    if verdict.cause == TOPOLOGY:
        return "No place in the cluster's topology is large enough."
    if verdict.cause == NO_MATCHING_FLAVOR:
        why = ", ".join(sorted(verdict.mismatches.values()))
        return f"No flavor of queue '{verdict.queue}' takes the run's pods{': ' + why if why else ''}."
    short = _worst(verdict.shortages)
    asked, most = bare(short.resource, short.requested), bare(short.resource, short.most)
    where = _where(world, run, verdict, short)
    if is_gpu(short.resource):
        return f"Requested {asked} GPUs, but project quota is {most}. Contact admin or reduce workers.{where}"
    if short.resource == CPU:
        return (
            f"Job requires {asked} CPU cores, but project quota is {most} cores."
            f" Request quota increase or reduce workers.{where}"
        )
    return (
        f"Job requires {asked} of {short.resource}, but project quota is {most}."
        f" Request quota increase or reduce workers.{where}"
    )


def _quote(verdict: Verdict) -> str:
    """Quote Kueue's message, only the part about the flavor and resource in question if there are several."""
    words = verdict.cause_message.rstrip(".")
    if not verdict.shortages:
        return words
    short = _worst(verdict.shortages)
    about = re.search(
        rf"insufficient quota for {re.escape(short.resource)} in flavor {re.escape(short.flavor)},"
        r".*? > maximum capacity \([^)]*\)",
        words,
    )
    return about[0] if about else words


def _where(world: World, run: BuiltRun, verdict: Verdict, short: Shortage) -> str:
    """Name the pool of the quota and what other pools for workers provide; empty without others.

    Kueue takes all resources of a pod set from one flavor, so a run cannot combine the quotas of two pools.
    """
    standing = read(world)
    others = {
        flavor: most
        for flavor, resource in sorted(standing.quotas[verdict.queue].nominal)
        if resource == short.resource
        and flavor != short.flavor
        and pool_name(flavor) in run.unit.job.pools
        and (most := standing.idle.most(verdict.queue, (flavor, resource))) > 0
    }
    if not others:
        return ""
    listed = ", ".join(
        f"{bare(short.resource, exact(short.resource, most))} of {pool_name(flavor)}"
        for flavor, most in others.items()
    )
    return (
        f" Pool {pool_name(short.flavor)} can provide no more; there are {listed}, too, but all workers of a"
        " run use one pool."
    )


def pool_name(flavor: str) -> str:
    """Return the pool of a flavor; a flavor with a topology has a hash after the pool's name."""
    return re.sub(r"-[0-9a-f]{6}$", "", flavor)


def _worst(shortages: Sequence[Shortage]) -> Shortage:
    """Return the worst shortage: GPUs before cores before memory, in the flavor that has most of it."""

    def rank(one: Shortage) -> tuple[int, Fraction]:
        order = 0 if is_gpu(one.resource) else 1 if one.resource == CPU else 2
        return order, -one.most

    return min(shortages, key=rank)


def _most_workers(world: World, run: BuiltRun, verdict: Verdict) -> tuple[str, int]:
    """Return the field that is the cause and the largest number of workers that is admitted, or 0."""
    low, high = 0, run.unit.layout.workers
    while high - low > 1:
        middle = (low + high) // 2
        if judge(world, with_workers(run.bodies, middle)).outcome == "admit":
            low = middle
        else:
            high = middle
    if low:
        return "workers", low
    if verdict.cause == NO_MATCHING_FLAVOR:
        return "nodePool", 0
    resource = _worst(verdict.shortages).resource if verdict.shortages else ""
    return asked_by(run.unit, resource) if resource else "workers", 0


def with_workers(bodies: Sequence[Body], workers: int) -> list[Body]:
    """Return the run with another number of workers."""
    return [_RESIZED[body["kind"]](body, workers) if body["kind"] in _RESIZED else body for body in bodies]


def _with_nodes(job: Body, workers: int) -> Body:
    trainer = {**(job["spec"].get("trainer") or {}), "numNodes": workers}
    return {**job, "spec": {**job["spec"], "trainer": trainer}}


_RESIZED = {TRAINJOB.kind: _with_nodes, MPIJOB.kind: with_replicas}


def _smallest_change(world: World, run: BuiltRun, verdict: Verdict, most: int) -> str:
    workers = run.unit.layout.workers
    if most:
        return f"Use at most {most} workers (not {workers}): that many are admitted on an idle cluster."
    if verdict.cause == NO_MATCHING_FLAVOR:
        if (queue := read(world).queue(verdict.queue)) and queue.is_concurrent:
            return "With concurrentAdmission all pods of a run use one pool: give them one, or remove it."
        return "Choose a node pool that the team has quota on, or correct the queue's flavors in the overlay."
    alone = with_workers(run.bodies, 1)
    one = aimed(world, alone, judge(world, alone))
    if one.shortages:
        short = _worst(one.shortages)
        pool = pool_name(short.flavor)
        if any(group.name == pool and not group.count for group in world.nodes):
            file = f"overlays/{world.cluster}/cluster.yaml"
            return f"Name another pool: '{pool}' has count: 0 in {file}, and no autoscale that adds nodes."
        return (
            f"Fewer workers do not help: even one needs {say(short.resource, short.requested)}, and at most"
            f" {bare(short.resource, short.most)} is ever available."
        )
    return (
        "Fewer workers do not help: even one finds no place. Choose a wider topology level or another pool."
    )


def _count_at(job: Body) -> tuple[str, ...]:
    """Return the path of the number of workers."""
    made = BY_KIND.get(job["kind"])
    return made.workers if made else ("spec",)
