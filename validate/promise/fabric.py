"""Checks that pods get everything that the fabric of their pool gives, and no more access to the node.

Pod Security judges what a namespace refuses. These checks find patches that remove or redirect parts of the
fabric in a namespace that admits the node's folders and network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.findings import FieldPath
from gangplan.model.fabric import FabricAccess, FabricMount, FabricSideContainer
from gangplan.objects import Body
from gangplan.validate.jobset import LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.mounts import index_role_volumes, normalise_mount_path
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise

Found = Iterator[tuple[int, Problem]]


def check_promised_fabric(laid: ExpandedRun) -> Found:
    """Check that each role gets what its fabric gives."""
    for role in laid.present:
        access = laid.unit.job.access_of(LAUNCHER if role.name == LAUNCHER else "worker")
        if access.name and role.container is not None:
            yield from _check_promised_fabric_host_network(laid, role, access)
            yield from _check_promised_fabric_annotations(laid, role, access)
            yield from _check_promised_fabric_volumes(laid, role, access)
            yield from _check_promised_fabric_of_program(laid, role, access)
            yield from _check_promised_fabric_containers(laid, role, access)


def _report_fabric_difference(
    laid: ExpandedRun, path: FieldPath, message: str, access: FabricAccess, what: str = ""
) -> tuple[int, Problem]:
    help = f"Write {what or 'it'} at fabrics.{access.name} in the cluster's file."
    return laid.runtime, report_broken_promise(path, message, help, "rdma")


def _check_promised_fabric_host_network(laid: ExpandedRun, role: ExpandedRole, access: FabricAccess) -> Found:
    if access.host_network and not role.spec.get("hostNetwork"):
        message = (
            f"{role.title} would not be in their node's network, where fabric '{access.name}' has its cards"
        )
        yield _report_fabric_difference(laid, (*role.pod, "hostNetwork"), message, access, "hostNetwork")


def _check_promised_fabric_annotations(laid: ExpandedRun, role: ExpandedRole, access: FabricAccess) -> Found:
    built = (role.template.get("metadata") or {}).get("annotations") or {}
    for key, value in access.annotations:
        if built.get(key) != value:
            how = "another" if key in built else "no"
            message = f"{role.title} would have {how} annotation {key}, which fabric '{access.name}' states"
            at: FieldPath = (*role.template_at, "metadata", "annotations", key)
            yield _report_fabric_difference(laid, at, message, access, "annotations")


def _check_promised_fabric_volumes(laid: ExpandedRun, role: ExpandedRole, access: FabricAccess) -> Found:
    """Check that each hostPath volume of the fabric has the path that the fabric states."""
    built = index_role_volumes(role)
    for one in access.volumes:
        found = (built.get(one.name) or {}).get("hostPath") or {}
        if one.path and found.get("path", one.path) != one.path:
            message = f"{role.title} would have {found['path']} of the node; the fabric has {one.path}"
            index = [volume["name"] for volume in role.spec["volumes"]].index(one.name)
            yield _report_fabric_difference(
                laid, (*role.pod, "volumes", index, "hostPath", "path"), message, access, "hostPaths"
            )


def _check_promised_fabric_mounts(
    laid: ExpandedRun,
    role: ExpandedRole,
    at: FieldPath,
    box: Body,
    planned: Sequence[FabricMount],
    access: FabricAccess,
) -> Found:
    """Check that a container has the planned mounts, and no unplanned writable folder of the node."""
    built = {normalise_mount_path(one): one for one in box.get("volumeMounts") or ()}
    title = f"container '{box['name']}' of {role.title}"
    for one in planned:
        found = built.get(one.path.rstrip("/"))
        if found is None or found["name"] != one.volume:
            message = f"{title} would not see at {one.path} what fabric '{access.name}' puts there"
            yield _report_fabric_difference(laid, (*at, "volumeMounts"), message, access, "hostPaths")
    closed = {(one.volume, one.path.rstrip("/")) for one in planned if not one.read_only}
    folders = {one.name for one in access.volumes if one.path}
    for index, one in enumerate(box.get("volumeMounts") or ()):
        if (
            one["name"] in folders
            and not one.get("readOnly")
            and (one["name"], normalise_mount_path(one)) not in closed
        ):
            folder = normalise_mount_path(one)
            message = f"{title} could write to a folder of the node at {folder}; the fabric only reads there"
            yield _report_fabric_difference(
                laid, (*at, "volumeMounts", index), message, access, "readOnly: false"
            )


def _check_promised_fabric_of_program(laid: ExpandedRun, role: ExpandedRole, access: FabricAccess) -> Found:
    box = role.container or {}
    context = box.get("securityContext") or {}
    yield from _check_promised_fabric_mounts(laid, role, role.box, box, access.mounts, access)
    if access.is_privileged and not context.get("privileged"):
        message = (
            f"{role.title} would not be privileged: devices of fabric '{access.name}' could not be opened"
        )
        yield _report_fabric_difference(
            laid, (*role.box, "securityContext", "privileged"), message, access, "privileged"
        )
    added = (context.get("capabilities") or {}).get("add") or ()
    missing = [name for name in access.capabilities if name not in added]
    if missing and not context.get("privileged"):
        message = f"{role.title} would not get {', '.join(missing)}, which fabric '{access.name}' gives them"
        yield _report_fabric_difference(
            laid, (*role.box, "securityContext", "capabilities"), message, access, "capabilities"
        )


def _check_promised_fabric_containers(laid: ExpandedRun, role: ExpandedRole, access: FabricAccess) -> Found:
    built = {one["name"]: (index, one) for index, one in enumerate(role.spec.get("initContainers") or ())}
    for one in access.containers:
        if one.name not in built:
            message = f"{role.title} would lack container '{one.name}' of fabric '{access.name}'"
            yield _report_fabric_difference(laid, (*role.pod, "initContainers"), message, access, "it")
            continue
        index, box = built[one.name]
        at: FieldPath = (*role.pod, "initContainers", index)
        yield from _check_promised_fabric_mounts(laid, role, at, box, one.mounts, access)
        yield from _check_promised_fabric_side_container(laid, at, box, one, access)


def _check_promised_fabric_side_container(
    laid: ExpandedRun, at: FieldPath, box: Body, one: FabricSideContainer, access: FabricAccess
) -> Found:
    title = f"container '{one.name}' of fabric '{access.name}'"
    if box.get("image") != one.image:
        yield _report_fabric_difference(
            laid,
            (*at, "image"),
            f"{title} would run image {box.get('image')}; the plan has {one.image}",
            access,
            "image",
        )
    if one.command and list(box.get("command") or ()) != list(one.command):
        yield _report_fabric_difference(
            laid, (*at, "command"), f"{title} would start another command", access, "command"
        )
    if (box.get("restartPolicy") == "Always") != one.is_sidecar:
        how = "have to end before the program starts" if one.is_sidecar else "never let the program start"
        yield _report_fabric_difference(
            laid, (*at, "restartPolicy"), f"{title} would {how}", access, "sidecars or setup"
        )
    given = {variable["name"]: variable.get("value") for variable in box.get("env") or ()}
    for name, value in one.env:
        if given.get(name) != value:
            yield _report_fabric_difference(
                laid, (*at, "env"), f"{title} would not get {name}={value}", access, "env"
            )
    context = box.get("securityContext") or {}
    added = (context.get("capabilities") or {}).get("add") or ()
    missing = [name for name in one.capabilities if name not in added]
    if one.is_root and context.get("runAsUser") != 0:
        yield _report_fabric_difference(
            laid, (*at, "securityContext", "runAsUser"), f"{title} would not run as root", access, "root"
        )
    if missing and not context.get("privileged"):
        path: FieldPath = (*at, "securityContext", "capabilities")
        yield _report_fabric_difference(
            laid, path, f"{title} would not get {', '.join(missing)}", access, "capabilities"
        )
