"""A declared cluster as a simulated one: nodes and claims from cluster.yaml and team.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gangplan.spec.cluster import Cluster
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.nodes import NodePool
from gangplan.spec.team import Team

Object = dict[str, Any]


def nodes(cluster: Cluster) -> list[Object]:
    """Return descriptions for the lab: one per node, with labels, taints, allocatable and topology."""
    return [
        _node(cluster, name, pool, number)
        for name, pool in cluster.node_pools.items()
        for number in range(pool.count)
    ]


def _node(cluster: Cluster, name: str, pool: NodePool, number: int) -> Object:
    allocatable = {"cpu": pool.cpu.canonical(), "memory": pool.memory.canonical(), "pods": "250"}
    allocatable |= {resource: amount.canonical() for resource, amount in pool.offered.items()}
    labels = dict(pool.labels)
    for level in cluster.topology:
        if level.label != "kubernetes.io/hostname":
            labels[level.label] = f"{level.name}-{number // (level.nodes or 1)}"
    taints = [{"key": taint.key, "value": taint.value or "", "effect": taint.effect} for taint in pool.taints]
    return {"name": f"pool-{name}-{number}", "labels": labels, "taints": taints, "allocatable": allocatable}


def monitoring(cluster: Cluster) -> list[Object]:
    """Return the namespace of the cluster's Prometheus, which the installation of Prometheus creates."""
    if cluster.monitoring is None:
        return []
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.monitoring.namespace}}]


def claims(cluster: Cluster, teams: Iterable[tuple[str, Team]]) -> list[Object]:
    """Return the claims that teams declare, each bound to a volume of its own."""
    objects: list[Object] = []
    for team, spec in teams:
        namespace = namespace_of(cluster, team, spec)
        for name, claim in spec.claims.items():
            if claim.size is not None:
                continue  # rendered with the team
            objects += _bound(namespace, claim.claim_name or name, list(claim.access_modes))
    return objects


def _bound(namespace: str, claim: str, modes: list[str]) -> list[Object]:
    volume = f"{namespace}-{claim}"
    size = {"storage": "100Gi"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": size,
                "accessModes": modes,
                "hostPath": {"path": "/srv"},
                "claimRef": {"namespace": namespace, "name": claim},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": namespace},
            "spec": {
                "accessModes": modes,
                "resources": {"requests": size},
                "storageClassName": "",
                "volumeName": volume,
            },
        },
    ]
