"""The account that training pods run as: no token, no rights; on OpenShift the nonroot-v2 constraint."""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import Tenant
from gangplan.objects import Body

WAVE = -20


def service_account(tenant: Tenant) -> list[Body]:
    """The account, and its binding on OpenShift."""
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "annotations": tenant_annotations(tenant, WAVE),
    }
    bodies = objects_of("tenant/serviceaccount.yaml.j2", values)
    if tenant.platform.openshift is not None:
        bodies += objects_of("tenant/scc.yaml.j2", values)
    return bodies
