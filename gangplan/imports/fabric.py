"""Find the access to nodes that a source's pods have, and a fabric of a cluster that gives the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourceContainer, SourceMount
from gangplan.records import dataclass
from gangplan.resolve.fabric_presets import FABRIC_PRESETS
from gangplan.spec.cluster import Cluster
from gangplan.spec.fabrics import NETWORKS_ANNOTATION, Fabric
from gangplan.spec.nodes import NodePool

NODE_ACCESS_QUESTION = "access to the node is the platform's to give: fabrics and podSecurity of the cluster"
_EFA = "vpc.amazonaws.com/efa"
_INTERFACES = "networking.gke.io/interfaces"
GKE_FABRIC_PREFIXES = ("networking.gke.io/", "devices.gke.io/")
# Daemons of GPUDirect by a part of their container's name (container-engine-accelerators, gpudirect-tcpx and -tcpxo).
_DAEMONS = {"tcpxo": "gke-tcpxo", "fastrak": "gke-tcpxo", "tcpx": "gke-tcpx"}
_INFINIBAND = "/dev/infiniband"
# Folders with drivers of the fabric rather than data.
_DRIVERS = (
    _INFINIBAND,
    "/home/kubernetes/bin",
    "/dev/aperture_devices",
    "/sys",
    "/proc/sys",
    "/run/tcpx",
    "/var/run/tcpx",
)
_CAPABILITY = re.compile(r"(?:CAP_)?([A-Z][A-Z_]*[A-Z])")


@dataclass(slots=True)
class NodeAccess:
    """Access to nodes that the containers that train have, each with its places in the source."""

    network: list[SourceNode] = field(default_factory=list)
    other: list[SourceNode] = field(default_factory=list)  # hostIPC, hostPID
    privileged: list[SourceNode] = field(default_factory=list)
    capabilities: list[SourceNode] = field(default_factory=list)
    annotations: list[tuple[str, SourceNode]] = field(default_factory=list)
    paths: list[SourceMount] = field(default_factory=list)
    daemons: list[SourceContainer] = field(default_factory=list)

    @classmethod
    def of(cls, draft: SpecDraft) -> NodeAccess:
        """Collect the access that the roles of a draft have."""
        found = cls(paths=list(draft.host_paths))
        for role in draft.work.roles:
            pod = role.pod
            for part in (pod.node, *pod.more):
                found.network += [part["hostNetwork"]] if part["hostNetwork"].value is True else []
                found.other += [part[name] for name in ("hostIPC", "hostPID") if part[name].value is True]
            context = pod.main.node["securityContext"]
            found.privileged += [context["privileged"]] if context["privileged"].value is True else []
            found.capabilities += list(context["capabilities"]["add"].items())
            annotations = pod.metadata["annotations"].fields() if pod.metadata else iter(())
            found.annotations += [
                one
                for one in annotations
                if one[0] == NETWORKS_ANNOTATION or one[0].startswith(GKE_FABRIC_PREFIXES)
            ]
            for container in (*pod.setup, *pod.sidecars):
                if any(part in container.name for part in _DAEMONS):
                    found.daemons.append(container)
        return found

    @property
    def is_of_fabric(self) -> bool:
        """Whether anything indicates a fabric: drivers of the node, networks of the pod, or a daemon."""
        return bool(self.drivers or self.annotations or self.daemons)

    @property
    def drivers(self) -> list[SourceMount]:
        """Mounts of folders of the node that contain a driver."""
        return [one for one in self.paths if one.volume and one.volume.reference.startswith(_DRIVERS)]

    @property
    def place(self) -> SourceNode | None:
        """The first place of any access."""
        return next(iter(self.nodes()), None)

    def nodes(self) -> Iterator[SourceNode]:
        """Yield every place."""
        yield from (*self.network, *self.other, *self.privileged, *self.capabilities)
        yield from (node for _, node in self.annotations)
        for mount in self.paths:
            yield mount.node
            if mount.volume is not None:
                yield mount.volume.node
        for one in self.daemons:
            yield from _list_source_nodes_of_fabric_daemon(one)

    def given_by(self, fabric: Fabric) -> Iterator[SourceNode]:
        """Yield the places of what a fabric gives."""
        yield from self.network if fabric.host_network else ()
        yield from self.privileged if fabric.privileged else ()
        yield from (
            one
            for one in self.capabilities
            if read_imported_capability(one) in fabric.capabilities or fabric.privileged
        )
        yield from (node for key, node in self.annotations if key in fabric.annotations)
        mounts = {
            one.mount.rstrip("/"): one.path.rstrip("/") for one in fabric.host_paths.values() if one.mount
        }
        for mount in self.paths:
            if mount.volume and mounts.get(mount.path.rstrip("/")) == mount.volume.reference.rstrip("/"):
                yield mount.node
                yield mount.volume.node
        for one in self.daemons:
            yield from _list_source_nodes_of_fabric_daemon(one) if one.name in fabric.sidecars else ()


def _list_source_nodes_of_fabric_daemon(container: SourceContainer) -> Iterator[SourceNode]:
    """Yield a daemon of the fabric, and the folders of the node that it mounts."""
    yield container.node
    for mount in container.mounts:
        if mount.volume is not None and mount.volume.kind == "hostPath":
            yield mount.volume.node


def read_imported_capability(node: SourceNode) -> str:
    """Return the name of a capability without the prefix of the kernel's headers."""
    found = _CAPABILITY.fullmatch(node.text())
    return found[1] if found else ""


