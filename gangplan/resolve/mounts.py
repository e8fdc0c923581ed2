"""Checks of mounts: not over each other, and not over what the run needs from its image."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.findings import Location
from gangplan.model.folders import (
    KERNEL_FOLDERS,
    LAUNCH_SCRIPTS,
    PROGRAM_FOLDERS,
    ROOT_HOME,
    SCRATCH_FOLDER,
    STATE_FOLDERS,
    is_in_folder,
)
from gangplan.model.job import Mount, PulledImage
from gangplan.resolve.context import JobResolution
from gangplan.resolve.nested import (
    explain_impossible_mount,
    explain_missing_folder,
    find_outer_mount,
    list_mount_sets,
    needs_folder_in_volume,
)
from gangplan.rules.pods import WORKDIR_UNUSABLE
from gangplan.rules.specs import MOUNT_COLLISION, MOUNT_HIDES, MOUNT_INSIDE, MOUNT_POINT
from gangplan.spec.pods import Scratch

# Folders that Trainer, the kubelet or the run's own volumes fill: nothing may be mounted there or below.
TAKEN_FOLDERS = {
    "/etc/mpi": "Trainer puts the list of hosts there",
    LAUNCH_SCRIPTS: "gangplan's launch scripts are there",
    **KERNEL_FOLDERS,
    "/var/run/secrets": "Kubernetes puts tokens there",
    "/run/secrets": "Kubernetes puts tokens there",
}
SYSTEM = {**PROGRAM_FOLDERS, **STATE_FOLDERS}


def check_requested_mounts(
    context: JobResolution, mounts: Sequence[Mount], image: PulledImage | None
) -> None:
    """Check for two mounts on one path, and for mounts that hide what the run needs."""
    seen: dict[str, str] = {}
    for mount in mounts:
        name = mount.name
        if mount.path in seen:
            message = f"'{name}' is mounted at {mount.path}, which is used by '{seen[mount.path]}'"
            help = "Choose another folder."
            if seen[mount.path] == name:
                message = f"'{name}' is mounted at {mount.path} by data and by checkpoint"
                help = "Remove it from data: checkpoint mounts it."
            context.report(MOUNT_COLLISION, locate_mount_in_spec(context, mount), message, help)
        elif reason := _explain_reserved_mount_path(mount.path, image):
            message = f"'{name}' is mounted at {mount.path}, which the run itself uses: {reason}"
            context.report(
                MOUNT_COLLISION,
                locate_mount_in_spec(context, mount),
                message,
                _suggest_mount_folder(context, name),
            )
        elif (reason := _explain_image_files_hidden_by_mount(mount.path, image)) and not (
            mount.scratch and mount.path == SCRATCH_FOLDER
        ):
            message = f"'{name}' is mounted over {mount.path}: {reason}"
            context.report(
                MOUNT_HIDES,
                locate_mount_in_spec(context, mount),
                message,
                _suggest_mount_folder(context, name),
            )
        seen.setdefault(mount.path, name)
    _check_mounts_inside_others(context, mounts)


def _check_mounts_inside_others(context: JobResolution, mounts: Sequence[Mount]) -> None:
    """Check that each mount inside another one finds or gets its mount point there."""
    told: set[str] = set()
    for by_path in list_mount_sets(context, mounts):
        for mount in by_path.values():
            outer = find_outer_mount(mount.path, by_path)
            if outer is None or mount.path in told:
                continue
            inside = f"'{mount.name}' is mounted at {mount.path}, inside '{outer.name}' ({outer.path})"
            if reason := explain_impossible_mount(bool(mount.key), outer):
                help = f"Choose a path that is not below {outer.path}."
                where = locate_mount_in_spec(context, mount)
                context.report(MOUNT_INSIDE, where, f"{inside}, {reason}", help)
            elif needs_folder_in_volume(outer):
                what, missing = "file" if mount.key else "folder", mount.path.removeprefix(f"{outer.path}/")
                message = f"{inside}, which is read-only: no pod starts unless that has {what} '{missing}'"
                help = f"Choose a path that is not below {outer.path}, or create the {what} there first."
                context.report(MOUNT_POINT, locate_mount_in_spec(context, mount), message, help)
            else:
                continue
            told.add(mount.path)


def check_requested_workdir(
    context: JobResolution, image: PulledImage | None, mounts: Sequence[Mount] = ()
) -> None:
    """Check that the working directory is a folder that the run's user can enter and keep files in.

    A missing folder is created, owned by root (runc v1.3, libcontainer/rootfs_linux.go, prepareRootfs).
    """
    path = context.spec.spec.workdir
    if path is None:
        return
    reason = next((why for folder, why in KERNEL_FOLDERS.items() if is_in_folder(path, folder)), "")
    if is_in_folder(path, ROOT_HOME):
        user = f"user {image.uid}" if image else "not root"
        reason = f"only root may enter {ROOT_HOME}, and the run is {user}"
    for by_path in list_mount_sets(context, mounts):
        reason = reason or explain_missing_folder(path, by_path)
    if reason:
        message = f"no program can work in {path}: {reason}"
        help = "Write a folder of the image or of data, such as /workspace."
        context.report(WORKDIR_UNUSABLE, context.where("workdir"), message, help)


def _explain_reserved_mount_path(path: str, image: PulledImage | None) -> str:
    """Return why nothing may be mounted at or below a path; empty if it may."""
    taken = dict(TAKEN_FOLDERS)
    if image is not None and image.mpi is not None:
        taken[image.ssh.keys] = "the key pair of its SSH sessions is there"
    return next((why for folder, why in taken.items() if is_in_folder(path, folder)), "")


def _explain_image_files_hidden_by_mount(path: str, image: PulledImage | None) -> str:
    """Return what a mount at exactly this path would hide; empty if that is nothing the run needs."""
    if is_in_folder(path, ROOT_HOME):
        user = f"user {image.uid}" if image else "not root"
        return f"only root may enter {ROOT_HOME}, and the run is {user}"
    if path == SCRATCH_FOLDER and (image is None or image.mpi is not None):
        return "MPI keeps sockets and files of one host there, and all pods would share them"
    for file, what in _list_image_files_needed_by_job(image):
        if is_in_folder(file, path):
            return f"it hides {file}, {what}"
    if is_in_folder(LAUNCH_SCRIPTS, path):  # a read-only volume has no room for the folder of another one
        return f"gangplan's launch scripts are mounted inside it, at {LAUNCH_SCRIPTS}"
    return f"it hides the image's {SYSTEM[path]}" if path in SYSTEM else ""


def _list_image_files_needed_by_job(image: PulledImage | None) -> list[tuple[str, str]]:
    """Return files of the image that the run reads, as the catalog states them."""
    if image is None:
        return []
    setup = image.mpi.setup if image.mpi else None
    mpi = [(setup, "which puts MPI on the path")] if setup else []
    if image.mpi is None:
        return mpi
    ssh = image.ssh
    return [
        (ssh.config, "the configuration of the SSH server"),
        (ssh.server, "the SSH server"),
        (ssh.keys, "where the key pair of its SSH sessions is"),
        *mpi,
    ]


def _suggest_mount_folder(context: JobResolution, name: str) -> str:
    spec = context.spec.spec
    used = {*spec.data.values(), *spec.secrets.files.values(), *spec.files.values()}
    free = next(path for path in (f"/mnt/{name}", f"/mnt/{name}-files", f"/srv/{name}") if path not in used)
    return f"Choose a folder of its own, such as {free}."


def locate_mount_in_spec(context: JobResolution, mount: Mount) -> Location:
    """Return where the spec asks for a mount."""
    spec = context.spec.spec
    if mount.scratch:
        return context.where("scratch", *(("path",) if isinstance(spec.scratch, Scratch) else ()))
    if mount.name in spec.volumes and (mount.own_claim or (mount.inline and mount.inline.name)):
        is_path = isinstance(spec.volumes[mount.name], str)
        return context.where("volumes", mount.name, *(() if is_path else ("path",)))
    if mount.config_map:
        return context.where("files", mount.file or mount.config_map)
    if mount.secret:
        return context.where("secrets", "files", mount.secret)
    named = next(
        (
            name
            for name, target in spec.data.items()
            if target == mount.path and name in (mount.claim, mount.volume.removeprefix("claim-"))
        ),
        None,
    )
    if named is None and spec.checkpoint and spec.checkpoint.path == mount.path:
        return context.where("checkpoint", "path")
    last = [name for name, target in spec.data.items() if target == mount.path]
    return context.where("data", named or (last[-1] if last else ""))
