"""ExternalSecrets: where the operator finds a team's secrets. Names and keys only; values never pass Git.

Every default that the API server would persist is written out, so that no GitOps engine sees a difference
(external-secrets v1 types: creationPolicy, deletionPolicy, engineVersion, mergePolicy and the strategies).
"""

from __future__ import annotations

from gangplan.generators.common import objects_of, tenant_annotations, tenant_labels
from gangplan.model.site import Store, Tenant
from gangplan.objects import Body

# The last wave of tenants, which Argo CD does not wait for: a vault that cannot be reached must not hold up
# the queue.
WAVE = -5


def secrets(tenant: Tenant) -> list[Body]:
    """One per secret, where the cluster has a store."""
    store = tenant.store
    if store is None:
        return []
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "annotations": tenant_annotations(tenant, WAVE),
        "store": store,
        "refresh": _go_duration(store.refresh_s),
        "has_null_bytes": _has_null_byte_policy(store),
    }
    return [
        body
        for secret in store.secrets
        for body in objects_of("tenant/externalsecret.yaml.j2", {**values, "secret": secret})
    ]


def _has_null_byte_policy(store: Store) -> bool:
    """Since external-secrets 2.3.0 the CRD persists `nullBytePolicy: Ignore` (issue 6398); before, the
    field is unknown and server-side apply refuses it: left out where the version is not stated."""
    return store.version is not None and store.version.at_least(2, 3)


def _go_duration(seconds: int) -> str:
    """As Go writes durations (`1h0m0s`), which is how the operator writes them back."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
