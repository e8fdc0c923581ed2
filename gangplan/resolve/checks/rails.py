"""Checks of RDMA devices of node pools: each resource is listed once, with a count that a node can have."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.clusters import POOL_RAIL_TWICE, POOL_RDMA_SHARED
from gangplan.spec.nodes import NodePool

# More ports than any server has; a larger count is one of virtual functions or of a shared device plugin.
MOST_PORTS = 64


def check_cluster_file_rails(notes: ClusterCheck) -> None:
    """Check the RDMA devices of every pool."""
    for name, pool in notes.spec.node_pools.items():
        _check_cluster_file_pool_rails(notes, name, pool)


def _check_cluster_file_pool_rails(notes: ClusterCheck, name: str, pool: NodePool) -> None:
    base: FieldPath = ("nodePools", name, "rdma")
    seen = {pool.gpu.resource: "its GPUs"} if pool.gpu else {}
    for number, rail in enumerate(pool.rails):
        path = (*base, number) if isinstance(pool.rdma, tuple) else base
        if rail.resource in seen:
            notes.report(
                POOL_RAIL_TWICE,
                (*path, "resource"),
                f"{rail.resource} is the resource of {seen[rail.resource]} in pool '{name}': its devices would be counted twice",
                "Write each resource once; for several networks of one resource, write them as a list in network.",
            )
        seen.setdefault(rail.resource, "another rail")
        if rail.count > MOST_PORTS and not rail.shared:
            notes.report(
                POOL_RDMA_SHARED,
                (*path, "count"),
                f"no node has {rail.count} ports: {rail.resource} in pool '{name}' is shared, and a worker would take more of it than it can use",
                f"Write shared: true, so that a worker takes one; or a count up to {MOST_PORTS}.",
            )
