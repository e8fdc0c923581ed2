"""RDMA devices of a worker, and the secondary network that comes with them."""

from __future__ import annotations

from gangplan.model.job import Origin
from gangplan.resolve.context import Context
from gangplan.spec.nodes import NodePool, PoolRdma


def rdma(context: Context, name: str, pool: NodePool) -> tuple[tuple[tuple[str, int], ...], str]:
    """RDMA devices and the secondary network, when asked for and there."""
    network = context.spec.spec.network
    wanted = network.rdma if network else "off"
    if wanted == "off":
        return (), ""
    context.origins["rdma"] = Origin("spec", context.where("network", "rdma"))
    where = context.where("network", "rdma")
    if network and network.transport == "tcp":
        context.error(
            "rdma-with-tcp",
            where,
            f"rdma is {wanted}, but transport: tcp keeps all traffic off it",
            "Remove transport: tcp, or remove rdma.",
        )
        return (), ""
    if pool.rdma is not None:
        return ((pool.rdma.resource, _count(context, name, pool.rdma, wanted)),), (pool.rdma.network or "")
    if wanted != "auto":
        context.error(
            "rdma-missing",
            where,
            f"rdma is {wanted}, but pool '{name}' of cluster {context.cluster.name} has none",
            'Write rdma: "off" to use TCP, or name another cluster or pool.',
        )
    else:
        speed = f" ({pool.network_gbps} Gbit/s per node)" if pool.network_gbps else ""
        context.warning(
            "rdma-fallback",
            where,
            f"pool '{name}' of cluster {context.cluster.name} has no RDMA; the run falls back to TCP{speed} and may take much longer",
            'Write rdma: "off" where TCP will do, or name a pool that has RDMA.',
        )
    return (), ""


def _count(context: Context, name: str, devices: PoolRdma, wanted: str | int) -> int:
    """Devices for one worker: as many as asked for, else one."""
    if wanted == "all":
        return devices.count
    if not isinstance(wanted, int):
        return 1
    if wanted > devices.count:
        context.error(
            "rdma-devices",
            context.where("network", "rdma"),
            f"{wanted} RDMA devices per worker, but a node of pool '{name}' has {devices.count}",
            f"Write rdma: all, or a number up to {devices.count}.",
        )
    return wanted
