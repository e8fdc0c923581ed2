"""PersistentVolumeClaims that a team asks gangplan to make. No commit ever removes one: it holds data."""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model import syncing
from gangplan.model.site import Tenant
from gangplan.objects import Body

# The last wave of tenants, which Argo CD does not wait for: a claim may be pending until a run uses it, and
# runs need the queue of that wave (gitops-engine of Argo CD 3.5.1, health_pvc.go).
WAVE = -5


def claims(tenant: Tenant) -> list[Body]:
    """One claim per `size` in the team's file."""
    annotations = dict(tenant_annotations(tenant, WAVE))
    annotations |= syncing.KEPT
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "annotations": sorted(annotations.items()),
    }
    return [
        body
        for claim in tenant.claims
        for body in objects_of("tenant/claim.yaml.j2", {**values, "claim": claim})
    ]
