"""The account that training pods run as: no token and no rights but those of its cloud identity.

On OpenShift it has the constraint nonroot-v2.
"""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import Tenant
from gangplan.objects import Body

WAVE = -20


def service_account(tenant: Tenant) -> list[Body]:
    """The account, and its binding on OpenShift."""
    annotations = tenant_annotations(tenant, WAVE)
    cloud = tenant.identity.annotations if tenant.identity else ()
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "annotations": annotations,
        "account_annotations": tuple(sorted((*annotations, *cloud))),
    }
    bodies = objects_of("tenant/serviceaccount.yaml.j2", values)
    if tenant.platform.openshift is not None:
        bodies += objects_of("tenant/scc.yaml.j2", values)
    return bodies
