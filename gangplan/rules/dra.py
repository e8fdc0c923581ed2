"""Rules about GPUs and RDMA devices by dynamic resource allocation."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

DEVICE_CLASS_VERSION = Rule(
    "device-class-version",
    ERROR,
    "The cluster's Kubernetes does not allocate devices of a class, or its Kueue does not count them.",
    why=(
        "Pods ask for GPUs by the name of a resource. kube-scheduler allocates them from a DeviceClass with that "
        "extendedResourceName through its feature DRAExtendedResource, which is on by default from Kubernetes 1.36 "
        "(KEP-5004), off in 1.34 and 1.35, and missing from earlier versions. Without it, no node offers the "
        "resource, and pods of an admitted run would wait until its deadline. RDMA devices come by claims "
        "(ResourceClaimTemplate) of resource.k8s.io/v1, which Kubernetes has from 1.34. Kueue counts claims from "
        "0.18 on (KueueDRAIntegration, KEP-2941); before, they would be outside of every quota."
    ),
    fix=(
        "Remove deviceClass and use a device plugin, or update: GPUs need Kubernetes 1.36, RDMA devices Kubernetes "
        "1.34 and Kueue 0.18."
    ),
)

DEVICE_CLASS_TWICE = Rule(
    "device-class-twice",
    ERROR,
    "Device classes and resources of pools do not belong together one to one.",
    why=(
        "A resource belongs to one DeviceClass: of two with the same extendedResourceName, Kubernetes takes the one "
        "that was created later, for pods of all pools. Kueue counts the claims of a class under one resource "
        "(deviceClassMappings), and GPUs of such a class, too. If a plugin offered the same resource elsewhere, "
        "containers would request it, which no claim serves, and a namespace's quota would bound only one of the two."
    ),
    fix="Give each class a resource of its own, the same one in all pools.",
)

DEVICE_CLASS_UNUSABLE = Rule(
    "device-class-unusable",
    ERROR,
    "Devices of a class cannot be used as the cluster's file states them.",
    why=(
        "Kueue's topology-aware scheduling counts only what nodes offer through device plugins, not devices of a "
        "class: no run would ever be admitted (Kueue 0.19, KEP-2941). Volcano and the coscheduling plugin bring "
        "their own schedulers, which are not known to allocate such devices. Only kube-scheduler is. A claim gives "
        "devices to one pod alone, so none are shared. Prefixes and transformations of kueue.resources concern what "
        "containers request, not claims (Kueue 0.19, totalRequestsFromPodSets). Kueue does not start with "
        "more than 16 mapped classes, or with one whose name has more than 63 characters. MultiKueue creates a run on another "
        "cluster without its ResourceClaimTemplates. The cluster autoscaler never finds nodes for a "
        "ProvisioningRequest whose pods have claims by a template (kubernetes/autoscaler#10065)."
    ),
    fix=(
        "Remove what the message names (topology: true, shared: true, multiKueue, provisioningClass), or use a device "
        "plugin there."
    ),
)
