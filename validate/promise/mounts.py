"""Checks of mounts: the spec's data where planned, and nothing over the files that the launch needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from posixpath import normpath

from gangplan.findings import FieldPath
from gangplan.model.folders import KERNEL_FOLDERS, PROGRAM_FOLDERS, ROOT_HOME, SCRATCH_FOLDER, is_in_folder
from gangplan.model.job import Mount, ScratchSpace
from gangplan.model.pods import GCSFUSE, GCSFUSE_ANNOTATION
from gangplan.model.quantity import parse_quantity
from gangplan.objects import Body
from gangplan.validate.jobset import LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]
SHM = "/dev/shm"
HOSTS = "/etc/mpi"
CLIENT = "/etc/ssh/ssh_config.d/mpi.conf"
# Kinds of volumes that several pods can share.
SHARED = frozenset(("persistentVolumeClaim", "nfs", "cephfs", "glusterfs", "azureFile", "hostPath"))
# Folders without which no program of an image starts.
SYSTEM = frozenset(("/", *PROGRAM_FOLDERS, *KERNEL_FOLDERS))


def check_promised_mounts(laid: ExpandedRun) -> Found:
    """Check that every role has the planned mounts, writable where the spec needs it."""
    for role in laid.present:
        if role.container is None:
            continue
        mounts = {normalise_mount_path(one): one for one in role.container.get("volumeMounts") or ()}
        volumes = index_role_volumes(role)
        at: FieldPath = (*role.box, "volumeMounts")
        for wanted in laid.unit.job.mounts_of(LAUNCHER if role.name == LAUNCHER else "worker"):
            found = mounts.get(wanted.path.rstrip("/"))
            yield from _check_promised_mounted_volume(
                laid, role, at, wanted, found, volumes.get((found or {}).get("name", "")) or {}
            )
        if SHM not in mounts and not role.spec.get("hostIPC"):
            message = f"{role.title} would have 64 MiB of {SHM}, too little for data loaders and NCCL"
            yield (
                laid.runtime,
                report_weakened_plan(at, message, f"Keep the volume at {SHM}; its sizeLimit may change."),
            )


def normalise_mount_path(mount: Body) -> str:
    """Return the normalised path of a mount, without a trailing slash or `..`."""
    return _normalise_path(str(mount["mountPath"]))


@lru_cache(maxsize=1024)  # runs mount the same few folders
def _normalise_path(path: str) -> str:
    return normpath(path)


def index_role_volumes(role: ExpandedRole) -> Mapping[str, Body]:
    """Return the volumes of a role's pods by name."""
    return {one["name"]: one for one in role.spec.get("volumes") or ()}


