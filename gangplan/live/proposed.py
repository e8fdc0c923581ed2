"""Propose a cluster file from an existing cluster: versions, node pools, storage classes, queues.

Only the cluster's own hints are used; people write what cannot be seen (teams, prices, allowed egress).
Labels of pools are those that clouds and installers set on nodes (GKE, EKS, AKS and Karpenter, documentation
of 2026), of GPUs those of GPU feature discovery (NVIDIA GPU operator 25.10) and of AMD's node labeller
(k8s-device-plugin 1.31).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.live.access import Access
from gangplan.live.observe import observe_cluster
from gangplan.live.pools import is_node_ready, labels_of, summarise_live_nodes
from gangplan.live.snapshot import Snapshot
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.spec.machines import find_gpu_model
from gangplan.spec.phrases import convert_to_name
from gangplan.spec.words import DNS_LABEL

_POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
_PRODUCTS = {"nvidia.com/gpu.product": "nvidia.com/gpu", "amd.com/gpu.product-name": "amd.com/gpu"}
_TYPE = "node.kubernetes.io/instance-type"
_CONTROL = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_GPUS = re.compile(r"nvidia\.com/(?:gpu(?:\.shared)?|mig-(?P<mig>\d+g\.\d+gb))|amd\.com/gpu")
# Provisioners whose volumes several nodes may mount (their documentation, 2026); for others, this is unknown.
_SHARED = re.compile(
    r"nfs|cephfs|efs\.csi|file\.csi\.azure|filestore|fsx|lustre|weka|beegfs|gpfs|spectrumscale"
)
_CLOUDS = ("aws:", "gce:", "azure:", "oci:", "ibm:", "openstack:")
#: Components of a cluster's file that are detected.
VERSIONS = (
    "kubernetes",
    "trainer",
    "jobset",
    "kueue",
    "mpiOperator",
    "argocd",
    "gpuOperator",
    "externalSecrets",
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The fields of a cluster.yaml that could be seen, and a description of what could not.

    `queues` are the names of LocalQueues by namespace.
    """

    fields: Mapping[str, Any]
    queues: Mapping[str, str]
    unseen: tuple[str, ...]


def propose_cluster_file_fields(access: Access, name: str) -> Proposal:
    """Return the proposed fields of a cluster's file. Raises ToolError."""
    snapshot = observe_cluster(access, name, None, "")
    bodies = [] if not snapshot.saw("nodes") else access.items("/api/v1/nodes")
    workers = [body for body in bodies if not any(label in labels_of(body) for label in _CONTROL)]
    pools = _propose_pools_from_live_nodes(workers)
    fields: dict[str, Any] = {"versions": _list_observed_versions(snapshot)}
    regions = {labels_of(body).get("topology.kubernetes.io/region", "") for body in workers}
    if len(regions) == 1 and (region := convert_to_name(DNS_LABEL, regions.pop())):
        fields["region"] = region
    providers = [str((body.get("spec") or {}).get("providerID", "")) for body in workers]
    if providers and all(one.startswith(_CLOUDS) for one in providers):
        fields["location"] = "cloud"
    if pools:
        fields["nodePools"] = pools
    if classes := _propose_storage_classes(snapshot):
        fields["storageClasses"] = classes
    missing = [one for one in ("trainer", "kueue") if one not in fields["versions"]]
    unseen = [f"you may not {right}" for right in snapshot.unseen]
    unseen += [f"no {one.capitalize()} was found" for one in missing]
    if snapshot.saw("nodes") and not pools:
        unseen.append("no node takes pods")
    return Proposal(fields, _list_live_local_queues(snapshot), tuple(unseen))


def _list_observed_versions(snapshot: Snapshot) -> dict[str, str]:
    return {name: snapshot.versions[name] for name in VERSIONS if snapshot.versions.get(name)}


