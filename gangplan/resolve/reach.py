"""Whether a pool can take a whole run: by the most that the team can ever get there, and by its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.profiles import size_launcher
from gangplan.model.quantity import ZERO, Quantity
from gangplan.records import dataclass
from gangplan.resolve.context import JobResolution
from gangplan.resolve.quota import ResourceQuantities
from gangplan.resolve.shares import CPU_RESOURCE, MEMORY_RESOURCE, compute_free_per_node, count_pool_nodes
from gangplan.resolve.site import compute_team_maximum_by_pool
from gangplan.spec.job import Launcher
from gangplan.spec.nodes import NodePool


@dataclass(frozen=True, slots=True)
class PodDemand:
    """Pods of one shape."""

    count: int
    gpus: int
    cpu: Quantity
    memory: Quantity
    others: tuple[tuple[str, Quantity], ...] = ()


def resolve_launcher_demand(context: JobResolution, workers: int) -> PodDemand:
    """Return a dedicated launcher's demand: as the spec states, else by the number of workers; never GPUs."""
    asked = context.spec.spec.launcher or Launcher()
    cpu, memory = size_launcher(workers)
    return PodDemand(1, 0, asked.cpu or cpu, asked.memory or memory)


def can_pool_hold_run(
    context: JobResolution, name: str, workers: PodDemand, launcher: PodDemand | None
) -> bool:
    """Return whether an idle pool holds all workers at once, with `launcher` if it runs there too.

    This is an estimate from the cluster file alone: a pool that it rejects would refuse the run; one that it
    accepts may still refuse it, which the proofs report.
    """
    spec = context.cluster.spec
    pool = spec.node_pools[name]
    if _count_pods_per_pool_node(pool, workers) * count_pool_nodes(pool) < workers.count:
        return False
    most = compute_team_maximum_by_pool(context.cluster, context.teams).get(context.team.name)
    return most is None or _is_pod_demand_within_pool(pool, most.get(name, {}), workers, launcher)


def _count_pods_per_pool_node(pool: NodePool, demand: PodDemand) -> int:
    """Return how many of these pods fit on one empty node."""
    cpu, memory = compute_free_per_node(pool)
    counts = [
        has.nano // wants.nano for has, wants in ((cpu, demand.cpu), (memory, demand.memory)) if wants > ZERO
    ]
    if demand.gpus and pool.gpu:
        counts.append(pool.gpu.count // demand.gpus)
    if demand.others:
        offered = pool.others
        counts += [offered.get(name, ZERO).nano // amount.nano for name, amount in demand.others]
    return min(counts, default=demand.count)


def _is_pod_demand_within_pool(
    pool: NodePool, most: ResourceQuantities, workers: PodDemand, launcher: PodDemand | None
) -> bool:
    total: ResourceQuantities = {}
    for resource, amount in _list_amounts_demanded_of_pool(pool, workers, launcher):
        total[resource] = total.get(resource, ZERO) + amount
    return all(amount <= most.get(resource, ZERO) for resource, amount in total.items())


def _list_amounts_demanded_of_pool(
    pool: NodePool, *demands: PodDemand | None
) -> Iterator[tuple[str, Quantity]]:
    for demand in demands:
        if demand is None:
            continue
        yield CPU_RESOURCE, demand.cpu * demand.count
        yield MEMORY_RESOURCE, demand.memory * demand.count
        if demand.gpus and pool.gpu:
            yield pool.gpu.resource, Quantity.of(demand.gpus * demand.count)
        for resource, amount in demand.others:
            yield resource, amount * demand.count