def _check_promised_mounted_volume(
    laid: ExpandedRun, role: ExpandedRole, at: FieldPath, wanted: Mount, found: Body | None, volume: Body
) -> Found:
    name = wanted.name
    if found is None:
        message = f"{role.title} would have nothing at {wanted.path}; the plan has '{name}' there"
        yield laid.runtime, report_broken_promise(at, message, "Keep the mount, or change data in the spec.")
        return
    if wanted.scratch:
        yield from _check_promised_scratch_space(
            laid, role, wanted.scratch, volume, bool(found.get("readOnly"))
        )
        return
    if wanted.own_claim or (wanted.inline and wanted.inline.name):
        from gangplan.validate.promise.volumes import check_promised_private_volume  # few runs have one

        yield from check_promised_private_volume(laid, role, at, wanted, found, volume)
        return
    claim = volume.get("persistentVolumeClaim") or {}
    other = claim.get("claimName", "") if wanted.claim else (volume.get("secret") or {}).get("secretName", "")
    if wanted.inline and "csi" in volume:
        bucket = dict(wanted.inline.attributes).get("bucketName", "")
        built = (volume["csi"].get("volumeAttributes") or {}).get("bucketName", "")
        other, name = built if built != bucket else name, name
        pods = (role.template.get("metadata") or {}).get("annotations") or {}
        key, value = GCSFUSE_ANNOTATION
        if volume["csi"].get("driver") == GCSFUSE and pods.get(key) != value:
            message = f"{role.title} would never start: without annotation {key} nothing mounts {wanted.path}"
            yield laid.runtime, report_broken_promise(role.template_at, message, "Keep it.")
    if wanted.config_map:
        other, name = (volume.get("configMap") or {}).get("name", ""), wanted.config_map
    if wanted.key and "configMap" in volume and found.get("subPath") != wanted.key:
        message = f"{role.title} would not have the file {wanted.file} at {wanted.path}"
        yield laid.runtime, report_broken_promise(at, message, "Keep its subPath.", "files")
    # Another kind of volume (nfs, a local cache) is the site's way to give the same data.
    if other not in (name, ""):
        message = f"{role.title} would have '{other}' at {wanted.path}; the plan has '{name}' there"
        yield (
            laid.runtime,
            report_broken_promise(at, message, f"Write {other} in data, files or secrets of the spec."),
        )
    is_closed = bool(found.get("readOnly") or claim.get("readOnly"))
    if is_closed and not wanted.read_only:
        message = f"{role.title} could not write to {wanted.path}, although the spec requires it"
        yield laid.runtime, report_broken_promise(at, message, "Remove readOnly.")


def _check_promised_scratch_space(
    laid: ExpandedRun, role: ExpandedRole, wanted: ScratchSpace, volume: Body, is_closed: bool
) -> Found:
    """Check that scratch is private to the pod and has the planned medium and size.

    A kind of volume without a size is accepted.
    """
    at: FieldPath = (*role.pod, "volumes")
    empty, size = volume.get("emptyDir"), _find_volume_size(volume)
    if is_closed:
        message = f"{role.title} could not write to their scratch"
        yield laid.runtime, report_broken_promise((*role.box, "volumeMounts"), message, "Remove readOnly.")
    if SHARED & set(volume):
        message = f"all pods would share {wanted.path}; the plan gives each scratch of its own"
        yield (
            laid.runtime,
            report_broken_promise(at, message, "Mount it elsewhere, or write data in the spec."),
        )
    elif size and parse_quantity(size) < wanted.size:
        message = f"{role.title} would have {size} of scratch; the plan has {wanted.size}"
        yield laid.runtime, report_weakened_plan(at, message, "Write scratch in the spec.")
    if empty is not None and (empty.get("medium") == "Memory") != (wanted.medium == "memory"):
        where = "memory, which counts as the program's" if empty.get("medium") == "Memory" else "disk"
        message = f"{role.title} would have their scratch in {where}; the plan has it on {wanted.medium}"
        yield (
            laid.runtime,
            report_broken_promise(at, message, "Write medium of scratch in the spec.", "scratch"),
        )


def _find_volume_size(volume: Body) -> str:
    """Return the stated size of a volume, or an empty string."""
    claim = ((volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}).get("spec") or {}
    stated = (claim.get("resources") or {}).get("requests") or {}
    return str((volume.get("emptyDir") or {}).get("sizeLimit") or stated.get("storage") or "")


