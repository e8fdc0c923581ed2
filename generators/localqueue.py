"""LocalQueue: the door from a team's namespace to its quota in Kueue."""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import Tenant
from gangplan.objects import Body

WAVE = -5
# v1beta2 is served since Kueue 0.15, the oldest line that gangplan supports.
API_VERSION = "kueue.x-k8s.io/v1beta2"


def local_queue(tenant: Tenant) -> list[Body]:
    """The team's queues, where the cluster has Kueue."""
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "annotations": tenant_annotations(tenant, WAVE),
        "kueue_api": API_VERSION,
    }
    return [
        body
        for queue in tenant.queues
        for body in objects_of("tenant/localqueue.yaml.j2", {**values, "queue": queue})
    ]
