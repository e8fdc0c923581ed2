"""Checks of pod volumes in a cluster file: each is of one kind, and its storage class offers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.findings import FieldPath
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.volumes import CLUSTER_VOLUME_WRONG
from gangplan.spec.cluster import Cluster
from gangplan.spec.pods import PodVolume
from gangplan.workspace import suggest_nearest

# Fields that only drivers take, and fields that only storage classes do, with their unset values.
OF_DRIVERS: dict[str, Any] = {
    "attributes": {},
    "settable": (),
    "secret": None,
    "fs_type": None,
    "pod_security": "privileged",
}
OF_CLASSES: dict[str, Any] = {"access_mode": "ReadWriteOnce", "size": None, "most": None}
_ALIASES = {"fs_type": "fsType", "pod_security": "podSecurity", "access_mode": "accessMode"}


def check_cluster_file_offered_volumes(notes: ClusterCheck) -> None:
    """Check every volume that the cluster offers to pods."""
    for name, volume in notes.spec.volumes.items():
        for field, message, help in _find_cluster_file_volume_mistakes(notes.spec, name, volume):
            path: FieldPath = ("volumes", name, field) if field else ("volumes", name)
            notes.report(CLUSTER_VOLUME_WRONG, path, f"volume '{name}' {message}", help, key=not field)


def _find_cluster_file_volume_mistakes(
    cluster: Cluster, name: str, volume: PodVolume
) -> Iterator[tuple[str, str, str]]:
    """Yield for each mistake in a volume its field, what is wrong with it, and what to do."""
    if (volume.driver is None) == (volume.storage_class is None):
        told = "neither driver nor storageClass" if volume.driver is None else "both driver and storageClass"
        yield "", f"states {told}", "Write one of them: driver for an inline CSI volume, else storageClass."
        return
    others, of = (OF_CLASSES, "a driver") if volume.driver else (OF_DRIVERS, "a storage class")
    for field, nothing in others.items():
        if getattr(volume, field) != nothing:
            alias = _ALIASES.get(field, field)
            yield alias, f"is made by {of}, which takes no {alias}", f"Remove {alias}."
    if volume.size is not None and volume.most is not None and volume.size > volume.most:
        yield (
            "size",
            f"is larger than the most that specs may state, {volume.most}",
            "Lower size, or raise most.",
        )
    for team in volume.teams or ():
        if team not in cluster.teams:
            yield (
                "teams",
                f"is for team '{team}', which has no queue here",
                suggest_nearest(team, cluster.teams),
            )
    if volume.storage_class is not None:
        yield from _check_cluster_file_volume_storage_class(cluster, volume)


def _check_cluster_file_volume_storage_class(
    cluster: Cluster, volume: PodVolume
) -> Iterator[tuple[str, str, str]]:
    """Check that the storage class is declared or one of local disks, and that it offers the access mode."""
    local = {pool.local_disk.storage_class for pool in cluster.node_pools.values() if pool.local_disk}
    known = cluster.storage_classes.get(str(volume.storage_class))
    if known is None and volume.storage_class not in local:
        help = f"Declare it in storageClasses. {suggest_nearest(str(volume.storage_class), [*cluster.storage_classes, *local])}"
        yield (
            "storageClass",
            f"is of storage class '{volume.storage_class}', which is not declared here",
            help,
        )
    elif known is not None and volume.access_mode not in known.access_modes:
        offers = ", ".join(known.access_modes)
        message = f"asks for {volume.access_mode}, and class '{volume.storage_class}' offers {offers}"
        yield "accessMode", message, f"Write accessMode: {known.access_modes[0]}."
