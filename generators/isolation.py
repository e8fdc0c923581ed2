"""NetworkPolicies of a namespace: everything closed, names may be looked up.

No more than that, on purpose. Policies add up: whatever one of them opens for all pods of the namespace
stays open for a run in the isolated posture too. What a run needs beyond DNS is opened for that run's pods
alone (network.py).
"""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import Tenant
from gangplan.objects import Body

WAVE = -20


def isolation(tenant: Tenant) -> list[Body]:
    """`default-deny`, and `allow-dns` to the cluster's DNS pods only."""
    values = {
        "tenant": tenant,
        "dns": tenant.platform.dns,
        "labels": tenant_labels(tenant),
        "annotations": tenant_annotations(tenant, WAVE),
    }
    return objects_of("tenant/isolation.yaml.j2", values)