def _propose_pools_from_live_nodes(bodies: Sequence[Body]) -> dict[str, Any]:
    """Group nodes by the labels that select them, and by their GPUs; pools without GPUs come first."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Body]] = {}
    for body in bodies:
        if is_node_ready(body):
            groups.setdefault((_find_gpu_resource(body), _find_selector_label_of_live_node(body)), []).append(
                body
            )
    found: dict[str, Any] = {}
    for (resource, selector), members in sorted(groups.items()):
        pool = _build_proposed_node_pool(members, resource, dict(selector))
        if pool is not None:
            found[_choose_proposed_node_pool_name(found, dict(selector), pool)] = pool
    return found


def _find_selector_label_of_live_node(body: Body) -> tuple[tuple[str, str], ...]:
    """Return the label that distinguishes nodes of this kind."""
    labels = labels_of(body)
    for label in (*_POOLS, *_PRODUCTS, _TYPE):
        if labels.get(label):
            return ((label, labels[label]),)
    return (("kubernetes.io/os", labels.get("kubernetes.io/os", "linux")),)


def _find_gpu_resource(body: Body) -> str:
    """Return the resource of its GPUs; empty if it has none."""
    offered = (body.get("status") or {}).get("allocatable") or {}
    return next((name for name in sorted(offered) if _GPUS.fullmatch(name) and str(offered[name]) != "0"), "")


def _build_proposed_node_pool(
    bodies: Sequence[Body], resource: str, selector: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return one pool with the whole cores and GiB of its smallest node.

    None if a node is too small for any run.
    """
    whole = summarise_live_nodes("", bodies)
    least = {name: one["least"] for name, one in whole["allocatable"].items()}
    try:
        cpu, memory = (
            parse_quantity(least["cpu"]).nano // 10**9,
            parse_quantity(least["memory"]).nano // 10**9 >> 30,
        )
    except (KeyError, QuantityError):
        return None
    if cpu < 1 or memory < 1:
        return None
    pool: dict[str, Any] = {"count": len(bodies), "cpu": cpu, "memory": f"{memory}Gi"}
    if resource:
        pool["gpu"] = _build_proposed_node_pool_gpu(
            whole["labels"], resource, int(parse_quantity(least[resource]).nano // 10**9)
        )
    pool["labels"] = dict(selector)
    taints = [
        {"key": one["key"], **({"value": one["value"]} if one["value"] else {}), "effect": one["effect"]}
        for one in whole["taints"]
        if one["nodes"] == len(bodies)
    ]
    return pool | ({"taints": taints} if taints else {})


def _build_proposed_node_pool_gpu(labels: Mapping[str, str], resource: str, count: int) -> dict[str, Any]:
    product = next((labels[name] for name in _PRODUCTS if name in labels), "")
    model = find_gpu_model(re.sub(r"[^a-z0-9.]+", "-", product.lower()))
    gpu: dict[str, Any] = {"model": model or convert_to_name(DNS_LABEL, product) or "gpu"}
    found = _GPUS.fullmatch(resource)
    if found and found["mig"]:
        gpu["mig"] = found["mig"]
    gpu["count"] = count
    if resource != "nvidia.com/gpu":
        gpu["resource"] = resource
    if resource.endswith(".shared") or product.endswith("-SHARED"):
        gpu["shared"] = True
    return gpu


def _choose_proposed_node_pool_name(
    known: Mapping[str, Any], selector: Mapping[str, str], pool: Mapping[str, Any]
) -> str:
    """Return an unused name after the pool's label, its GPUs or its machines."""
    ((label, value),) = selector.items()
    model = str(pool.get("gpu", {}).get("model", ""))
    name = (convert_to_name(DNS_LABEL, value) if label in _POOLS else "") or model or "cpu"
    name = name[:40].strip("-")
    return next(one for one in (name, *(f"{name}-{n}" for n in range(2, len(known) + 3))) if one not in known)


def _propose_storage_classes(snapshot: Snapshot) -> dict[str, Any]:
    return {
        name: {
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"]
            if _SHARED.search(str(one.get("provisioner", "")))
            else ["ReadWriteOnce"],
            **({"default": True} if one.get("default") else {}),
        }
        for name, one in sorted(snapshot.storage_classes.items())
    }


def _list_live_local_queues(snapshot: Snapshot) -> dict[str, str]:
    found: dict[str, str] = {}
    for body in snapshot.items:
        if body["kind"] == "LocalQueue":
            found.setdefault(body["metadata"]["namespace"], body["metadata"]["name"])
    return found
