"""What is mounted: the spec's data where it says, and nothing over what the launch reads."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.folders import KERNEL, PROGRAMS, is_in
from gangplan.model.job import Mount
from gangplan.validate.forms import Body, Path
from gangplan.validate.promise.laid import LAUNCHER, Laid, Role
from gangplan.validate.promise.words import broken, weakened
from gangplan.validate.schema_messages import Problem

Found = Iterator[tuple[int, Problem]]
SHM = "/dev/shm"
HOSTS = "/etc/mpi"
# Without them no program of an image starts.
SYSTEM = frozenset(("/", *PROGRAMS, *KERNEL))


def planned(laid: Laid) -> Found:
    """Every claim and secret of the spec is there, in every role, and may be written where the spec does."""
    for role in laid.planned():
        if role.container is None:
            continue
        mounts = {one["mountPath"].rstrip("/"): one for one in role.container.get("volumeMounts") or ()}
        volumes = {one["name"]: one for one in role.spec.get("volumes") or ()}
        at: Path = (*role.box, "volumeMounts")
        for wanted in laid.unit.job.mounts_of(LAUNCHER if role.name == LAUNCHER else "worker"):
            found = mounts.get(wanted.path.rstrip("/"))
            yield from _mounted(
                laid, role, at, wanted, found, volumes.get((found or {}).get("name", "")) or {}
            )
        if SHM not in mounts and not role.spec.get("hostIPC"):
            message = f"{role.title} would have 64 MiB of {SHM}, too little for data loaders and NCCL"
            yield laid.runtime, weakened(at, message, f"Leave the volume at {SHM}; its sizeLimit may change.")


def _mounted(laid: Laid, role: Role, at: Path, wanted: Mount, found: Body | None, volume: Body) -> Found:
    name = wanted.claim or wanted.secret
    if found is None:
        message = f"{role.title} would have nothing at {wanted.path}; the plan has '{name}' there"
        yield laid.runtime, broken(at, message, "Leave the mount, or change data in the spec.")
        return
    claim = volume.get("persistentVolumeClaim") or {}
    other = claim.get("claimName", "") if wanted.claim else (volume.get("secret") or {}).get("secretName", "")
    # Another kind of volume (nfs, a local cache) is the site's way to give the same data.
    if other not in (name, ""):
        message = f"{role.title} would have '{other}' at {wanted.path}; the plan has '{name}' there"
        yield laid.runtime, broken(at, message, f"Write {other} in data or secrets of the spec.")
    is_closed = bool(found.get("readOnly") or claim.get("readOnly"))
    if is_closed and not wanted.read_only:
        message = f"{role.title} could not write to {wanted.path}, as the spec does"
        yield laid.runtime, broken(at, message, "Leave readOnly out.")


def hiding(laid: Laid) -> Found:
    """Nothing is mounted over the keys, the hostfile, the accounts, or the SSH server and its settings."""
    yield from _system(laid)
    if not laid.uses_mpi:
        return
    ssh = laid.unit.job.image.ssh
    for role in laid.planned():
        if role.container is None:
            continue
        files = (ssh.server, ssh.config, "/etc/passwd", "/bin/sh")
        # Trainer mounts its own volume at each: another one there, or a file in it, is in its way.
        folders = (ssh.keys.rstrip("/"), *((HOSTS,) if role.name == LAUNCHER else ()))
        ours = {one.path.rstrip("/") for one in laid.unit.job.mounts}
        for index, one in enumerate(role.container.get("volumeMounts") or ()):
            path = one["mountPath"].rstrip("/")
            hidden = next((file for file in files if f"{file}/".startswith(f"{path}/") and file != path), "")
            hidden = hidden or next((folder for folder in folders if is_in(path, folder)), "")
            if hidden and path not in ours:
                where = path or "/"
                message = (
                    f"what is mounted at {where} would hide {hidden} in {role.title}, by which ranks start"
                )
                at = (*role.box, "volumeMounts", index)
                yield laid.runtime, broken(at, message, "Mount it elsewhere, or single files by subPath.")


def _system(laid: Laid) -> Found:
    """No volume stands where an image has its own programs and libraries."""
    ours = {one.path.rstrip("/") for one in laid.unit.job.mounts}  # judged as fields of the spec
    for role in laid.planned():
        for index, one in enumerate((role.container or {}).get("volumeMounts") or ()):
            path = one["mountPath"].rstrip("/") or "/"
            if path in SYSTEM and path not in ours:
                message = (
                    f"what is mounted at {path} would hide the image's own files there from {role.title}"
                )
                at = (*role.box, "volumeMounts", index)
                yield laid.runtime, broken(at, message, "Mount it elsewhere, such as below /mnt.")