def find_fabric_for_imported_job(
    draft: SpecDraft, wanted: NodeAccess, cluster: Cluster, pool: NodePool
) -> tuple[str, dict[str, Any]] | None:
    """Return the name and values of a fabric that gives what the source has.

    Return None if nothing indicates a fabric, the namespace may not have it, or several workers would share a
    node's network.
    """
    preset = _find_fabric_preset_of_source_cloud(draft, wanted)
    if not preset and not (draft.rdma or wanted.is_of_fabric):
        return None
    grant = cluster.teams[draft.home.team].pod_security
    may = grant is not None and grant.level == "privileged"
    if preset == "aws-efa" and not may:
        return "efa", {"preset": preset}
    if not may or not (preset or any(wanted.nodes())):
        return None
    below = Fabric.model_validate(FABRIC_PRESETS[preset].values) if preset else Fabric.model_validate({})
    if (below.host_network or below.whole_node or wanted.network) and not _needs_whole_node(draft, pool):
        return None
    value = _map_source_node_access_beyond_preset(wanted, below, cluster)
    images = {
        one.name: {"image": one.image} for one in wanted.daemons if one.name in below.sidecars and one.image
    }
    if value is None or any(one.image is None and name not in images for name, one in below.sidecars.items()):
        return None
    if images:
        value["sidecars"] = images
    annotations = {key: node.text() for key, node in wanted.annotations if key != NETWORKS_ANNOTATION}
    if annotations and not preset:
        value["annotations"] = annotations
    label = preset.removeprefix("aws-").removeprefix("gke-").removeprefix("oci-") or "fabric"
    return label, {**({"preset": preset} if preset else {}), **value}


def _map_source_node_access_beyond_preset(
    wanted: NodeAccess, below: Fabric, cluster: Cluster
) -> dict[str, Any] | None:
    """Return network, rights and folders of the node that a preset does not give.

    Return None if the nodes' addresses are needed and not known.
    """
    value: dict[str, Any] = {}
    if wanted.network or below.host_network:
        addresses = [one.node_addresses for one in cluster.fabrics.values() if one.node_addresses]
        if not addresses:  # the range of node addresses is unknown, and launchers have to reach them
            return None
        value |= {"hostNetwork": True, "nodeAddresses": list(addresses[0])}
    if wanted.privileged and not below.privileged:
        value["privileged"] = True
    added = [
        name
        for one in wanted.capabilities
        if (name := read_imported_capability(one)) and name not in below.capabilities
    ]
    if added and not below.privileged and not wanted.privileged and "ALL" not in added:
        value["capabilities"] = list(dict.fromkeys([*below.capabilities, *added]))
    known = [each.mount for each in below.host_paths.values()]
    extra = {
        _build_host_path_label(one): _build_fabric_host_path(one)
        for one in wanted.drivers
        if one.path not in known
    }
    if extra:
        value["hostPaths"] = extra
    return value


def _build_fabric_host_path(mount: SourceMount) -> dict[str, Any]:
    path = mount.volume.reference if mount.volume else ""
    return {"path": path, "mount": mount.path, **({} if mount.read_only else {"readOnly": False})}


def _find_fabric_preset_of_source_cloud(draft: SpecDraft, wanted: NodeAccess) -> str:
    """Return the preset of the cloud for which the source was written; empty for none."""
    if _EFA in draft.rdma:
        return "aws-efa"
    for one in wanted.daemons:
        return next(preset for part, preset in _DAEMONS.items() if part in one.name)
    if any(key == _INTERFACES and "rdma-" in node.text() for key, node in wanted.annotations):
        return "gke-rdma"
    paths = [one.volume.reference.rstrip("/") for one in wanted.paths if one.volume]
    if wanted.network and wanted.privileged and _INFINIBAND in paths and not draft.rdma:
        return "oci-roce"
    return next((name for name in ("oci-roce-vf",) if FABRIC_PRESETS[name].devices in draft.rdma), "")


def _needs_whole_node(draft: SpecDraft, pool: NodePool) -> bool:
    gpus = draft.values.get("gpus", 0)
    return bool(pool.gpu and gpus == pool.gpu.count)


def _build_host_path_label(mount: SourceMount) -> str:
    reference = mount.volume.reference if mount.volume else mount.path
    return re.sub(r"[^a-z0-9]+", "-", reference.lower()).strip("-")[:56].strip("-") or "folder"


def list_imported_multus_networks(draft: SpecDraft) -> tuple[list[str], list[SourceNode]]:
    """Return the networks that pods attach to by Multus, each once, and their places.

    They are names with commas, or a list of objects (k8snetworkplumbingwg multus-cni, docs/how-to-use.md).
    """
    found: list[str] = []
    places: list[SourceNode] = []
    for role in draft.work.roles:
        node = role.pod.metadata["annotations"][NETWORKS_ANNOTATION] if role.pod.metadata else None
        names = _parse_multus_networks(node.text()) if node is not None and node else []
        if node is not None and names:
            places.append(node)
            found += names
    return list(dict.fromkeys(found))[:64], places


def _parse_multus_networks(text: str) -> list[str]:
    if not text.lstrip().startswith("["):
        return [name for part in text.split(",") if (name := part.strip().partition("@")[0])]
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return []
    names = [one for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)]
    return [f"{one['namespace']}/{one['name']}" if one.get("namespace") else one["name"] for one in names]
