"""Checks of RDMA devices that workers get by claims: can the cluster allocate and count them?

Each worker has a ResourceClaim of a template that is rendered with its run (resource.k8s.io/v1, stable and on
from Kubernetes 1.34). Kueue counts the devices under the resource to which deviceClassMappings map their class
(Kueue v0.18.2, pkg/features/kube_features.go: KueueDRAIntegration, beta and on from 0.18), whatever
excludeResourcePrefixes and transformations say (pkg/workload/workload.go, totalRequestsFromPodSets).
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.findings import FieldPath
from gangplan.model.manager import ManagerSettings
from gangplan.model.support import look_up_kueue_line
from gangplan.model.version import ToolVersion, parse_version
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.dra import DEVICE_CLASS_TWICE, DEVICE_CLASS_UNUSABLE, DEVICE_CLASS_VERSION
from gangplan.spec.cluster import Cluster
from gangplan.spec.manager import manager_settings_of
from gangplan.spec.nodes import NodePool, PoolRdma

# The first version that allocates the devices of such claims.
LEAST = ToolVersion(1, 34, 0)
# What Kueue's configuration takes: a class is the name part of a label's key (Kueue v0.18.2 and v0.19.2,
# pkg/config/validation.go, validateDeviceClassMappings).
_MOST_MAPPINGS, _LONGEST_CLASS = 16, 63
_PLUGIN, _REQUESTED = "a device plugin", "devices that containers request"


def check_cluster_file_claimed_devices(notes: ClusterCheck) -> None:
    """Check every rail with a device class."""
    manager = manager_settings_of(notes.spec)
    by_class: dict[str, tuple[str, str]] = {}
    by_resource = _list_resources_of_requests(notes.spec)
    gpus = {
        pool.gpu.device_class: name
        for name, pool in notes.spec.node_pools.items()
        if pool.gpu and pool.gpu.device_class
    }
    for name, pool in notes.spec.node_pools.items():
        for number, rail in enumerate(pool.rails):
            base: FieldPath = ("nodePools", name, "rdma")
            path = (*base, number) if isinstance(pool.rdma, tuple) else base
            _check_one_class_per_resource(notes, name, rail, path, by_resource)
            if rail.device_class is None:
                continue
            stated, other = by_class.setdefault(rail.device_class, (rail.resource, name))
            if stated != rail.resource:
                notes.report(
                    DEVICE_CLASS_TWICE,
                    (*path, "deviceClass"),
                    f"class {rail.device_class} is counted as {rail.resource} in pool '{name}', and as {stated} in pool"
                    f" '{other}'",
                    "Write the same resource: Kueue maps a class to one.",
                )
            if rail.device_class in gpus:
                notes.report(
                    DEVICE_CLASS_TWICE,
                    (*path, "deviceClass"),
                    f"class {rail.device_class} is that of the GPUs in pool '{gpus[rail.device_class]}', which Kueue would count"
                    f" as {rail.resource}",
                    "Write a class that has RDMA devices alone.",
                )
            _check_versions(notes, rail, (*path, "deviceClass"))
            _check_kueue_can_map_class(notes, rail, (*path, "deviceClass"), list(by_class))
            _check_claimed_rail_can_be_placed(notes, name, pool, rail, path)
            _check_claimed_resource_is_counted_as_written(notes, rail, (*path, "resource"), manager)


def _list_resources_of_requests(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Return the GPUs and other devices that containers request, by resource: what they are, and a pool."""
    found: dict[str, tuple[str, str]] = {}
    for name, pool in cluster.node_pools.items():
        for resource in (*([pool.gpu.resource] if pool.gpu else []), *pool.devices):
            found.setdefault(resource, (_REQUESTED, name))
    return found


def _check_one_class_per_resource(
    notes: ClusterCheck, name: str, rail: PoolRdma, path: FieldPath, seen: dict[str, tuple[str, str]]
) -> None:
    what = f"class {rail.device_class}" if rail.device_class else _PLUGIN
    stated, other = seen.setdefault(rail.resource, (what, name))
    if stated != what and (rail.device_class or stated != _REQUESTED):
        notes.report(
            DEVICE_CLASS_TWICE,
            (*path, "deviceClass") if rail.device_class else (*path, "resource"),
            f"{rail.resource} is of {what} in pool '{name}', and of {stated} in pool '{other}'",
            "Write the same class, or give it a resource of its own: quotas count the two in different ways.",
        )


