"""Annotations of the service account by which clouds know its pods."""

from __future__ import annotations

from gangplan.trace.bindings import tenant_of
from gangplan.trace.cause import Cause, Path
from gangplan.trace.place import StandingPlace

_OF_CLOUD = {
    "eks.amazonaws.com/role-arn": ("aws", "role"),
    "iam.gke.io/gcp-service-account": ("gcp", "serviceAccount"),
    "azure.workload.identity/client-id": ("azure", "clientId"),
    "azure.workload.identity/tenant-id": ("azure", "tenantId"),
}


def account_identity(place: StandingPlace, stars: Path) -> list[Cause]:
    """An annotation of the service account that says whom its pods are in a cloud; empty for any other."""
    field = _OF_CLOUD.get(str(stars[-1]))
    if field is None:
        return []
    here = place.cluster("teams", tenant_of(place).team, "identity", *field)
    own, answers = place.team("identity", *field), place.cluster("workloadIdentity", "provider").aside()
    return [here, own.aside(), answers] if here.is_written else [own, here.aside(), answers]
