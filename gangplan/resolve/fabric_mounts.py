"""Mounts of a spec that meet those of its pool's fabric: at one path, or one inside the other."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model.fabric import FILE_TYPES, FabricAccess, FabricMount
from gangplan.model.job import Mount
from gangplan.resolve.context import JobResolution
from gangplan.resolve.mounts import locate_mount_in_spec
from gangplan.resolve.nested import explain_impossible_mount, find_outer_mount, needs_folder_in_volume
from gangplan.rules.specs import MOUNT_COLLISION, MOUNT_INSIDE, MOUNT_POINT


def check_mounts_with_fabric(context: JobResolution, mounts: Sequence[Mount], access: FabricAccess) -> None:
    """Check that mounts of the spec and of the fabric do not exclude each other."""
    if not access.mounts:
        return
    by_path: dict[str, Mount | FabricMount] = {one.path: one for one in access.mounts}
    for mount in mounts:
        if mount.path in by_path and isinstance(by_path[mount.path], FabricMount):
            context.report(
                MOUNT_COLLISION,
                locate_mount_in_spec(context, mount),
                f"'{mount.name}' is mounted at {mount.path}, which fabric '{access.name}' uses",
                "Choose another folder.",
            )
        by_path[mount.path] = mount
    files = {one.name for one in access.volumes if one.kind in FILE_TYPES}
    for path, inner in by_path.items():
        outer = find_outer_mount(path, by_path)
        if isinstance(outer, FabricMount) and isinstance(inner, Mount):
            _check_mount_in_fabric(context, inner, outer, access, files)
        elif isinstance(outer, Mount) and isinstance(inner, FabricMount):
            _check_fabric_in_mount(context, inner, outer, access, files)


def _check_mount_in_fabric(
    context: JobResolution, mount: Mount, outer: FabricMount, access: FabricAccess, files: set[str]
) -> None:
    where = locate_mount_in_spec(context, mount)
    inside = f"'{mount.name}' is mounted at {mount.path}, inside {outer.path} of fabric '{access.name}'"
    help = f"Choose a path that is not below {outer.path}."
    if outer.volume in files:
        context.report(MOUNT_INSIDE, where, f"{inside}, which is a file", help)
    elif outer.read_only:
        what, missing = "file" if mount.key else "folder", mount.path.removeprefix(f"{outer.path}/")
        message = f"{inside}, which is read-only: no pod starts unless each node has {what} '{missing}' there"
        context.report(MOUNT_POINT, where, message, help)


def _check_fabric_in_mount(
    context: JobResolution, mount: FabricMount, outer: Mount, access: FabricAccess, files: set[str]
) -> None:
    where = locate_mount_in_spec(context, outer)
    what = "file" if mount.volume in files else "folder"
    inside = f"fabric '{access.name}' has a {what} at {mount.path}, inside '{outer.name}' ({outer.path})"
    help = f"Mount '{outer.name}' elsewhere."
    if reason := explain_impossible_mount(what == "file", outer):
        context.report(MOUNT_INSIDE, where, f"{inside}, {reason}", help)
    elif needs_folder_in_volume(outer):
        missing = mount.path.removeprefix(f"{outer.path}/")
        message = f"{inside}, which is read-only: no pod starts unless that has {what} '{missing}'"
        context.report(MOUNT_POINT, where, message, help)
