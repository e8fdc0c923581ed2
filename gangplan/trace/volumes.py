"""Volumes of the cluster in a pod of a run, and where each field of them comes from."""

from __future__ import annotations

from gangplan.trace.cause import Cause
from gangplan.trace.context import TraceContext
from gangplan.trace.files import own

# Field of the pod -> field of the cluster's `volumes`.
_STATED = {
    "driver": "driver",
    "readOnly": "readOnly",
    "fsType": "fsType",
    "storageClassName": "storageClass",
}


def mounted(context: TraceContext, name: str, field: str) -> list[Cause]:
    """What decides about a volume: the spec says where it is and how large; the cluster, most of the rest.

    `field` is the last part of the field's path, which is a number in a list.
    """
    asked = context.spec("volumes", name)
    is_block = isinstance(context.value("spec", "volumes", name), dict)
    around = [asked.aside()]
    if field == "mountPath":
        return [context.spec("volumes", name, "path")] if is_block else [asked]
    if field == "storage":
        own_size = is_block and context.files.has("spec", "volumes", name, "size")
        return [
            context.spec("volumes", name, "size") if own_size else context.cluster("volumes", name, "size"),
            *around,
        ]
    if field.isdigit():
        return [context.cluster("volumes", name, "accessMode"), *around]
    if field in _STATED:
        return [context.cluster("volumes", name, _STATED[field]), *around]
    if field == "name":
        secret = context.cluster("volumes", name, "secret").aside()
        return [own("a volume is named after its entry in volumes"), secret, *around]
    if context.files.has("spec", "volumes", name, "attributes", field):
        return [context.spec("volumes", name, "attributes", field)]
    return [context.cluster("volumes", name, "attributes", field), *around]
