"""A declared cluster as a simulated one: nodes and claims from cluster.yaml and team.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gangplan.emit import is_run_file
from gangplan.emit.header import read_header_source
from gangplan.spec.cluster import Cluster
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.nodes import NodePool
from gangplan.spec.team import Team

Object = dict[str, Any]


def before_runs(texts: Mapping[str, str]) -> list[str]:
    """Return the paths of what is there before runs, in the order in which to apply it: the platform, the
    tenants, and the launch scripts that runs mount."""
    order = ["platform", "tenants", "runs"]
    return sorted(
        (path for path in texts if not is_run_file(path)),
        key=lambda path: (order.index(path.split("/")[1]), path),
    )


def run_files(tree: Path) -> list[Path]:
    """Return the files of runs in the rendered folder of a cluster, without those of launch scripts."""
    files = sorted((tree / "runs").rglob("*.yaml"))
    return [path for path in files if is_run_file(f"{tree.name}/{path.relative_to(tree).as_posix()}")]


def source_of(file: Path) -> str:
    """Return the spec that a rendered file comes from."""
    source = read_header_source(file)
    assert source is not None, file
    return source


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
