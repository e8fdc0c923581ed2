"""The image with kubectl that creates runs in a cluster."""

from __future__ import annotations

from gangplan.resolve.context import JobResolution
from gangplan.resolve.image import pull


def client_of(context: JobResolution, field: str) -> tuple[str, int, int]:
    """The image as the cluster pulls it, and its user and group, for a field of the spec that asks for it.

    The image is empty where none can be had; what is wrong with its name is told at the cluster.
    """
    offered = context.cluster.spec.schedules
    entry = context.catalog.images.get(offered.client) if offered and offered.client else None
    if offered is None or offered.client is None or entry is None:
        return "", 0, 0
    pulled = pull(context, offered.client, entry, context.where(field, key=True))
    return pulled or "", entry.user.uid, entry.user.gid
