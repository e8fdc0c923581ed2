"""ResourceQuota and LimitRange: what a team's namespace may hold at once, and what one container may ask for.

Kueue decides when a run may start; the quota stops what goes around it. The LimitRange names CPU and memory
only: an upper bound without a default becomes the default of every container (SetDefaults_LimitRangeItem of
Kubernetes), so a bound on GPUs would hand GPUs to each.
"""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import Tenant
from gangplan.objects import Body

WAVE = -20
# Built into every cluster; a pod with one of them evicts anybody's (pkg/apis/scheduling, Kubernetes v1.34).
SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")


def quota(tenant: Tenant) -> list[Body]:
    """The quota, the ban on priorities that the team may not use, and the bounds of containers."""
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "annotations": tenant_annotations(tenant, WAVE),
        "hard": sorted(tenant.hard),
        "priorities": [*SYSTEM_PRIORITIES, *(f"training-{name}" for name in tenant.forbidden_priorities)],
        "bounds": tenant.bounds,
    }
    bodies = []
    if tenant.hard:
        bodies += objects_of("tenant/resourcequota.yaml.j2", values)
    if tenant.hard or tenant.forbidden_priorities:
        bodies += objects_of("tenant/priorityquota.yaml.j2", values)
    if tenant.bounds:
        bodies += objects_of("tenant/limitrange.yaml.j2", values)
    return bodies
