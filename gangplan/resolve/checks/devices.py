"""Checks of disks, huge pages and other devices of node pools: each counted once, and in whole pages."""

from __future__ import annotations

from gangplan.model.quantity import parse_quantity
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.devices import HUGE_PAGES_UNEVEN, POOL_DEVICE_TWICE
from gangplan.spec.nodes import NodePool


def check_cluster_file_devices(notes: ClusterCheck) -> None:
    """Check the devices and huge pages of every pool."""
    for name, pool in notes.spec.node_pools.items():
        _check_cluster_file_pool_devices(notes, name, pool)


def _check_cluster_file_pool_devices(notes: ClusterCheck, name: str, pool: NodePool) -> None:
    named = {rail.resource: "its RDMA devices" for rail in pool.rails}
    named |= {pool.gpu.resource: "its GPUs"} if pool.gpu else {}
    for resource in pool.devices:
        if resource in named:
            notes.report(
                POOL_DEVICE_TWICE,
                ("nodePools", name, "devices", resource),
                f"{resource} is the resource of {named[resource]} in pool '{name}': it would be counted twice",
                "Remove it here.",
                key=True,
            )
    for size, amount in pool.huge_pages.items():
        if amount.nano % parse_quantity(size).nano:
            notes.report(
                HUGE_PAGES_UNEVEN,
                ("nodePools", name, "hugePages", size),
                f"{amount} is not a whole number of pages of {size}",
                "Write what a node of the pool has (kubectl get node NAME -o yaml, status.allocatable).",
            )
