"""Traffic of a run that no NetworkPolicy sees: the node's own network, RDMA devices, secondary networks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gangplan.rules.network import HOST_NETWORK, NETWORK_OPEN, RDMA_BYPASSES_POLICY
from gangplan.spec.fabrics import NETWORKS_ANNOTATION
from gangplan.validate.network.pods import RolePods
from gangplan.validate.network.scene import Scene
from gangplan.validate.problems import PathStep, Problem

# GKE reads it: interfaces of a pod, by network (GKE, multi-network support for pods).
INTERFACES_ANNOTATION = "networking.gke.io/interfaces"
# Names that device plugins give to RDMA and SR-IOV devices: rdma/hca, rdma/ib, nvidia.com/roce,
# openshift.io/sriov-ib, vpc.amazonaws.com/efa.
DEVICE = re.compile(r"(^rdma/|rdma|roce|infiniband|sriov|/efa$|/hca)", re.IGNORECASE)


def check_traffic_beyond_network_policies(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Yield a problem per role on the node's network, and one for RDMA devices and extra networks."""
    for role in scene.roles:
        if role.name in scene.hosted:
            yield scene.runtime, _report_declared_host_network(scene, role)
        elif role.template["spec"].get("hostNetwork"):
            yield (
                scene.runtime,
                Problem(
                    (*role.path, "spec", "hostNetwork"),
                    f"{role.title} use the network of their node: no NetworkPolicy applies to them",
                    "Remove hostNetwork.",
                    NETWORK_OPEN,
                    field="posture",
                ),
            )
    found = [
        (role, path, what) for role in scene.roles for path, what in find_extra_pod_networks(scene, role)
    ]
    if found:
        what = ", ".join(dict.fromkeys(words for _, _, words in found))
        titles = " and ".join(dict.fromkeys(role.title for role, _, _ in found))
        yield (
            scene.runtime,
            Problem(
                found[0][1],
                f"{titles} use {what}: NetworkPolicy does not see that traffic, so nothing here"
                " isolates them from other runs on the same fabric",
                'Keep teams apart on the fabric itself (partition keys, VLANs), or write rdma: "off".',
                RDMA_BYPASSES_POLICY,
                field="rdma",
            ),
        )


def check_policies_select_own_pods(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Yield a problem per NetworkPolicy of the run that a patch makes select pods of other runs, too.

    The proof looks at one run and at what its team has: what another run opens it does not see.
    """
    run = scene.run
    for index, (body, planned) in enumerate(zip(run.bodies, run.generated, strict=bool(run.generated))):
        if body["kind"] != "NetworkPolicy" or body is planned:
            continue
        selected = (body["spec"].get("podSelector") or {}).get("matchLabels") or {}
        own = (planned["spec"].get("podSelector") or {}).get("matchLabels") or {}
        lost = [f"{key}: {value}" for key, value in own.items() if key not in selected]
        if not lost:
            continue  # with another value, it selects none of the run's pods, and they are unreachable
        message = (
            f"the policy no longer asks for {', '.join(lost)}: it selects pods of other runs, too, and opens"
            " for them what it opens for this run"
        )
        help = "Keep the labels of podSelector; rules for other pods need a NetworkPolicy of their own."
        yield index, Problem(("spec", "podSelector"), message, help, NETWORK_OPEN, field="posture")


def _report_declared_host_network(scene: Scene, role: RolePods) -> Problem:
    """Report pods that the platform put into the network of their nodes."""
    job = scene.run.unit.job
    port = f" takes SSH on port {job.image.ssh.port} and" if job.uses_mpi else ""
    return Problem(
        (*role.path, "spec", "hostNetwork"),
        f"{role.title} use the network of their node, as fabric '{job.fabric.access.name}' says: no"
        f" NetworkPolicy applies to them, and each node{port} is open to anyone who reaches it",
        "Close the nodes to everything but each other in the network around them.",
        HOST_NETWORK,
        field="rdma",
    )


def find_extra_pod_networks(scene: Scene, role: RolePods) -> Iterator[tuple[tuple[PathStep, ...], str]]:
    """Yield the secondary networks and RDMA devices of a role, each with its path and in words.

    Devices are recognised by the names that the run's pool declares, those from a patch by typical names.
    """
    annotations = (role.template.get("metadata") or {}).get("annotations") or {}
    for network in _parse_multus_networks(annotations.get(NETWORKS_ANNOTATION) or ""):
        yield (*role.path, "metadata", "annotations", NETWORKS_ANNOTATION), f"network {network}"
    for network in _parse_extra_gke_pod_networks(annotations.get(INTERFACES_ANNOTATION) or ""):
        yield (*role.path, "metadata", "annotations", INTERFACES_ANNOTATION), f"network {network}"
    declared = scene.run.unit.job.fabric.resources
    for at, container in enumerate(role.template["spec"]["containers"]):
        resources = container.get("resources") or {}
        for name in sorted({**(resources.get("limits") or {}), **(resources.get("requests") or {})}):
            if name in declared or DEVICE.search(name):
                kind = "limits" if name in (resources.get("limits") or {}) else "requests"
                yield (*role.path, "spec", "containers", at, "resources", kind, name), f"device {name}"


def _parse_extra_gke_pod_networks(annotation: str) -> list[str]:
    """Return the networks in addition to the pod's own, or the annotation itself if it is not valid."""
    try:
        listed = json.loads(annotation or "[]")
        names = [str(one["network"]) for one in listed]
    except (ValueError, TypeError, KeyError, RecursionError):
        return [annotation]
    return [name for name in dict.fromkeys(names) if name != "default"]


def _parse_multus_networks(annotation: str) -> list[str]:
    """Return the networks of the annotation, each once; an annotation in JSON is returned as it is."""
    if annotation.lstrip().startswith("["):
        return [annotation]
    return list(dict.fromkeys(one.strip() for one in annotation.split(",") if one.strip()))
