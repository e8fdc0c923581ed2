"""PersistentVolumes for storage that exists, each with the claim that it is kept for.

A volume is of the cluster, so only the platform states one, and its name begins with the team's namespace.
claimRef and volumeName name each other: no other claim gets it. No commit removes either object, and a volume
that somebody removes leaves its data alone: `Retain`, and no driver deletes what it has not made.
"""

from __future__ import annotations

from gangplan.generators.claims import WAVE
from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model import syncing
from gangplan.model.site import Tenant
from gangplan.objects import Body


def persistent_volumes(tenant: Tenant) -> list[Body]:
    """A volume and its claim for each entry; the volume first, for a claim that finds none waits."""
    values = {
        "tenant": tenant,
        "no_class": "",  # or the cluster's default class would make another volume
        "labels": tenant_labels(tenant),
        "volume_annotations": sorted({**dict(tenant_annotations(tenant, WAVE - 1)), **syncing.KEPT}.items()),
        "claim_annotations": sorted({**dict(tenant_annotations(tenant, WAVE)), **syncing.KEPT}.items()),
    }
    return [
        body
        for volume in tenant.volumes
        for body in objects_of("tenant/volume.yaml.j2", {**values, "volume": volume})
    ]
