"""The image with kubectl that creates runs in a cluster."""

from __future__ import annotations

from gangplan.resolve.context import JobResolution
from gangplan.resolve.image import resolve_catalog_image


def resolve_client_image(context: JobResolution, field: str) -> tuple[str, int, int]:
    """Return the image as the cluster pulls it, with its user and group, for the spec field that needs it.

    The image is empty if the cluster has none; an unknown name is reported at the cluster.
    """
    offered = context.cluster.spec.schedules
    entry = context.catalog.images.get(offered.client) if offered and offered.client else None
    if offered is None or offered.client is None or entry is None:
        return "", 0, 0
    pulled = resolve_catalog_image(context, offered.client, entry, context.where(field, key=True))
    return pulled or "", entry.user.uid, entry.user.gid
