"""Checks of node pools and topology: pools must differ, and Kueue must be able to place pods by topology."""

from __future__ import annotations

from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.shares import compute_free_per_node, list_resources_of_cluster_pools
from gangplan.rules.clusters import (
    POOL_AUTOSCALE,
    POOL_DAEMONS,
    POOL_LABELS_MISSING,
    POOL_NAME_LONG,
    POOL_OVERLAP,
    POOL_TAINT_TWICE,
    POOLS_TOO_MANY,
    TOPOLOGY_HOST_NOT_LAST,
    TOPOLOGY_LEVEL_SIZE,
    TOPOLOGY_LEVEL_TWICE,
)
from gangplan.rules.specs import TOPOLOGY_MISSING
from gangplan.spec.nodes import NodePool

HOSTNAME = "kubernetes.io/hostname"
# The most pairs of flavor and resource in one resource group (ClusterQueue CRD, Kueue v0.19.2).
MOST_PAIRS = 512
# The longest parameters.name of an AdmissionCheck (Kueue v0.19.2) without `provision-`.
MOST_GROWING_NAME = 63 - len("provision-")


def check_cluster_file_pools(notes: ClusterCheck) -> None:
    """Check pools, topology levels and the number of quotas."""
    for name, pool in notes.spec.node_pools.items():
        _check_cluster_file_pool_size(notes, name, pool)
        _check_cluster_file_pool_taints(notes, name, pool)
        _check_cluster_file_pool_topology(notes, name, pool)
    _check_cluster_file_pool_overlaps(notes)
    _check_cluster_file_topology_levels(notes)
    pairs = len(notes.spec.node_pools) * len(list_resources_of_cluster_pools(notes.spec))
    if notes.spec.gang == "kueue" and pairs > MOST_PAIRS:
        notes.report(
            POOLS_TOO_MANY,
            ("nodePools",),
            f"{len(notes.spec.node_pools)} pools with {len(list_resources_of_cluster_pools(notes.spec))} resources are {pairs} quotas per queue; Kueue allows {MOST_PAIRS}",
            "Merge pools of one shape.",
            key=True,
        )


def _check_cluster_file_pool_size(notes: ClusterCheck, name: str, pool: NodePool) -> None:
    """Check what a node has left for runs, and how far a pool may grow."""
    path = ("nodePools", name)
    cpu, memory = compute_free_per_node(pool)
    if cpu.nano <= 0 or memory.nano <= 0:
        notes.report(
            POOL_DAEMONS,
            (*path, "daemons"),
            f"DaemonSets request as much as a node of pool '{name}' has",
            "Correct the amounts; they are per node.",
        )
    if pool.autoscale and pool.autoscale.most < pool.count:
        notes.report(
            POOL_AUTOSCALE,
            (*path, "autoscale", "most"),
            f"pool '{name}' may have {pool.autoscale.most} nodes at most, but has {pool.count} now",
            f"Write most: {pool.count} or more.",
        )
    if pool.is_asked_for and len(name) > MOST_GROWING_NAME:
        notes.report(
            POOL_NAME_LONG,
            path,
            f"the name of a pool that grows has at most {MOST_GROWING_NAME} characters, and '{name}' has {len(name)}:"
            " Kueue's check 'provision-<pool>' has at most 63",
            "Shorten the name.",
            key=True,
        )


def _check_cluster_file_pool_taints(notes: ClusterCheck, name: str, pool: NodePool) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.taints):
        if (taint.key, taint.effect) in seen:
            notes.report(
                POOL_TAINT_TWICE,
                ("nodePools", name, "taints", index),
                f"taint {taint.key} with effect {taint.effect} is listed twice",
                "Nodes carry one taint per key and effect; remove one.",
            )
        seen.add((taint.key, taint.effect))


def _check_cluster_file_pool_topology(notes: ClusterCheck, name: str, pool: NodePool) -> None:
    path = ("nodePools", name, "topology")
    if pool.topology and not notes.spec.topology:
        notes.report(
            TOPOLOGY_MISSING,
            path,
            f"pool '{name}' is placed by topology, but the cluster has no levels",
            "Add topology: with the levels, widest first.",
        )
    if pool.topology and not pool.labels:
        notes.report(
            POOL_LABELS_MISSING,
            path,
            f"pool '{name}' is placed by topology and has no labels: Kueue needs one to find its nodes",
            "Add labels that these nodes carry.",
        )


def _check_cluster_file_pool_overlaps(notes: ClusterCheck) -> None:
    """Check that a pod for one pool cannot land in another: its quota would be spent on the wrong nodes."""
    pools = notes.spec.node_pools
    for name, pool in pools.items():
        if pool.topology and not pool.labels:
            continue  # reported as pool-labels-missing; there are no labels to compare
        for other, there in pools.items():
            if (
                name == other
                or not _can_pods_land_in_other_pool(pool, there)
                or not _has_nodes_unlike_other_pool(pool, there)
            ):
                continue
            notes.report(
                POOL_OVERLAP,
                ("nodePools", name),
                f"pods for pool '{name}' can land on nodes of pool '{other}': those carry all of its labels"
                " and no taint that keeps them off",
                "Give each pool a label with a value of its own, such as node.example.com/pool.",
                key=True,
            )
            break


def _can_pods_land_in_other_pool(pool: NodePool, there: NodePool) -> bool:
    """Return whether pods with the selector and tolerations of one pool can run on the nodes of another."""
    if any(there.labels.get(key) != value for key, value in pool.labels.items()):
        return False
    tolerated = {(taint.key, taint.value or None, taint.effect) for taint in pool.taints}
    anything = {(key, effect) for key, value, effect in tolerated if value is None}
    return all(
        (taint.key, taint.value or None, taint.effect) in tolerated or (taint.key, taint.effect) in anything
        for taint in there.taints
        if taint.effect != "PreferNoSchedule"
    )


def _has_nodes_unlike_other_pool(pool: NodePool, there: NodePool) -> bool:
    """Return whether landing in the other pool matters: its devices are the same, but its nodes differ."""
    if pool.gpu and there.gpu:
        same = (pool.gpu.resource == there.gpu.resource, pool.gpu.model == there.gpu.model)
        return same[0] and (not same[1] or pool.capacity != there.capacity or pool.topology != there.topology)
    return pool.gpu is None and there.gpu is None and pool.capacity != there.capacity


def _check_cluster_file_topology_levels(notes: ClusterCheck) -> None:
    names: set[str] = set()
    labels: set[str] = set()
    levels = notes.spec.topology
    for index, level in enumerate(levels):
        for field, value, seen in (("name", level.name, names), ("label", level.label, labels)):
            if value in seen:
                notes.report(
                    TOPOLOGY_LEVEL_TWICE,
                    ("topology", index, field),
                    f"{field} '{value}' is that of another level",
                    "Each level has a name and a node label of its own.",
                )
            seen.add(value)
        if level.label == HOSTNAME and index != len(levels) - 1:
            notes.report(
                TOPOLOGY_HOST_NOT_LAST,
                ("topology", index, "label"),
                f"{HOSTNAME} is the narrowest level there is and must be the last",
                "Move it to the end.",
            )
        wider = levels[index - 1].nodes if index else None
        if wider and level.nodes and level.nodes > wider:
            notes.report(
                TOPOLOGY_LEVEL_SIZE,
                ("topology", index, "nodes"),
                f"a {level.name} has {level.nodes} nodes, more than a {levels[index - 1].name} ({wider})",
                "List levels from the widest to the narrowest.",
            )
