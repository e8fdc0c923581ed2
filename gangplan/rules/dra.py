"""Rules about GPUs by dynamic resource allocation."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

DEVICE_CLASS_VERSION = Rule(
    "device-class-version",
    ERROR,
    "The cluster's Kubernetes allocates no devices of a class for an extended resource.",
    why=(
        "Pods ask for GPUs by the name of a resource. kube-scheduler allocates them from a DeviceClass with that "
        "extendedResourceName through its feature DRAExtendedResource, which is on by default from Kubernetes 1.36 "
        "(KEP-5004), off in 1.34 and 1.35, and missing from earlier versions. Without it, no node offers the "
        "resource, and pods of an admitted run would wait until its deadline. gangplan does not render a run's "
        "own claims (ResourceClaimTemplate)."
    ),
    fix="Remove deviceClass and use a device plugin, or update the cluster to Kubernetes 1.36.",
)

DEVICE_CLASS_TWICE = Rule(
    "device-class-twice",
    ERROR,
    "Two pools state different device classes for one resource.",
    why=(
        "A resource belongs to one DeviceClass: of two with the same extendedResourceName, Kubernetes takes the one "
        "that was created later, for pods of all pools."
    ),
    fix="Give each class a resource of its own.",
)

DEVICE_CLASS_UNUSABLE = Rule(
    "device-class-unusable",
    ERROR,
    "The scheduling of a run's pods ignores devices of a class.",
    why=(
        "Kueue's topology-aware scheduling counts only what nodes offer through device plugins, not devices of a "
        "class: no run would ever be admitted (Kueue 0.19, KEP-2941). Volcano and the coscheduling plugin bring "
        "their own schedulers, which are not known to allocate such devices. Only kube-scheduler is."
    ),
    fix="Remove topology: true of the pool, or use a device plugin there.",
)