def check_promised_launch_files_not_hidden(laid: ExpandedRun) -> Found:
    """Check that no mount hides the keys, the hostfile, the accounts, or the SSH server and its settings."""
    yield from _check_system_mounts(laid)
    if not laid.uses_mpi:
        return
    ssh = laid.unit.job.image.ssh
    for role in laid.present:
        if role.container is None:
            continue
        setup = laid.unit.job.image.mpi.setup if laid.unit.job.image.mpi else ""
        # CLIENT (images/openmpi) sets the port of the SSH servers and accepts their host keys without asking.
        files = (ssh.server, ssh.config, "/etc/passwd", "/bin/sh", CLIENT, *([setup] if setup else ()))
        # Trainer mounts its own volume at each: another mount there or inside would collide with it.
        folders = (ssh.keys.rstrip("/"), *((HOSTS,) if role.name == LAUNCHER else ()))
        ours = {one.path.rstrip("/") for one in laid.unit.job.mounts}
        for index, one in enumerate(role.container.get("volumeMounts") or ()):
            path = normalise_mount_path(one).rstrip("/")
            hidden = next((file for file in files if f"{file}/".startswith(f"{path}/") and file != path), "")
            hidden = hidden or next((folder for folder in folders if is_in_folder(path, folder)), "")
            if hidden and path not in ours:
                where = path or "/"
                message = f"a mount at {where} would hide {hidden} in {role.title}; no rank starts without it"
                at = (*role.box, "volumeMounts", index)
                yield (
                    laid.runtime,
                    report_broken_promise(at, message, "Mount it elsewhere, or single files by subPath."),
                )


def _check_system_mounts(laid: ExpandedRun) -> Found:
    """Check that no volume hides the image's programs and libraries or is unusable at its path."""
    ours = {one.path.rstrip("/") for one in laid.unit.job.mounts}  # judged as fields of the spec
    for role in laid.present:
        for index, one in enumerate((role.container or {}).get("volumeMounts") or ()):
            path = normalise_mount_path(one)
            if path not in ours and (message := _explain_unusable_mount(laid, role, path, one)):
                at = (*role.box, "volumeMounts", index)
                yield (
                    laid.runtime,
                    report_broken_promise(at, message, "Mount it elsewhere, such as below /mnt."),
                )


def _explain_unusable_mount(laid: ExpandedRun, role: ExpandedRole, path: str, mount: Body) -> str:
    """Return why a mount keeps a container or its ranks from starting, or an empty string."""
    if path in SYSTEM:
        return f"a mount at {path} would hide the image's own files there from {role.title}"
    if is_in_folder(path, "/proc"):
        return f"{role.title} would never start: container runtimes mount nothing inside /proc"
    if is_in_folder(path, ROOT_HOME):
        return (
            f"{role.title} could not read {path}: only root may enter {ROOT_HOME}, and the run never is root"
        )
    volume = index_role_volumes(role).get(mount["name"]) or {}
    if path == SCRATCH_FOLDER and laid.uses_mpi and SHARED & set(volume):
        return f"all pods would share {SCRATCH_FOLDER}, where MPI keeps sockets and files of one host"
    return ""


def check_promised_mounts_are_distinct(laid: ExpandedRun) -> Found:
    """Check that no two volumes are mounted at one path.

    The API server compares paths as they are written, so it accepts `/data` and `/data/`.
    """
    for role in laid.present:
        seen: set[str] = set()
        for index, one in enumerate((role.container or {}).get("volumeMounts") or ()):
            if normalise_mount_path(one) in seen:
                message = (
                    f"{role.title} would have two volumes at {normalise_mount_path(one)}, one over the other"
                )
                at = (*role.box, "volumeMounts", index)
                yield (
                    laid.runtime,
                    report_broken_promise(at, message, "Choose another folder for one of them."),
                )
            seen.add(normalise_mount_path(one))


def check_promised_writable_tmp(laid: ExpandedRun) -> Found:
    """Check that /tmp is writable: all launchers write there (sockets and files of MPI, torchrun's logs)."""
    for role in laid.present:
        box = role.container or {}
        if not (box.get("securityContext") or {}).get("readOnlyRootFilesystem"):
            continue
        mounts = {
            normalise_mount_path(one) for one in box.get("volumeMounts") or () if not one.get("readOnly")
        }
        if SCRATCH_FOLDER not in mounts:
            message = (
                f"{role.title} could not write to {SCRATCH_FOLDER}, where launchers keep sockets and files"
            )
            at = (*role.box, "securityContext", "readOnlyRootFilesystem")
            help = f"Mount an emptyDir at {SCRATCH_FOLDER}, or keep the root file system writable."
            yield laid.runtime, report_broken_promise(at, message, help)
