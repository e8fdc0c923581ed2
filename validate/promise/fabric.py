"""Checks that pods get everything that the fabric of their pool gives, and no more access to the node.

Pod Security judges what a namespace refuses. These checks find patches that remove or redirect parts of the
fabric in a namespace that admits the node's folders and network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.model.fabric import FabricAccess, FabricContainer, FabricMount
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.jobset import LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.mounts import place, volumes_of
from gangplan.validate.promise.roles import Laid, LaidRole
from gangplan.validate.promise.words import broken

Found = Iterator[tuple[int, Problem]]


def given(laid: Laid) -> Found:
    """Check that each role gets what its fabric gives."""
    for role in laid.present:
        access = laid.unit.job.access_of(LAUNCHER if role.name == LAUNCHER else "worker")
        if access.name and role.container is not None:
            yield from _network(laid, role, access)
            yield from _annotations(laid, role, access)
            yield from _volumes(laid, role, access)
            yield from _program(laid, role, access)
            yield from _containers(laid, role, access)


def _said(laid: Laid, path: Path, message: str, access: FabricAccess, what: str = "") -> tuple[int, Problem]:
    help = f"Write {what or 'it'} at fabrics.{access.name} in the cluster's file."
    return laid.runtime, broken(path, message, help, "rdma")


def _network(laid: Laid, role: LaidRole, access: FabricAccess) -> Found:
    if access.host_network and not role.spec.get("hostNetwork"):
        message = (
            f"{role.title} would not be in their node's network, where fabric '{access.name}' has its cards"
        )
        yield _said(laid, (*role.pod, "hostNetwork"), message, access, "hostNetwork")


def _annotations(laid: Laid, role: LaidRole, access: FabricAccess) -> Found:
    built = (role.template.get("metadata") or {}).get("annotations") or {}
    for key, value in access.annotations:
        if built.get(key) != value:
            how = "another" if key in built else "no"
            message = f"{role.title} would have {how} annotation {key}, which fabric '{access.name}' states"
            at: Path = (*role.template_at, "metadata", "annotations", key)
            yield _said(laid, at, message, access, "annotations")


def _volumes(laid: Laid, role: LaidRole, access: FabricAccess) -> Found:
    """Check that each hostPath volume of the fabric has the path that the fabric states."""
    built = volumes_of(role)
    for one in access.volumes:
        found = (built.get(one.name) or {}).get("hostPath") or {}
        if one.path and found.get("path", one.path) != one.path:
            message = f"{role.title} would have {found['path']} of the node; the fabric has {one.path}"
            index = [volume["name"] for volume in role.spec["volumes"]].index(one.name)
            yield _said(laid, (*role.pod, "volumes", index, "hostPath", "path"), message, access, "hostPaths")


def _mounts(
    laid: Laid, role: LaidRole, at: Path, box: Body, planned: Sequence[FabricMount], access: FabricAccess
) -> Found:
    """Check that a container has the planned mounts, and no unplanned writable folder of the node."""
    built = {place(one): one for one in box.get("volumeMounts") or ()}
    title = f"container '{box['name']}' of {role.title}"
    for one in planned:
        found = built.get(one.path.rstrip("/"))
        if found is None or found["name"] != one.volume:
            message = f"{title} would not see at {one.path} what fabric '{access.name}' puts there"
            yield _said(laid, (*at, "volumeMounts"), message, access, "hostPaths")
    closed = {(one.volume, one.path.rstrip("/")) for one in planned if not one.read_only}
    folders = {one.name for one in access.volumes if one.path}
    for index, one in enumerate(box.get("volumeMounts") or ()):
        if one["name"] in folders and not one.get("readOnly") and (one["name"], place(one)) not in closed:
            message = (
                f"{title} could write to a folder of the node at {place(one)}; the fabric only reads there"
            )
            yield _said(laid, (*at, "volumeMounts", index), message, access, "readOnly: false")


def _program(laid: Laid, role: LaidRole, access: FabricAccess) -> Found:
    box = role.container or {}
    context = box.get("securityContext") or {}
    yield from _mounts(laid, role, role.box, box, access.mounts, access)
    if access.is_privileged and not context.get("privileged"):
        message = (
            f"{role.title} would not be privileged: devices of fabric '{access.name}' could not be opened"
        )
        yield _said(laid, (*role.box, "securityContext", "privileged"), message, access, "privileged")
    added = (context.get("capabilities") or {}).get("add") or ()
    missing = [name for name in access.capabilities if name not in added]
    if missing and not context.get("privileged"):
        message = f"{role.title} would not get {', '.join(missing)}, which fabric '{access.name}' gives them"
        yield _said(laid, (*role.box, "securityContext", "capabilities"), message, access, "capabilities")


def _containers(laid: Laid, role: LaidRole, access: FabricAccess) -> Found:
    built = {one["name"]: (index, one) for index, one in enumerate(role.spec.get("initContainers") or ())}
    for one in access.containers:
        if one.name not in built:
            message = f"{role.title} would lack container '{one.name}' of fabric '{access.name}'"
            yield _said(laid, (*role.pod, "initContainers"), message, access, "it")
            continue
        index, box = built[one.name]
        at: Path = (*role.pod, "initContainers", index)
        yield from _mounts(laid, role, at, box, one.mounts, access)
        yield from _container(laid, at, box, one, access)


def _container(laid: Laid, at: Path, box: Body, one: FabricContainer, access: FabricAccess) -> Found:
    title = f"container '{one.name}' of fabric '{access.name}'"
    if box.get("image") != one.image:
        yield _said(
            laid,
            (*at, "image"),
            f"{title} would run image {box.get('image')}; the plan has {one.image}",
            access,
            "image",
        )
    if one.command and list(box.get("command") or ()) != list(one.command):
        yield _said(laid, (*at, "command"), f"{title} would start another command", access, "command")
    if (box.get("restartPolicy") == "Always") != one.is_sidecar:
        how = "end before the program starts" if one.is_sidecar else "never end, and the program never start"
        yield _said(laid, (*at, "restartPolicy"), f"{title} would have to {how}", access, "sidecars or setup")
    given = {variable["name"]: variable.get("value") for variable in box.get("env") or ()}
    for name, value in one.env:
        if given.get(name) != value:
            yield _said(laid, (*at, "env"), f"{title} would not get {name}={value}", access, "env")
    context = box.get("securityContext") or {}
    added = (context.get("capabilities") or {}).get("add") or ()
    missing = [name for name in one.capabilities if name not in added]
    if one.is_root and context.get("runAsUser") != 0:
        yield _said(
            laid, (*at, "securityContext", "runAsUser"), f"{title} would not run as root", access, "root"
        )
    if missing and not context.get("privileged"):
        path: Path = (*at, "securityContext", "capabilities")
        yield _said(laid, path, f"{title} would not get {', '.join(missing)}", access, "capabilities")
