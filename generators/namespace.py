"""Namespace of a team, with restricted pod security enforced at the cluster's own version."""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import Tenant
from gangplan.objects import Body

WAVE = -30


def namespace(tenant: Tenant) -> list[Body]:
    """The namespace; removing it from Git must be confirmed by a person."""
    annotations = dict(
        tenant_annotations(tenant, WAVE, contact=tenant.contact, description=tenant.description)
    )
    annotations["argocd.argoproj.io/sync-options"] = "Prune=confirm,Delete=confirm"
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "namespace_annotations": sorted(annotations.items()),
    }
    return objects_of("tenant/namespace.yaml.j2", values)
