"""The capacity of a node pool, and what a share of it is in every resource that Kueue counts."""

from __future__ import annotations

from gangplan.model.quantity import ZERO, Quantity, QuantityFormat, parse_quantity
from gangplan.spec.cluster import Cluster
from gangplan.spec.nodes import NodePool
from gangplan.spec.queues import Share

CPU_RESOURCE, MEMORY_RESOURCE, DISK_RESOURCE, HUGE_PAGES = "cpu", "memory", "ephemeral-storage", "hugepages-"
_MEBIBYTE = 2**20


def list_resources_of_cluster_pools(cluster: Cluster) -> tuple[str, ...]:
    """Return every resource that some pool offers: cpu, memory, then the others by name.

    One resource group covers them all, so that a pod set takes all of its resources from one flavor; each
    flavor must list them all, in this order (Kueue clusterqueue_webhook.go, v0.19.2).
    """
    devices = {device for pool in cluster.node_pools.values() for device in pool.offered}
    return (CPU_RESOURCE, MEMORY_RESOURCE, *sorted(devices))


def count_pool_nodes(pool: NodePool) -> int:
    """Return the number of nodes that quotas divide: for a pool that grows, the most that it may have."""
    return pool.autoscale.most if pool.autoscale else pool.count


def pool_gpus(pool: NodePool) -> int:
    """Return the number of GPUs of a pool."""
    return pool.gpu.count * count_pool_nodes(pool) if pool.gpu else 0


def compute_free_per_node(pool: NodePool) -> tuple[Quantity, Quantity]:
    """Return CPU and memory of one node that runs may use: allocatable minus the requests of DaemonSets."""
    if pool.daemons is None:
        return pool.cpu, pool.memory
    return pool.cpu - pool.daemons.cpu, pool.memory - pool.daemons.memory


def compute_pool_capacity(pool: NodePool) -> dict[str, Quantity]:
    """Return what a pool offers to runs, by resource."""
    nodes = count_pool_nodes(pool)
    cpu, memory = compute_free_per_node(pool)
    others = {name: amount * nodes for name, amount in pool.offered.items()}
    return {CPU_RESOURCE: cpu * nodes, MEMORY_RESOURCE: memory * nodes, **others}


def find_measure(pool: NodePool) -> str:
    """Return the resource that measures shares of the pool: its GPUs, else CPU."""
    return pool.gpu.resource if pool.gpu else CPU_RESOURCE


def compute_fraction_of_pool_amount(
    amount: Quantity, numerator: int, denominator: int, resource: str
) -> Quantity:
    """Return a part of an amount, rounded down to thousandths of a core, whole MiB, pages or devices."""
    if not denominator:
        return ZERO
    part = amount.nano * numerator // denominator
    if resource == CPU_RESOURCE:
        return Quantity(part // 1_000_000 * 1_000_000, QuantityFormat.DECIMAL_SI)
    if resource in (MEMORY_RESOURCE, DISK_RESOURCE) or resource.startswith(HUGE_PAGES):
        size = resource.removeprefix(HUGE_PAGES)
        step = parse_quantity(size).nano if size != resource else _MEBIBYTE * 1_000_000_000
        return Quantity(part // step * step, QuantityFormat.BINARY_SI)
    return Quantity.of(part // 1_000_000_000)


def resolve_pool_share_amounts(share: Share, pool: NodePool) -> dict[str, Quantity]:
    """Return a share of a pool in every resource of the pool.

    What the share does not state is in proportion to its measure. A GPU without its part of the CPU and
    memory could be promised and never be reclaimed (kueue#4028).
    """
    whole = compute_pool_capacity(pool)
    numerator, denominator = _compute_share_fraction(share, pool, whole)
    amounts = {
        name: compute_fraction_of_pool_amount(total, numerator, denominator, name)
        for name, total in whole.items()
    }
    if share.gpus is not None and pool.gpu:
        amounts[pool.gpu.resource] = Quantity.of(share.gpus)
    if share.cpu is not None:
        amounts[CPU_RESOURCE] = share.cpu
    if share.memory is not None:
        amounts[MEMORY_RESOURCE] = share.memory
    if share.disk is not None and DISK_RESOURCE in amounts:
        amounts[DISK_RESOURCE] = share.disk
    stated = {name: count for name, count in share.devices.items() if name in amounts}
    amounts |= {name: Quantity.of(count) for name, count in stated.items()}
    return amounts


def _compute_share_fraction(share: Share, pool: NodePool, whole: dict[str, Quantity]) -> tuple[int, int]:
    """Return the share as a fraction of the pool, by its measure."""
    if pool.gpu:
        return share.gpus or 0, pool_gpus(pool)
    return (share.cpu.nano if share.cpu else 0), whole[CPU_RESOURCE].nano
