"""The objects of a team on a cluster: namespace, access, limits, storage, secrets and queues.

All defaults that the API server or an operator would fill in are written out, so that no engine sees a
difference.
"""

from __future__ import annotations

import hashlib
from typing import Any

from gangplan.generators.common import (
    KUEUE_API,
    LABEL_PREFIX,
    LabelPairs,
    generate_regime_labels,
    generate_tenant_annotations,
    generate_tenant_labels,
    render_to_objects,
)
from gangplan.model import syncing
from gangplan.model.duration import format_duration
from gangplan.model.site import ClaimToMake, DebugGrant, ExternalSecretStore, Tenant, VolumeToMake
from gangplan.objects import Body

# Built into every cluster; a pod with one can evict any other (pkg/apis/scheduling, Kubernetes v1.34).
SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
# Founding requirements, C-16. If only Git writes, all personas are viewers.
ROLE_OF_PERSONA = {
    "viewer": "mpijob-viewer",
    "data-scientist": "mpijob-editor",
    "mlops": "mpijob-mlops",
    "admin": "mpijob-admin",
}
DEBUGGER_ROLE = "mpijob-debugger"


def _generate_tenant_values(tenant: Tenant, kind: str, **more: Any) -> dict[str, Any]:
    own = {"labels": generate_tenant_labels(tenant), "annotations": generate_tenant_annotations(tenant, kind)}
    return {"tenant": tenant, **own, **more}


def generate_tenant_namespace(tenant: Tenant) -> list[Body]:
    """Return the namespace, with Pod Security restricted unless the cluster's file says otherwise.

    Pod Security is pinned to the cluster's version. A person must confirm the removal of a namespace from
    Git.
    """
    more = {"contact": tenant.contact, "description": tenant.description}
    annotations = dict(generate_tenant_annotations(tenant, "Namespace", **more))
    if tenant.pod_security.reason:
        annotations[f"{LABEL_PREFIX}pod-security-reason"] = tenant.pod_security.reason
        annotations[f"{LABEL_PREFIX}pod-security-until"] = tenant.pod_security.until
    annotations |= syncing.build_namespace_annotations()
    if tenant.platform.openshift is not None:
        annotations["openshift.io/display-name"] = tenant.team
        if tenant.description:
            annotations["openshift.io/description"] = tenant.description
    values = {
        "tenant": tenant,
        "labels": _generate_namespace_labels(tenant),
        "namespace_annotations": sorted(annotations.items()),
    }
    return render_to_objects("tenant/namespace.yaml.j2", values)


def _generate_namespace_labels(tenant: Tenant) -> LabelPairs:
    """Return the labels of the namespace: those of a tenant, and on OpenShift two more.

    One makes the namespace a project of the AI dashboard. OpenShift's build of Kueue needs the other, since
    it ignores namespaces without it (Red Hat build of Kueue, "Labeling namespaces").
    """
    labels = dict(generate_tenant_labels(tenant)) | generate_regime_labels(tenant.regimes)
    if tenant.platform.openshift is not None:
        labels["opendatahub.io/dashboard"] = "true"
        if tenant.platform.kueue is not None:
            labels["kueue.openshift.io/managed"] = "true"
    return tuple(sorted(labels.items()))


def generate_resource_quota_and_limit_range(tenant: Tenant) -> list[Body]:
    """Return the quota, the ban on priorities that the team may not use, and the limits of containers.

    Kueue decides when a run may start; the quota stops pods that bypass Kueue. The LimitRange names CPU and
    memory only: an upper bound without a default becomes the default of every container
    (SetDefaults_LimitRangeItem of Kubernetes), so a bound on GPUs would give GPUs to each container.
    """
    values = _generate_tenant_values(
        tenant,
        "ResourceQuota",
        hard=sorted(tenant.hard),
        priorities=[*SYSTEM_PRIORITIES, *(f"training-{name}" for name in tenant.forbidden_priorities)],
        bounds=tenant.bounds,
    )
    bodies = []
    if tenant.hard:
        bodies += render_to_objects("tenant/resourcequota.yaml.j2", values)
    if tenant.hard or tenant.forbidden_priorities:
        bodies += render_to_objects("tenant/priorityquota.yaml.j2", values)
    if tenant.bounds:
        bodies += render_to_objects("tenant/limitrange.yaml.j2", values)
    return bodies


def generate_tenant_network_policies(tenant: Tenant) -> list[Body]:
    """Return the NetworkPolicies `default-deny`, and `allow-dns` to the cluster's DNS pods only.

    No more than that, on purpose. Policies add up: what one of them opens for all pods of the namespace is
    open for a run in the isolated posture too. What a run needs beyond DNS is opened for that run's pods
    alone (network.py).
    """
    return render_to_objects(
        "tenant/isolation.yaml.j2", _generate_tenant_values(tenant, "NetworkPolicy", dns=tenant.platform.dns)
    )


def generate_training_service_account(tenant: Tenant) -> list[Body]:
    """Return the account of training pods: no token, and no permissions except those of its cloud identity.

    On OpenShift it also has a binding to the constraint nonroot-v2.
    """
    cloud = tenant.identity.annotations if tenant.identity else ()
    annotations = generate_tenant_annotations(tenant, "ServiceAccount")
    values = _generate_tenant_values(
        tenant, "ServiceAccount", account_annotations=tuple(sorted((*annotations, *cloud)))
    )
    bodies = render_to_objects("tenant/serviceaccount.yaml.j2", values)
    if tenant.platform.openshift is not None:
        bodies += render_to_objects("tenant/scc.yaml.j2", values)
    return bodies


