"""Annotations of the service account by which clouds know its pods."""

from __future__ import annotations

from functools import partial

from gangplan.trace.cause import Cause, Path
from gangplan.trace.place import StandingPlace


def _identity(place: StandingPlace, stars: Path, cloud: str, field: str) -> list[Cause]:
    here = place.cluster("teams", place.word("team"), "identity", cloud, field)
    own, answers = place.team("identity", cloud, field), place.cluster("workloadIdentity", "provider").aside()
    return [here, own.aside(), answers] if here.is_written else [own, here.aside(), answers]


ACCOUNT = tuple(
    (f"metadata annotations {key}", partial(_identity, cloud=cloud, field=field))
    for key, cloud, field in (
        ("eks.amazonaws.com/role-arn", "aws", "role"),
        ("iam.gke.io/gcp-service-account", "gcp", "serviceAccount"),
        ("azure.workload.identity/client-id", "azure", "clientId"),
        ("azure.workload.identity/tenant-id", "azure", "tenantId"),
    )
)
