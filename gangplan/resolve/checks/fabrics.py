"""Checks of fabrics in a cluster file: pools name existing fabrics, and containers existing folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangplan.findings import FieldPath
from gangplan.model.fabric import FILE_TYPES
from gangplan.model.pods import CHECKPOINT_ENV
from gangplan.records import dataclass
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.fabric_presets import FABRIC_PRESETS, complete_fabric
from gangplan.resolve.nested import find_outer_mount
from gangplan.resolve.secrets import RESERVED_ENV
from gangplan.rules.fabrics import (
    FABRIC_CONTAINER,
    FABRIC_MISFIT,
    FABRIC_ROOT,
    FABRIC_UNKNOWN,
    FABRIC_UNUSED,
)
from gangplan.rules.specs import ENV_RESERVED, MOUNT_INSIDE, MOUNT_POINT
from gangplan.spec.fabrics import Fabric, FabricContainer
from gangplan.spec.nodes import NodePool

# The container that the program runs in.
PROGRAM = "node"


def check_cluster_file_fabrics(notes: ClusterCheck) -> None:
    """Check fabrics, and the pools that name them."""
    fabrics = {name: complete_fabric(stated) for name, stated in notes.spec.fabrics.items()}
    named = {pool.fabric for pool in notes.spec.node_pools.values()}
    for name, fabric in fabrics.items():
        if name not in named:
            message = f"no node pool names fabric '{name}'"
            notes.report(
                FABRIC_UNUSED,
                ("fabrics", name),
                message,
                f"Name it at the pools that have it (fabric: {name}), or remove it.",
                key=True,
            )
        if fabric.host_network and not fabric.node_addresses:
            notes.report(
                FABRIC_MISFIT,
                ("fabrics", name),
                f"fabric '{name}' puts workers into their node's network, and states no nodeAddresses: launchers,"
                " which stay in the pod network, could not talk to them",
                "Write nodeAddresses: the range of the nodes' addresses.",
                key=True,
            )
        _check_cluster_file_fabric_names(notes, name, fabric)
        _check_cluster_file_fabric_containers(notes, name, fabric)
        for mounts in _list_mounts_of_fabric(name, fabric):
            _check_cluster_file_fabric_mounts(notes, fabric, mounts)
    for name, pool in notes.spec.node_pools.items():
        if pool.fabric is not None and pool.fabric not in fabrics:
            notes.unknown(FABRIC_UNKNOWN, ("nodePools", name, "fabric"), "fabric", pool.fabric, fabrics)
        elif pool.fabric is not None:
            _check_cluster_file_pool_fabric(notes, name, pool, pool.fabric, fabrics[pool.fabric])


def _check_cluster_file_pool_fabric(
    notes: ClusterCheck, name: str, pool: NodePool, fabric: str, stated: Fabric
) -> None:
    path: FieldPath = ("nodePools", name, "fabric")
    devices = FABRIC_PRESETS[stated.preset].devices if stated.preset else ""
    if devices and not pool.rails:
        notes.report(
            FABRIC_MISFIT,
            path,
            f"the cards of fabric '{fabric}' ({stated.preset}) are devices such as {devices}, and pool '{name}' has no"
            " rdma",
            f"Write rdma: {{resource: {devices}, count: ...}} at the pool.",
        )
    elif not pool.rails and not (
        stated.host_network or stated.privileged or stated.host_paths or stated.annotations
    ):
        notes.report(
            FABRIC_MISFIT,
            path,
            f"nothing gives workers a card of fabric '{fabric}': pool '{name}' has no rdma, and the fabric has no"
            " hostNetwork, hostPaths, annotations or privileged",
            "Write rdma: {resource: ..., count: ...} at the pool.",
        )
    networks = [one for rail in pool.rails for one in rail.networks]
    if stated.host_network and networks:
        notes.report(
            FABRIC_MISFIT,
            path,
            f"workers in their node's network (fabric '{fabric}') attach to no other: {networks[0]} of pool '{name}'"
            " would not be there",
            "Remove network from the pool's rdma, or hostNetwork from the fabric.",
        )


def _check_cluster_file_fabric_names(notes: ClusterCheck, name: str, fabric: Fabric) -> None:
    """Check for folders with the same name, and for variables that Trainer or the launch owns."""
    for folder in fabric.shared:
        if folder in fabric.host_paths:
            message = f"'{folder}' is a path of the node and a shared folder of fabric '{name}'"
            path: FieldPath = ("fabrics", name, "shared", folder)
            notes.report(FABRIC_MISFIT, path, message, "Choose another name for one of them.", key=True)
    for variable in fabric.env:
        if variable in RESERVED_ENV or variable in CHECKPOINT_ENV:
            if variable in RESERVED_ENV:
                why = "set for every run; a value of the fabric's would break the launch"
            else:
                why = "what checkpoint sets; a value of the fabric's would contradict the specs"
            message = f"'{variable}' is {why}"
            notes.report(ENV_RESERVED, ("fabrics", name, "env", variable), message, "Remove it.", key=True)


def _check_cluster_file_fabric_containers(notes: ClusterCheck, name: str, fabric: Fabric) -> None:
    seen = {PROGRAM}
    for kind, containers in (("setup", fabric.setup), ("sidecars", fabric.sidecars)):
        for own, one in containers.items():
            path: FieldPath = ("fabrics", name, kind, own)
            if own in seen:
                taken = "the program's container" if own == PROGRAM else "another container of the fabric"
                notes.report(FABRIC_CONTAINER, path, f"'{own}' is {taken}", "Choose another name.", key=True)
            seen.add(own)
            _check_cluster_file_fabric_container(notes, path, fabric, own, one)


def _check_cluster_file_fabric_container(
    notes: ClusterCheck, path: FieldPath, fabric: Fabric, own: str, one: FabricContainer
) -> None:
    if one.image is None:
        message = f"container '{own}' has no image: a preset leaves it to the cluster's file"
        help = f"Write {path[-2]}: {{{own}: {{image: ...}}}} with the image that its source names, mirrored."
        notes.report(FABRIC_CONTAINER, path, message, help)
    for folder in one.mounts:
        if folder not in fabric.host_paths and folder not in fabric.shared:
            known = [*fabric.host_paths, *fabric.shared]
            notes.unknown(FABRIC_CONTAINER, (*path, "mounts", folder), "folder", folder, known, key=True)
    if one.capabilities and not one.root and not one.privileged:
        message = f"container '{own}' does not run as root: its capabilities have no effect"
        notes.report(FABRIC_ROOT, (*path, "capabilities"), message, "Write root: true, or remove them.")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A folder of a fabric, where one of its containers sees it, and the field that says so."""

    folder: str
    path: str
    field: FieldPath


