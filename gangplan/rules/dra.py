"""Rules about GPUs by dynamic resource allocation."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

DEVICE_CLASS_VERSION = Rule(
    "device-class-version",
    ERROR,
    "The cluster's Kubernetes allocates no devices of a class for an extended resource.",
    why=(
        "Pods ask for GPUs by the name of a resource. That kube-scheduler allocates these from a DeviceClass with "
        "that extendedResourceName is its feature DRAExtendedResource, which is on by default from Kubernetes 1.36 "
        "(KEP-5004); 1.34 and 1.35 have it switched off, and earlier ones do not have it. There no node offers the "
        "resource, and pods of an admitted run would wait until its deadline. Claims of a run's own "
        "(ResourceClaimTemplate) are not rendered."
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
    "What places the pods of a run does not see devices of a class.",
    why=(
        "Kueue's topology-aware scheduling counts what nodes offer by device plugins, and devices of a class are not "
        "among it: no run would ever be admitted (Kueue 0.19, KEP-2941). Volcano and the coscheduling plugin are "
        "schedulers of their own; whether theirs allocates such devices is not known here. Only kube-scheduler does."
    ),
    fix="Remove topology: true of the pool, or use a device plugin there.",
)
