"""Causes of what a pod gets from the fabric of its pool: fields of the cluster's file or of a preset."""

from __future__ import annotations

from typing import Any

from gangplan.model.fabric import NO_ACCESS, FabricAccess
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext
from gangplan.trace.files import at, own

PREFIX = "fabric-"


def access(context: TraceContext, role: str) -> FabricAccess:
    """Return what pods of a role get from the fabric; nothing if their pool has none."""
    return context.job.access_of(role) or NO_ACCESS


def stated(context: TraceContext, *path: str | int) -> list[Cause]:
    """Return the causes of a field of the fabric: the field itself if written, otherwise the preset, and what
    decides whether a run gets it."""
    name = context.job.fabric.access.name
    pool = context.job.worker_pool.name
    around = [
        context.cluster("nodePools", pool, "fabric").aside(),
        context.spec("network", "rdma").aside(),
        context.spec("network", "transport").aside(),
        context.spec("launcher", "runsRanks").aside(),
        *context.pool(pool),
    ]
    if not name:
        return around
    written = context.cluster("fabrics", name, *path)
    preset = context.cluster("fabrics", name, "preset")
    if written.is_written:
        return [written, preset.aside(), *around]
    if at(whole_preset(str(context.value("cluster", "fabrics", name, "preset"))), path) is not None:
        return [preset, written.aside(), *around]
    return [own("a fabric gives pods no more than it states"), written.aside(), preset.aside(), *around]


def whole_preset(name: str) -> Any:
    """Return the values of a preset as a file would contain them; None if no preset has this name."""
    from gangplan.resolve.fabric_presets import PRESETS  # few clusters have one

    return dict(PRESETS[name].values) if name in PRESETS else None


def network(context: TraceContext, stars: Path) -> list[Cause]:
    """Return the causes of hostNetwork and dnsPolicy."""
    return stated(context, "hostNetwork")


def capability(context: TraceContext, stars: Path) -> list[Cause]:
    """Return the causes of a capability that workers get."""
    return [*stated(context, "capabilities"), *asides(stated(context, "memlock"))]


def privilege(context: TraceContext) -> list[Cause]:
    """Return the causes of the workers' privileged or allowPrivilegeEscalation."""
    return stated(context, "privileged")


def annotation(context: TraceContext, key: str) -> list[Cause]:
    """Return the causes of an annotation of the fabric."""
    return stated(context, "annotations", key)


def variable(context: TraceContext, name: str) -> list[Cause]:
    """Return the causes of a variable of the fabric."""
    return stated(context, "env", name)


def volume(context: TraceContext, volume: str, field: str) -> list[Cause]:
    """Return the causes of a volume of the fabric, or of a worker's mount of it, by its name in the pod."""
    name = volume.removeprefix(PREFIX)
    if any(one.name == volume and not one.path for one in context.job.fabric.access.volumes):
        found = stated(context, "shared", name)
        return found if field == "mountPath" else asides(found)
    inner = {"mountPath": "mount", "readOnly": "readOnly", "path": "path", "type": "type"}.get(field)
    return stated(context, "hostPaths", name, inner) if inner else asides(stated(context, "hostPaths", name))


def container(context: TraceContext, role: str, stars: Path) -> list[Cause]:
    """Return the causes of a field of one of the fabric's containers, selected by the path."""
    index, rest = int(stars[0]), stars[1:]
    containers = access(context, role).containers
    if index >= len(containers):
        return stated(context)
    one = containers[index]
    base = ("sidecars" if one.is_sidecar else "setup", one.name)
    if rest[:1] in (("image",), ("command",)):
        mirrors = [context.cluster("mirrors").aside()] if rest[0] == "image" else []
        return [*stated(context, *base, str(rest[0])), *mirrors]
    if rest[:1] == ("env",):
        found = stated(context, *base, "env", one.env[int(rest[1])][0])
        return found if rest[-1] == "value" else asides(found)
    if rest[:1] == ("volumeMounts",):
        return _mounted(context, base, one.mounts[int(rest[1])].volume, str(rest[-1]))
    if rest[:1] == ("resources",):
        return stated(context, *base, str(rest[-1]))
    if rest[:1] == ("securityContext",):
        field = {
            "capabilities": "capabilities",
            "privileged": "privileged",
            "allowPrivilegeEscalation": "privileged",
        }
        return stated(context, *base, field.get(str(rest[1]), "root"))
    return asides(stated(context, *base))


def _mounted(context: TraceContext, base: Path, volume: str, field: str) -> list[Cause]:
    name = volume.removeprefix(PREFIX)
    if field == "readOnly":
        mounted = asides(stated(context, *base, "mounts", name))
        return [*stated(context, "hostPaths", name, "readOnly"), *mounted]
    found = stated(context, *base, "mounts", name)
    return found if field == "mountPath" else asides(found)
