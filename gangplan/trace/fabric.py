"""Causes of what a pod gets from the fabric of its pool: fields of the cluster's file or of a preset."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.fabric import NO_ACCESS, FabricAccess
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext
from gangplan.trace.files import build_own_cause, find_value_at

FABRIC_CAUSE_PREFIX = "fabric-"


def find_fabric_access(context: TraceContext, role: str) -> FabricAccess:
    """Return what pods of a role get from the fabric; nothing if their pool has none."""
    return context.job.access_of(role) or NO_ACCESS


def trace_fabric_causes(context: TraceContext, *path: str | int) -> list[Cause]:
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
    if (
        find_value_at(whole_preset(str(context.value("cluster", "fabrics", name, "preset"))), path)
        is not None
    ):
        return [preset, written.aside(), *around]
    return [
        build_own_cause("a fabric gives pods no more than it states"),
        written.aside(),
        preset.aside(),
        *around,
    ]


def whole_preset(name: str) -> Any:
    """Return the values of a preset as a file would contain them; None if no preset has this name."""
    from gangplan.resolve.fabric_presets import FABRIC_PRESETS  # few clusters have one

    return dict(FABRIC_PRESETS[name].values) if name in FABRIC_PRESETS else None


def network(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of hostNetwork and dnsPolicy."""
    return trace_fabric_causes(context, "hostNetwork")


def trace_capability_causes(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a capability that workers get."""
    return [
        *trace_fabric_causes(context, "capabilities"),
        *mark_indirect(trace_fabric_causes(context, "memlock")),
    ]


def trace_privilege_causes(context: TraceContext) -> list[Cause]:
    """Return the causes of the workers' privileged or allowPrivilegeEscalation."""
    return trace_fabric_causes(context, "privileged")


def trace_fabric_annotation_causes(context: TraceContext, key: str) -> list[Cause]:
    """Return the causes of an annotation of the fabric."""
    return trace_fabric_causes(context, "annotations", key)


def variable(context: TraceContext, name: str) -> list[Cause]:
    """Return the causes of a variable of the fabric."""
    return trace_fabric_causes(context, "env", name)


def trace_fabric_volume_causes(context: TraceContext, volume: str, field: str) -> list[Cause]:
    """Return the causes of a volume of the fabric, or of a worker's mount of it, by its name in the pod."""
    name = volume.removeprefix(FABRIC_CAUSE_PREFIX)
    if any(one.name == volume and not one.path for one in context.job.fabric.access.volumes):
        found = trace_fabric_causes(context, "shared", name)
        return found if field == "mountPath" else mark_indirect(found)
    inner = {"mountPath": "mount", "readOnly": "readOnly", "path": "path", "type": "type"}.get(field)
    return (
        trace_fabric_causes(context, "hostPaths", name, inner)
        if inner
        else mark_indirect(trace_fabric_causes(context, "hostPaths", name))
    )


def trace_fabric_container_causes(context: TraceContext, role: str, stars: FieldPath) -> list[Cause]:
    """Return the causes of a field of one of the fabric's containers, selected by the path."""
    index, rest = int(stars[0]), stars[1:]
    containers = find_fabric_access(context, role).containers
    if index >= len(containers):
        return trace_fabric_causes(context)
    one = containers[index]
    base = ("sidecars" if one.is_sidecar else "setup", one.name)
    if rest[:1] in (("image",), ("command",)):
        mirrors = [context.cluster("mirrors").aside()] if rest[0] == "image" else []
        return [*trace_fabric_causes(context, *base, str(rest[0])), *mirrors]
    if rest[:1] == ("env",):
        found = trace_fabric_causes(context, *base, "env", one.env[int(rest[1])][0])
        return found if rest[-1] == "value" else mark_indirect(found)
    if rest[:1] == ("volumeMounts",):
        return _trace_fabric_mount_causes(context, base, one.mounts[int(rest[1])].volume, str(rest[-1]))
    if rest[:1] == ("resources",):
        return trace_fabric_causes(context, *base, str(rest[-1]))
    if rest[:1] == ("securityContext",):
        field = {
            "capabilities": "capabilities",
            "privileged": "privileged",
            "allowPrivilegeEscalation": "privileged",
        }
        return trace_fabric_causes(context, *base, field.get(str(rest[1]), "root"))
    return mark_indirect(trace_fabric_causes(context, *base))


def _trace_fabric_mount_causes(
    context: TraceContext, base: FieldPath, volume: str, field: str
) -> list[Cause]:
    name = volume.removeprefix(FABRIC_CAUSE_PREFIX)
    if field == "readOnly":
        mounted = mark_indirect(trace_fabric_causes(context, *base, "mounts", name))
        return [*trace_fabric_causes(context, "hostPaths", name, "readOnly"), *mounted]
    found = trace_fabric_causes(context, *base, "mounts", name)
    return found if field == "mountPath" else mark_indirect(found)
