"""Checks of the launch scripts: every pod mounts those of the plan, and no patch changes them.

The scripts are files of one ConfigMap per team, which comes with its runs. A pod compares them with the
digest in its command and ends with an exit code of its own if they are others.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.model.folders import LAUNCH_SCRIPTS, is_in_folder
from gangplan.objects import Body
from gangplan.validate.problems import Problem
from gangplan.validate.promise.mounts import index_role_volumes, normalise_mount_path
from gangplan.validate.promise.roles import (
    ExpandedRole,
    ExpandedRun,
    find_generated_pods,
    find_program_container,
)
from gangplan.validate.promise.words import report_broken_promise

Found = Iterator[tuple[int, Problem]]
# Files whose mode lets every user read them; the default is 0644 (core/v1, Kubernetes 1.34).
READABLE = 0o444
# Kinds of volumes that are always read-only.
CLOSED = frozenset(("configMap", "secret", "downwardAPI", "projected"))
_KEEP = "Keep the volume of the launch scripts and its mount; what runs start with is in the spec."


def check_promised_launch_scripts(laid: ExpandedRun) -> Found:
    """Check that each role whose generated pods mount the launch scripts still mounts exactly these."""
    before = find_generated_pods(laid)
    for role in laid.roles.values():
        wanted = _find_promised_script_config_map(before.get(role.name) or {})
        if wanted and role.container is not None:
            yield from _check_promised_script_mounts(laid, role, wanted)


def _find_promised_script_config_map(pod: Body) -> str:
    """Return the ConfigMap that the program's container of a pod mounts as its scripts; empty without one."""
    box = find_program_container({"spec": pod})[1] or {}
    name = next(
        (one["name"] for one in box.get("volumeMounts") or () if normalise_mount_path(one) == LAUNCH_SCRIPTS),
        "",
    )
    volume: Body = next((one for one in pod.get("volumes") or () if one["name"] == name), {})
    return str((volume.get("configMap") or {}).get("name") or "")


def _check_promised_script_mounts(laid: ExpandedRun, role: ExpandedRole, wanted: str) -> Found:
    at: FieldPath = (*role.box, "volumeMounts")
    mounts = list(enumerate((role.container or {}).get("volumeMounts") or ()))
    found = next((one for _, one in mounts if normalise_mount_path(one) == LAUNCH_SCRIPTS), None)
    if found is None or found.get("subPath") or found.get("subPathExpr"):
        message = f"{role.title} would have no launch scripts at {LAUNCH_SCRIPTS}, and could not start"
        yield laid.runtime, report_broken_promise(at, message, _KEEP)
        return
    volumes = index_role_volumes(role)
    for index, one in mounts:
        path, kind = normalise_mount_path(one), volumes.get(one["name"]) or {}
        is_full = bool(one.get("readOnly") or CLOSED & set(kind))
        if one is not found and is_in_folder(path, LAUNCH_SCRIPTS):
            message = f"a mount at {path} would replace a launch script of {role.title}"
            yield laid.runtime, report_broken_promise((*at, index), message, "Mount it elsewhere.")
        elif is_full and path != LAUNCH_SCRIPTS and is_in_folder(LAUNCH_SCRIPTS, path):
            message = (
                f"{role.title} would never start: nothing can be mounted inside {path}, which is read-only"
            )
            yield laid.runtime, report_broken_promise((*at, index), message, "Mount it elsewhere.")
    source = (volumes.get(found["name"]) or {}).get("configMap") or {}
    mode = source.get("defaultMode", READABLE)
    is_whole = not source.get("items") and not source.get("optional")
    if source.get("name") != wanted or not is_whole or int(mode) & READABLE != READABLE:
        message = f"{role.title} would not start with the launch scripts of the plan, {wanted}"
        yield laid.runtime, report_broken_promise((*role.pod, "volumes"), message, _KEEP)


def find_altered_launch_scripts(built: Body, before: Body) -> Iterator[Problem]:
    """Yield what a patch changes in the ConfigMap of the launch scripts, labels and annotations aside."""
    for field in ("data", "binaryData", "immutable"):
        if built.get(field) != before.get(field):
            message = (
                "the launch scripts would differ from those of the runs, whose pods would all end at once"
            )
            if field == "immutable":
                message = "the launch scripts of runs could change while they run"
            yield report_broken_promise(
                (field,), message, "Remove the patch: scripts have options, and no variants."
            )
