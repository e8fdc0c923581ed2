"""RDMA devices of a worker, and the secondary networks that come with them."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model.fabric import NO_ACCESS, DeviceClaim, FabricAccess, WorkerFabric
from gangplan.model.job import Origin
from gangplan.model.kinds import MOST_DEVICES_OF_CLAIM
from gangplan.resolve.context import JobResolution
from gangplan.rules.recipes import RDMA_DEVICES, RDMA_WITH_TCP
from gangplan.rules.specs import RDMA_FALLBACK, RDMA_MISSING
from gangplan.spec.nodes import NodePool, PoolRdma

Devices = tuple[tuple[str, int], ...]
NONE: tuple[Devices, WorkerFabric] = ((), WorkerFabric())


def resolve_rdma(
    context: JobResolution, name: str, pool: NodePool, gpus: int
) -> tuple[Devices, WorkerFabric]:
    """Return the RDMA devices of a worker with so many GPUs, by resource, and their networks.

    Both are empty unless the spec asks for RDMA and the pool has it.
    """
    network = context.spec.spec.network
    wanted = network.rdma if network else "off"
    if wanted == "off":
        return NONE
    where = context.where("network", "rdma")
    context.origins["rdma"] = Origin("spec", where)
    if network and network.transport == "tcp":
        context.report(
            RDMA_WITH_TCP,
            where,
            f"rdma is {wanted}, but transport: tcp keeps all traffic off it",
            "Remove transport: tcp, or remove rdma.",
        )
        return NONE
    access = _find_pool_fabric_access(context, pool)
    if pool.rails or access.name:
        counts = _resolve_rdma_devices_by_rail(context, name, pool, wanted, gpus)
        taken = [(rail, count) for rail, count in zip(pool.rails, counts, strict=True) if count]
        claims = _build_device_claims(pool, counts)
        _check_claims_are_small(context, claims)
        fabric = _build_worker_fabric(taken, claims, access)
        return tuple((rail.resource, count) for rail, count in taken), fabric
    if wanted != "auto":
        context.report(
            RDMA_MISSING,
            where,
            f"rdma is {wanted}, but pool '{name}' of cluster {context.cluster.name} has none",
            'Write rdma: "off" to use TCP, or name another cluster or pool.',
        )
    else:
        speed = f" ({pool.network_gbps} Gbit/s per node)" if pool.network_gbps else ""
        context.report(
            RDMA_FALLBACK,
            where,
            f"pool '{name}' of cluster {context.cluster.name} has no RDMA; the run falls back to TCP{speed} and may take much longer",
            'Write rdma: "off" where TCP is enough, or name a pool that has RDMA.',
        )
    return NONE


def _find_pool_fabric_access(context: JobResolution, pool: NodePool) -> FabricAccess:
    if pool.fabric is None:
        return NO_ACCESS
    from gangplan.resolve.fabrics import resolve_fabric_access  # few clusters have one

    return resolve_fabric_access(context.cluster.spec, pool)


def _resolve_rdma_devices_by_rail(
    context: JobResolution, name: str, pool: NodePool, wanted: str | int, gpus: int
) -> list[int]:
    """Return the number of devices of one worker on each rail of its pool."""
    most = [rail.most for rail in pool.rails]
    if wanted == "all":
        return most
    if wanted in ("auto", "required"):
        # Which GPUs of a node a worker gets is unknown before it runs, so it gets devices of every rail: the
        # nearest card of each GPU is among them.
        whole = pool.gpu.count if pool.gpu else 0
        return [max(1, each * gpus // whole) if whole else 1 for each in most]
    number = gpus if wanted == "per-gpu" else int(wanted)
    if not number:
        context.report(
            RDMA_DEVICES,
            context.where("network", "rdma"),
            "rdma is per-gpu, but a worker has no GPUs",
            "Write rdma: required, or a number of devices per worker.",
        )
    elif number > sum(most):
        shared = " that a worker can use" if any(rail.shared for rail in pool.rails) else ""
        context.report(
            RDMA_DEVICES,
            context.where("network", "rdma"),
            f"{number} RDMA devices per worker, but a node of pool '{name}' has {sum(most)}{shared}",
            f"Write rdma: all, or a number up to {sum(most)}." if most else "Write rdma: required.",
        )
    return _assign_rdma_devices_to_rails(number, most)


def _assign_rdma_devices_to_rails(number: int, most: Sequence[int]) -> list[int]:
    """Distribute devices over the rails in turn, to each at most as many as it has."""
    counts = [0] * len(most)
    while sum(counts) < min(number, sum(most)):
        for at, limit in enumerate(most):
            if counts[at] < limit and sum(counts) < number:
                counts[at] += 1
    return counts


def _build_device_claims(pool: NodePool, counts: Sequence[int]) -> tuple[DeviceClaim, ...]:
    """Return the claims of a worker for devices that dynamic resource allocation provides."""
    return tuple(
        DeviceClaim(
            f"rdma-{at}" if isinstance(pool.rdma, tuple) else "rdma",
            rail.device_class,
            count,
            rail.resource,
            at,
        )
        for at, (rail, count) in enumerate(zip(pool.rails, counts, strict=True))
        if count and rail.device_class
    )


def _check_claims_are_small(context: JobResolution, claims: Sequence[DeviceClaim]) -> None:
    for one in claims:
        if one.count > MOST_DEVICES_OF_CLAIM:
            context.report(
                RDMA_DEVICES,
                context.where("network", "rdma"),
                f"{one.count} devices of class {one.device_class} per worker, but a claim gets at most"
                f" {MOST_DEVICES_OF_CLAIM}",
                "Write a smaller number.",
            )


def _build_worker_fabric(
    taken: Sequence[tuple[PoolRdma, int]], claims: tuple[DeviceClaim, ...], access: FabricAccess
) -> WorkerFabric:
    """Return the networks, interfaces and cards of a worker's devices, and the fabric's access."""
    networks = [one for rail, count in taken for one in _list_rail_networks(rail, count)]
    interfaces = [rail.interface for rail, _ in taken if rail.interface]
    hcas = [card for rail, _ in taken for card in rail.hcas]
    resources = tuple(rail.resource for rail, _ in taken)
    names, cards = tuple(dict.fromkeys(interfaces)), tuple(dict.fromkeys(hcas))
    return WorkerFabric(resources, claims, tuple(networks), names, cards, access)


def _list_rail_networks(rail: PoolRdma, count: int) -> tuple[str, ...]:
    """Return the networks of a rail, one for each device.

    Multus gives the devices of a resource one by one to the networks that name it, so a network is listed as
    often as a worker has devices of it (multus-cni v4, pkg/k8sclient: getKubernetesDelegate).
    """
    if rail.shared or not rail.networks:
        return rail.networks
    return tuple(rail.networks[at % len(rail.networks)] for at in range(count))