def generate_tenant_role_bindings(tenant: Tenant) -> list[Body]:
    """Return the RoleBindings: one per role with all groups of its personas, and one per debug grant.

    A binding is named after its role, because the role of a binding can never change: when a cluster becomes
    gitopsOnly, the groups move to another binding instead of one binding moving to another role.
    """
    groups: dict[str, list[str]] = {}
    for member in tenant.members:
        role = "mpijob-viewer" if tenant.is_gitops_only else ROLE_OF_PERSONA[member.persona]
        groups.setdefault(role, []).append(member.group)
    bodies = []
    for role in sorted(groups):
        bodies += _render_tenant_role_binding(tenant, role, role, sorted(set(groups[role])))
    for grant in tenant.debuggers:
        more = {"reason": grant.reason, "until": grant.until}
        bodies += _render_tenant_role_binding(
            tenant, format_grant_name(grant), DEBUGGER_ROLE, [grant.group], **more
        )
    return bodies


def _render_tenant_role_binding(
    tenant: Tenant, name: str, role: str, groups: list[str], **annotations: str
) -> list[Body]:
    values = _generate_tenant_values(tenant, "RoleBinding", name=name, role=role, groups=groups)
    values["annotations"] = generate_tenant_annotations(tenant, "RoleBinding", **annotations)
    return render_to_objects("tenant/rolebinding.yaml.j2", values)


def format_grant_name(grant: DebugGrant) -> str:
    """Return a name for each grant: a group may have several, and a name invalid in Kubernetes."""
    digest = hashlib.sha256(f"{grant.group}\n{grant.reason}".encode()).hexdigest()[:8]
    return f"{DEBUGGER_ROLE}-{grant.until}-{digest}"


def generate_external_secrets(tenant: Tenant) -> list[Body]:
    """Return the ExternalSecrets, if the cluster has a store: names and keys only; values never pass Git.

    Their defaults are those of external-secrets v1 (creationPolicy, deletionPolicy, engineVersion,
    mergePolicy and the strategies).
    """
    store = tenant.store
    if store is None:
        return []
    values = _generate_tenant_values(
        tenant,
        "ExternalSecret",
        store=store,
        refresh=_format_external_secret_go_duration(store.refresh_s),
        has_null_bytes=_has_external_secret_null_byte_policy(store),
    )
    return [
        body
        for secret in store.secrets
        for body in render_to_objects("tenant/externalsecret.yaml.j2", {**values, "secret": secret})
    ]


def _has_external_secret_null_byte_policy(store: ExternalSecretStore) -> bool:
    """Return whether the CRD persists `nullBytePolicy: Ignore`: since external-secrets 2.3.0 (issue 6398).

    Earlier versions do not know the field and server-side apply refuses it, so it is left out if the version
    is not stated.
    """
    return store.version is not None and store.version.at_least(2, 3)


def _format_external_secret_go_duration(seconds: int) -> str:
    """Format seconds as Go does (`1h0m0s`), which is how the operator writes them back."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def generate_persistent_volumes(tenant: Tenant) -> list[Body]:
    """Return a PersistentVolume and its claim for each existing volume. No commit removes either.

    A volume is cluster-scoped, so only the platform defines one, and its name begins with the team's
    namespace. claimRef and volumeName refer to each other, so no other claim gets it. Deleting a volume keeps
    its data: the policy is `Retain`, and no driver deletes what it did not create.
    """
    values = {
        "tenant": tenant,
        "no_class": "",  # else the cluster's default class would create another volume
        "volume_annotations": _generate_storage_annotations(tenant, "PersistentVolume"),
        "claim_annotations": _generate_storage_annotations(tenant, "PersistentVolumeClaim"),
    }
    return [
        body
        for volume in tenant.volumes
        for body in render_to_objects(
            "tenant/volume.yaml.j2",
            {**values, "volume": volume, "labels": _generate_claim_labels(tenant, volume)},
        )
    ]


def generate_persistent_volume_claims(tenant: Tenant) -> list[Body]:
    """Return a claim per `size` in the team's file. No commit ever removes a claim, because it has data."""
    values = {"tenant": tenant, "annotations": _generate_storage_annotations(tenant, "PersistentVolumeClaim")}
    return [
        body
        for claim in tenant.claims
        for body in render_to_objects(
            "tenant/claim.yaml.j2",
            {**values, "claim": claim, "labels": _generate_claim_labels(tenant, claim)},
        )
    ]


def _generate_claim_labels(tenant: Tenant, claim: ClaimToMake | VolumeToMake) -> list[tuple[str, str]]:
    """Return the labels of a claim, by which a program that deletes data finds how long it is kept."""
    labels = dict(generate_tenant_labels(tenant))
    if claim.retention_s is not None:
        labels["gangplan.dev/retention"] = format_duration(claim.retention_s)
    return sorted(labels.items())


def _generate_storage_annotations(tenant: Tenant, kind: str) -> list[tuple[str, str]]:
    return sorted(
        {**dict(generate_tenant_annotations(tenant, kind)), **syncing.build_data_annotations()}.items()
    )


def generate_local_queues(tenant: Tenant) -> list[Body]:
    """Return the LocalQueues from the team's namespace to its ClusterQueues, if the cluster has Kueue."""
    values = _generate_tenant_values(tenant, "LocalQueue", kueue_api=KUEUE_API)
    return [
        body
        for queue in tenant.queues
        for body in render_to_objects("tenant/localqueue.yaml.j2", {**values, "queue": queue})
    ]
