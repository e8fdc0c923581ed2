"""Mounts inside other mounts: whether their mount points can be created, and folders that nothing creates.

containerd mounts the outer first (v2.1, WithMounts of cri/opts), and runc creates what is missing below: a folder, or
a file for a file (v1.3, libcontainer/rootfs_linux.go, createMountpoint). It does so after the outer has become
read-only, so it cannot. Only for ConfigMaps and Secrets has the kubelet created the mount points by then, always
as folders (Kubernetes v1.30 to v1.34, pkg/volume/util/nested_volumes.go, called by pkg/volume/configmap and
secret). A file cannot be mounted on a folder (kubernetes#61545: not a directory).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from gangplan.model.job import Mount
from gangplan.resolve.context import JobResolution

_M = TypeVar("_M")


def find_outer_mount(path: str, mounts: Mapping[str, _M]) -> _M | None:
    """Return the innermost mount that a path is inside of, not at; None if there is none."""
    while path := path.rpartition("/")[0]:
        if path in mounts:
            return mounts[path]
    return None


def list_mount_sets(context: JobResolution, mounts: Sequence[Mount]) -> Iterator[dict[str, Mount]]:
    """Yield the mounts by their paths: of pods with ranks, and of those without, if the run has any and they
    differ."""
    spec = context.spec.spec
    yield {one.path: one for one in reversed(mounts)}
    launcher_alone = spec.launcher is None or not spec.launcher.runs_ranks
    if any(one.single for one in mounts) and (launcher_alone or spec.roles or spec.steps):
        yield {one.path: one for one in reversed(mounts) if not one.single}


def explain_impossible_mount(is_file: bool, outer: Mount) -> str:
    """Return why a file or folder cannot be mounted inside a mount, whatever that contains; empty if it may be."""
    if outer.key:
        return "which is a file"
    if is_file and (outer.config_map or outer.secret):
        return (
            "which is read-only: only folders can be mounted inside it, because Kubernetes creates them there"
        )
    return ""


def needs_folder_in_volume(outer: Mount) -> bool:
    """Return whether a mount inside another one needs a folder or file that its volume must already have."""
    return outer.read_only and not (outer.key or outer.config_map or outer.secret)


def explain_missing_folder(path: str, mounts: Mapping[str, Mount]) -> str:
    """Return why a folder cannot be there, although runc creates missing ones; empty if it can."""
    at, outer = mounts.get(path), find_outer_mount(path, mounts)
    if at is not None:
        return f"'{at.name}' is mounted there, which is a file" if at.key else ""
    if outer is None:
        return ""
    if outer.key:
        return f"'{outer.name}' is mounted at {outer.path}, which is a file"
    if not (outer.config_map or outer.secret) or any(one.startswith(f"{path}/") for one in mounts):
        return ""
    kind = "ConfigMap" if outer.config_map else "secret"
    return f"{kind} '{outer.name}' is mounted at {outer.path}, for reading, and contains no folders"