def _list_mounts_of_fabric(name: str, fabric: Fabric) -> Iterator[dict[str, _Placed]]:
    """Yield the mounts of workers, and those of each container, by path."""
    at: FieldPath = ("fabrics", name)
    placed = [
        _Placed(folder, one.mount, (*at, "hostPaths", folder, "mount"))
        for folder, one in fabric.host_paths.items()
        if one.mount
    ]
    placed += [_Placed(folder, path, (*at, "shared", folder)) for folder, path in fabric.shared.items()]
    yield {one.path: one for one in placed}
    for kind, containers in (("setup", fabric.setup), ("sidecars", fabric.sidecars)):
        for own, box in containers.items():
            inside: FieldPath = (*at, kind, own, "mounts")
            yield {path: _Placed(folder, path, (*inside, folder)) for folder, path in box.mounts.items()}


def _check_cluster_file_fabric_mounts(
    notes: ClusterCheck, fabric: Fabric, mounts: Mapping[str, _Placed]
) -> None:
    """Check mounts of one container that are inside others of the fabric."""
    for inner in mounts.values():
        outer = find_outer_mount(inner.path, mounts)
        around = fabric.host_paths.get(outer.folder) if outer else None
        if outer is None or around is None:
            continue
        inside = f"'{inner.folder}' is mounted at {inner.path}, inside '{outer.folder}' ({outer.path})"
        help = f"Choose a path that is not below {outer.path}"
        missing = inner.path.removeprefix(f"{outer.path}/")
        own = fabric.host_paths.get(inner.folder)
        if around.type in FILE_TYPES:
            notes.report(MOUNT_INSIDE, inner.field, f"{inside}, which is a file", f"{help}.")
        elif around.read_only and not (own and own.path == f"{around.path}/{missing}"):  # else it is there
            message = f"{inside}, which is read-only: no pod starts unless each node has '{missing}' there"
            help = f"{help}, or write readOnly: false at hostPaths.{outer.folder}."
            notes.report(MOUNT_POINT, inner.field, message, help)
