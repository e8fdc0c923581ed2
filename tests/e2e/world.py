"""A declared cluster as the simulated one: nodes, quota and claims from cluster.yaml and team.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gangplan.spec.cluster import Cluster
from gangplan.spec.nodes import NodePool
from gangplan.spec.team import Team

Object = dict[str, Any]
QUOTA_API = "kueue.x-k8s.io/v1beta2"


def nodes(cluster: Cluster) -> list[Object]:
    """Descriptions for the lab: one per node, with labels, taints, allocatable and topology."""
    return [
        _node(cluster, name, pool, number)
        for name, pool in cluster.node_pools.items()
        for number in range(pool.count)
    ]


def _node(cluster: Cluster, name: str, pool: NodePool, number: int) -> Object:
    allocatable = {"cpu": pool.cpu.canonical(), "memory": pool.memory.canonical(), "pods": "250"}
    if pool.gpu:
        allocatable[pool.gpu.resource] = str(pool.gpu.count)
    if pool.rdma:
        allocatable[pool.rdma.resource] = "64"
    labels = dict(pool.labels)
    for level in cluster.topology:
        if level.label != "kubernetes.io/hostname":
            labels[level.label] = f"{level.name}-{number // (level.nodes or 1)}"
    taints = [{"key": taint.key, "value": taint.value or "", "effect": taint.effect} for taint in pool.taints]
    return {"name": f"pool-{name}-{number}", "labels": labels, "taints": taints, "allocatable": allocatable}


def platform(cluster: Cluster) -> list[Object]:
    """Topology, flavors and one cluster queue per team, each as large as the cluster."""
    objects: list[Object] = []
    if cluster.topology:
        levels = [{"nodeLabel": level.label} for level in cluster.topology]
        objects.append(_object("Topology", "default", {"levels": levels}))
    objects += [_flavor(name, pool) for name, pool in cluster.node_pools.items()]
    objects += [_cluster_queue(queue.cluster_queue or team, cluster) for team, queue in cluster.teams.items()]
    return objects


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": QUOTA_API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _flavor(name: str, pool: NodePool) -> Object:
    spec: Object = {"nodeLabels": dict(pool.labels)}
    if pool.taints:
        spec["nodeTaints"] = [{"key": t.key, "value": t.value or "", "effect": t.effect} for t in pool.taints]
    if pool.topology:
        spec["topologyName"] = "default"
    return _object("ResourceFlavor", name, spec)


def _cluster_queue(name: str, cluster: Cluster) -> Object:
    pools = cluster.node_pools
    devices = sorted(
        {
            d
            for pool in pools.values()
            for d in ([pool.gpu.resource] if pool.gpu else []) + ([pool.rdma.resource] if pool.rdma else [])
        }
    )
    covered = ["cpu", "memory", *devices]
    flavors = [
        {
            "name": pool_name,
            "resources": [
                {"name": r, "nominalQuota": _capacity(pool, r), "borrowingLimit": "0"} for r in covered
            ],
        }
        for pool_name, pool in pools.items()
    ]
    return _object(
        "ClusterQueue",
        name,
        {  # One cohort: a run that ends in one queue wakes those that wait in the others.
            "cohortName": "all",
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
        },
    )


def _capacity(pool: NodePool, resource: str) -> str:
    if resource == "cpu":
        return (pool.cpu * pool.count).canonical()
    if resource == "memory":
        return (pool.memory * pool.count).canonical()
    if pool.gpu and resource == pool.gpu.resource:
        return str(pool.gpu.count * pool.count)
    if pool.rdma and resource == pool.rdma.resource:
        return str(64 * pool.count)
    return "0"


def claims(teams: Iterable[tuple[str, Team]]) -> list[Object]:
    """The claims that teams declare, each bound to a volume of its own."""
    objects: list[Object] = []
    for team, spec in teams:
        namespace = spec.namespace or team
        for name, claim in spec.claims.items():
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
