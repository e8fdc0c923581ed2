"""Checks for forgotten GPUs: a run without GPUs that fits only on nodes with GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.kueue.units import format_kueue_amount
from gangplan.model.amounts import is_gpu
from gangplan.records import dataclass
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
    short = {one.name: _list_short_resources(one, workers) for one in plain}
    if not plain or not all(short.values()):
        return None
    # The pool that is closest to fitting was most likely meant.
    nearest = min(plain, key=lambda one: (len(short[one.name]), plain.index(one)))
    field = short[nearest.name][0]
    has, wants = (
        format_kueue_amount(field, units)
        for units in (count_free_node_units(nearest.free, field), workers.requests[field])
    )
    written = job.origins.get("gpus")
    is_meant = written is not None and written.layer == "spec"
    less = f"{field}: {has}" if len(short[nearest.name]) == 1 else f"less per worker ({field}: {has})"
    return ForgottenGpus(
        field,
        f"a node of pool {nearest.name} has {has} {WORDS[field]}, a worker wants {wants}"
        f"{'' if is_meant else '; did you forget gpus?'}",
        f"Add gpus: 1 (or up to {gpus}, a whole node of pool {group.name}), or write {less}",
        group.name,
        is_meant,
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


def _list_short_resources(group: NodeGroup, workers: PodShape) -> list[str]:
    """Return the resources that a node of the group lacks for a worker."""
    return [name for name in WORDS if workers.requests.get(name, 0) > count_free_node_units(group.free, name)]
