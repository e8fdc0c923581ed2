"""Checks of pools whose GPUs come by dynamic resource allocation: can the cluster allocate them?

Pods ask for an extended resource as usual, and a DeviceClass with that extendedResourceName serves it
(KEP-5004): kube-scheduler creates a claim for the pod and allocates devices to it (Kubernetes v1.36,
pkg/features/kube_features.go: DRAExtendedResource, beta and on; alpha and off in 1.34 and 1.35). Kueue counts
the request under the resource's own name, unless deviceClassMappings give its class another one (Kueue
v0.19.2, pkg/dra/extended_resources.go, resolveQuotaKey), and a ResourceQuota counts `requests.RESOURCE` once
for the pod and its claim together (Kubernetes v1.36, pkg/quota/v1/evaluator/core/resource_claims.go).
"""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.version import ToolVersion, parse_version
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.dra import DEVICE_CLASS_TWICE, DEVICE_CLASS_UNUSABLE, DEVICE_CLASS_VERSION

# The first version with DRAExtendedResource on by default.
LEAST = ToolVersion(1, 36, 0)


def check_cluster_file_device_classes(notes: ClusterCheck) -> None:
    """Check every pool with a device class."""
    kubernetes = parse_version(notes.spec.versions.kubernetes)
    classes: dict[str, tuple[str, str]] = {}
    for name, pool in notes.spec.node_pools.items():
        gpu = pool.gpu
        if gpu is None or gpu.device_class is None:
            continue
        path: FieldPath = ("nodePools", name, "gpu", "deviceClass")
        if not kubernetes.at_least(LEAST.major, LEAST.minor):
            state = "switches off" if kubernetes.at_least(1, 34) else "does not have"
            notes.report(
                DEVICE_CLASS_VERSION,
                path,
                f"Kubernetes {kubernetes.line} {state} DRAExtendedResource: nothing would allocate {gpu.resource} of"
                f" class {gpu.device_class} to pods",
                "Remove deviceClass and use a device plugin, or update the cluster to Kubernetes 1.36.",
            )
        stated, other = classes.setdefault(gpu.resource, (gpu.device_class, name))
        if stated != gpu.device_class:
            notes.report(
                DEVICE_CLASS_TWICE,
                path,
                f"{gpu.resource} is of class {gpu.device_class} in pool '{name}', and of class {stated} in pool '{other}'",
                "Write the same class, or give it a resource of its own.",
            )
        _check_cluster_file_device_placement(notes, name, path)


def _check_cluster_file_device_placement(notes: ClusterCheck, name: str, path: FieldPath) -> None:
    """Check that the component that chooses the nodes of pods knows devices of a class."""
    pool, gang = notes.spec.node_pools[name], notes.spec.gang
    if pool.topology:
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            path,
            f"Kueue places pods in pool '{name}' by topology, and does not see devices of a class there",
            "Remove topology: true, or use a device plugin.",
        )
    elif gang in ("volcano", "coscheduling"):
        notes.report(
            DEVICE_CLASS_UNUSABLE,
            path,
            f"gang: {gang} brings its own scheduler, and it is not known whether that allocates devices of a class",
            "Use gang: kueue, or a device plugin.",
        )