def _check_versions(notes: ClusterCheck, rail: PoolRdma, path: FieldPath) -> None:
    """Check that the cluster's Kubernetes and Kueue know claims."""
    versions = notes.spec.versions
    kubernetes = parse_version(versions.kubernetes)
    if not kubernetes.at_least(LEAST.major, LEAST.minor):
        notes.report(
            DEVICE_CLASS_VERSION,
            path,
            f"Kubernetes {kubernetes.line} does not have resource.k8s.io/v1: nothing would allocate devices of class"
            f" {rail.device_class}",
            "Remove deviceClass and use a device plugin, or update the cluster to Kubernetes 1.34.",
        )
    if notes.spec.gang == "kueue" and versions.kueue is not None:
        kueue = parse_version(versions.kueue)
        if not look_up_kueue_line(kueue.line).counts_claims:
            notes.report(
                DEVICE_CLASS_VERSION,
                path,
                f"Kueue {kueue.line} does not count devices of class {rail.device_class}: they would have no quota",
                "Remove deviceClass and use a device plugin, or update Kueue to 0.18.",
            )


def _check_kueue_can_map_class(
    notes: ClusterCheck, rail: PoolRdma, path: FieldPath, classes: Sequence[str]
) -> None:
    """Check that Kueue starts with the class in its configuration; `classes` are those up to this one."""
    if notes.spec.gang != "kueue":
        return
    name = str(rail.device_class)
    if len(name) > _LONGEST_CLASS:
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            path,
            f"Kueue maps classes whose names have at most {_LONGEST_CLASS} characters, and this one has {len(name)}",
            "Give the class a shorter name.",
        )
    if classes.index(name) >= _MOST_MAPPINGS:
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            path,
            f"Kueue maps at most {_MOST_MAPPINGS} resources, and class {name} is one more",
            "Let pools share classes.",
        )


def _check_claimed_rail_can_be_placed(
    notes: ClusterCheck, name: str, pool: NodePool, rail: PoolRdma, path: FieldPath
) -> None:
    """Check that the component that chooses the nodes of pods knows claims, and that each has its own devices."""
    gang, at = notes.spec.gang, (*path, "deviceClass")
    plugin = "or use a device plugin."
    if pool.topology:
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            at,
            f"Kueue places pods in pool '{name}' by topology, and does not see devices of a class there",
            f"Remove topology: true, {plugin}",
        )
    elif gang in ("volcano", "coscheduling"):
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            at,
            f"gang: {gang} brings its own scheduler, and it is not known whether that allocates devices of a class",
            f"Use gang: kueue, {plugin}",
        )
    if pool.is_asked_for:
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            at,
            f"Kueue asks the autoscaler for nodes of pool '{name}' before it admits a run, and the autoscaler finds none for"
            " pods with claims",
            f"Remove autoscale.provisioningClass, {plugin}",
        )
    if notes.spec.multi_kueue is not None:
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            at,
            "multiKueue hands runs to other clusters without the ResourceClaimTemplates of their workers",
            f"Remove multiKueue, {plugin}",
        )
    if rail.shared:
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            at,
            f"a claim allocates devices to one worker alone, and those of {rail.resource} are shared",
            "Remove shared: true, and write the number of devices on a node as count.",
        )


def _check_claimed_resource_is_counted_as_written(
    notes: ClusterCheck, rail: PoolRdma, path: FieldPath, manager: ManagerSettings
) -> None:
    """Check that kueue.resources leaves the resource alone: Kueue applies it to what containers request."""
    is_transformed = any(one.resource == rail.resource for one in manager.transformations)
    if manager.is_excluded(rail.resource) or is_transformed:
        verb = "transforms" if is_transformed else "excludes"
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            path,
            f"kueue.resources {verb} {rail.resource}, which does not hold for devices of a class: they are counted as"
            " they are",
            "Give them a resource of another name.",
        )
