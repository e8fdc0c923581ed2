"""Checks for forgotten GPUs: a run without GPUs that fits only on nodes with GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.kueue.units import format_kueue_amount
from gangplan.model.amounts import is_gpu
from gangplan.model.job import Job
from gangplan.records import dataclass
from gangplan.resolve.misfit import DISK
from gangplan.spec.nodes import find_spec_field_of_resource
from gangplan.validate.kueue import verdict_of
from gangplan.validate.kueue.proof import find_pool_name
from gangplan.validate.scheduler.pods import PodShape
from gangplan.validate.scheduler.reduce import count_free_node_units
from gangplan.validate.world import BuiltRun, NodeGroup, World

WORDS = {"cpu": "CPU", "memory": "memory"}


@dataclass(frozen=True, slots=True)
class ForgottenGpus:
    """Why a worker without GPUs goes to a node with GPUs: the field of the spec, the message and the help.

    `is_meant`: the spec explicitly requests no GPUs.
    """

    field: str
    message: str
    help: str
    pool: str
    is_meant: bool


def find_forgotten_gpus(world: World, run: BuiltRun, pods: Sequence[PodShape]) -> ForgottenGpus | None:
    """Return why workers without GPUs go to a pool with GPUs; None if they do not, or the spec names it."""
    job = run.unit.job
    group = next((one for one in world.nodes if one.name == job.worker_pool.name), None)
    workers = next((one for one in pods if one.name == job.backend.role("worker")), None)
    place = job.origins.get("nodePool")
    if job.gpus or group is None or workers is None or (place is not None and place.layer == "spec"):
        return None
    gpus = _count_node_gpus(group)
    if not gpus:
        return None
    plain = [
        one
        for one in _list_node_pools_of_queue_flavors(world, run)
        if one.count and not _count_node_gpus(one)
    ]
    short = {one.name: _list_short_resources(one, workers, job) for one in plain}
    if not plain or not all(short.values()):
        return None
    # The pool that is closest to fitting was most likely meant.
    nearest = min(plain, key=lambda one: (len(short[one.name]), plain.index(one)))
    written = job.origins.get("gpus")
    is_meant = written is not None and written.layer == "spec"
    field, lack, less = _explain_short_resource(nearest, workers, job, short[nearest.name])
    less = less or f"placement: {{nodePool: {group.name}}} for these nodes"
    return ForgottenGpus(
        field,
        f"{lack}{'' if is_meant else '; did you forget gpus?'}",
        f"Add gpus: 1 (or up to {gpus}, a whole node of pool {group.name}), or write {less}",
        group.name,
        is_meant,
    )


def _explain_short_resource(
    nearest: NodeGroup, workers: PodShape, job: Job, short: Sequence[str]
) -> tuple[str, str, str]:
    """Return the field that asks for the first resource that a node lacks, what it lacks, and what to write
    instead; empty if it has nothing of it."""
    resource = short[0]
    field = _find_field_that_asks(job, resource)
    word = WORDS.get(resource, "disk" if resource == DISK else resource)
    free = count_free_node_units(nearest.free, resource) if resource in nearest.free else 0
    has, wants = (format_kueue_amount(resource, units) for units in (free, workers.requests[resource]))
    if not free:
        return field, f"a node of pool {nearest.name} has no {word}, a worker wants {wants}", ""
    less = f"{field}: {has}" if resource in WORDS or resource == DISK else ""
    if len(short) > 1 and less:
        less = f"less per worker ({less})"
    return field, f"a node of pool {nearest.name} has {has} {word}, a worker wants {wants}", less


def _find_field_that_asks(job: Job, resource: str) -> str:
    """Return the field of the spec that asks for a resource; empty if the spec has no such field."""
    if resource in WORDS:
        return resource
    field = find_spec_field_of_resource(resource)[0]
    return next(
        (one for one in (field, *(("scratch",) if resource == DISK else ())) if one in job.origins), ""
    )


def _count_node_gpus(group: NodeGroup) -> int:
    return max((int(amount) for name, amount in group.free.items() if is_gpu(name)), default=0)


def _list_node_pools_of_queue_flavors(world: World, run: BuiltRun) -> list[NodeGroup]:
    """Return the pools of the flavors of the run's queue; all pools without a queue."""
    queue = world.find("ClusterQueue", verdict_of(world, run).queue)
    if queue is None:
        return list(world.nodes)
    groups = (queue.get("spec") or {}).get("resourceGroups") or ()
    pools = {find_pool_name(flavor["name"]) for group in groups for flavor in group["flavors"]}
    return [one for one in world.nodes if one.name in pools]


def _list_short_resources(group: NodeGroup, workers: PodShape, job: Job) -> list[str]:
    """Return the resources that the spec asks for and a node of the group lacks for a worker.

    Scratch asks for none of a pool that states no disk.
    """
    short = []
    for name in (*WORDS, *(one for one, _ in job.resources.others)):
        field, wants = _find_field_that_asks(job, name), workers.requests.get(name, 0)
        is_stated = name in group.free or field == "scratch"
        if field and wants > (count_free_node_units(group.free, name) if is_stated else 0):
            short.append(name)
    return short
