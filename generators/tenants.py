"""What a team has on a cluster: its namespace, who may do what there, its limits, storage, secrets and
queues.

Everything that the API server or an operator would fill in is written out, so that no engine sees a
difference.
"""

from __future__ import annotations

import hashlib
from typing import Any

from gangplan.generators.common import (
    KUEUE_API,
    PREFIX,
    Pairs,
    objects_of,
    regime_labels,
    tenant_annotations,
    tenant_labels,
)
from gangplan.model import syncing
from gangplan.model.site import DebugGrant, Store, Tenant
from gangplan.objects import Body

# Built into every cluster; a pod with one of them evicts anybody's (pkg/apis/scheduling, Kubernetes v1.34).
SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
# Founding requirements, C-16. Where only Git writes, everybody looks.
ROLE_OF = {
    "viewer": "mpijob-viewer",
    "data-scientist": "mpijob-editor",
    "mlops": "mpijob-mlops",
    "admin": "mpijob-admin",
}
DEBUGGER = "mpijob-debugger"


def _values(tenant: Tenant, kind: str, **more: Any) -> dict[str, Any]:
    own = {"labels": tenant_labels(tenant), "annotations": tenant_annotations(tenant, kind)}
    return {"tenant": tenant, **own, **more}


def namespace(tenant: Tenant) -> list[Body]:
    """The namespace: Pod Security restricted unless the cluster's file says otherwise, at its version.
    Removing it from Git must be confirmed by a person."""
    more = {"contact": tenant.contact, "description": tenant.description}
    annotations = dict(tenant_annotations(tenant, "Namespace", **more))
    if tenant.pod_security.reason:
        annotations[f"{PREFIX}pod-security-reason"] = tenant.pod_security.reason
        annotations[f"{PREFIX}pod-security-until"] = tenant.pod_security.until
    annotations |= syncing.of_home()
    if tenant.platform.openshift is not None:
        annotations["openshift.io/display-name"] = tenant.team
        if tenant.description:
            annotations["openshift.io/description"] = tenant.description
    values = {
        "tenant": tenant,
        "labels": _namespace_labels(tenant),
        "namespace_annotations": sorted(annotations.items()),
    }
    return objects_of("tenant/namespace.yaml.j2", values)


def _namespace_labels(tenant: Tenant) -> Pairs:
    """Those of a tenant; on OpenShift also what makes the namespace a project of its AI dashboard, and what
    its build of Kueue wants: that one leaves namespaces without the label alone (Red Hat build of Kueue,
    "Labeling namespaces")."""
    labels = dict(tenant_labels(tenant)) | regime_labels(tenant.regimes)
    if tenant.platform.openshift is not None:
        labels["opendatahub.io/dashboard"] = "true"
        if tenant.platform.kueue is not None:
            labels["kueue.openshift.io/managed"] = "true"
    return tuple(sorted(labels.items()))


def quota(tenant: Tenant) -> list[Body]:
    """The quota, the ban on priorities that the team may not use, and the bounds of containers.

    Kueue decides when a run may start; the quota stops what goes around it. The LimitRange names CPU and
    memory only: an upper bound without a default becomes the default of every container
    (SetDefaults_LimitRangeItem of Kubernetes), so a bound on GPUs would hand GPUs to each.
    """
    values = _values(
        tenant,
        "ResourceQuota",
        hard=sorted(tenant.hard),
        priorities=[*SYSTEM_PRIORITIES, *(f"training-{name}" for name in tenant.forbidden_priorities)],
        bounds=tenant.bounds,
    )
    bodies = []
    if tenant.hard:
        bodies += objects_of("tenant/resourcequota.yaml.j2", values)
    if tenant.hard or tenant.forbidden_priorities:
        bodies += objects_of("tenant/priorityquota.yaml.j2", values)
    if tenant.bounds:
        bodies += objects_of("tenant/limitrange.yaml.j2", values)
    return bodies


def isolation(tenant: Tenant) -> list[Body]:
    """NetworkPolicies: `default-deny`, and `allow-dns` to the cluster's DNS pods only.

    No more than that, on purpose. Policies add up: whatever one of them opens for all pods of the namespace
    stays open for a run in the isolated posture too. What a run needs beyond DNS is opened for that run's
    pods alone (network.py).
    """
    return objects_of("tenant/isolation.yaml.j2", _values(tenant, "NetworkPolicy", dns=tenant.platform.dns))


def service_account(tenant: Tenant) -> list[Body]:
    """The account that training pods run as: no token and no rights but those of its cloud identity; on
    OpenShift also its binding to the constraint nonroot-v2."""
    cloud = tenant.identity.annotations if tenant.identity else ()
    annotations = tenant_annotations(tenant, "ServiceAccount")
    values = _values(tenant, "ServiceAccount", account_annotations=tuple(sorted((*annotations, *cloud))))
    bodies = objects_of("tenant/serviceaccount.yaml.j2", values)
    if tenant.platform.openshift is not None:
        bodies += objects_of("tenant/scc.yaml.j2", values)
    return bodies


def access(tenant: Tenant) -> list[Body]:
    """RoleBindings: one per role with all groups of its personas, and one per debug grant.

    A binding has its role's name, because a role of a binding can never change: when a cluster becomes
    gitopsOnly, the groups move to another binding instead of one binding to another role.
    """
    groups: dict[str, list[str]] = {}
    for member in tenant.members:
        role = "mpijob-viewer" if tenant.is_gitops_only else ROLE_OF[member.persona]
        groups.setdefault(role, []).append(member.group)
    bodies = []
    for role in sorted(groups):
        bodies += _binding(tenant, role, role, sorted(set(groups[role])))
    for grant in tenant.debuggers:
        more = {"reason": grant.reason, "until": grant.until}
        bodies += _binding(tenant, grant_name(grant), DEBUGGER, [grant.group], **more)
    return bodies


def _binding(tenant: Tenant, name: str, role: str, groups: list[str], **annotations: str) -> list[Body]:
    values = _values(tenant, "RoleBinding", name=name, role=role, groups=groups)
    values["annotations"] = tenant_annotations(tenant, "RoleBinding", **annotations)
    return objects_of("tenant/rolebinding.yaml.j2", values)


def grant_name(grant: DebugGrant) -> str:
    """A name per grant: a group may have several, and its own name may be none of Kubernetes."""
    digest = hashlib.sha256(f"{grant.group}\n{grant.reason}".encode()).hexdigest()[:8]
    return f"{DEBUGGER}-{grant.until}-{digest}"


def secrets(tenant: Tenant) -> list[Body]:
    """ExternalSecrets, where the cluster has a store: names and keys only; values never pass Git.

    Their defaults are those of external-secrets v1 (creationPolicy, deletionPolicy, engineVersion,
    mergePolicy and the strategies).
    """
    store = tenant.store
    if store is None:
        return []
    values = _values(
        tenant,
        "ExternalSecret",
        store=store,
        refresh=_go_duration(store.refresh_s),
        has_null_bytes=_has_null_byte_policy(store),
    )
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


def persistent_volumes(tenant: Tenant) -> list[Body]:
    """Storage that exists: a PersistentVolume and its claim for each entry. No commit removes either.

    A volume is of the cluster, so only the platform states one, and its name begins with the team's
    namespace. claimRef and volumeName name each other: no other claim gets it. A volume that somebody removes
    leaves its data alone: `Retain`, and no driver deletes what it has not made.
    """
    values = {
        "tenant": tenant,
        "no_class": "",  # or the cluster's default class would make another volume
        "labels": tenant_labels(tenant),
        "volume_annotations": _kept(tenant, "PersistentVolume"),
        "claim_annotations": _kept(tenant, "PersistentVolumeClaim"),
    }
    return [
        body
        for volume in tenant.volumes
        for body in objects_of("tenant/volume.yaml.j2", {**values, "volume": volume})
    ]


def claims(tenant: Tenant) -> list[Body]:
    """A claim per `size` in the team's file. No commit ever removes one: it holds data."""
    values = {
        "tenant": tenant,
        "labels": tenant_labels(tenant),
        "annotations": _kept(tenant, "PersistentVolumeClaim"),
    }
    return [
        body
        for claim in tenant.claims
        for body in objects_of("tenant/claim.yaml.j2", {**values, "claim": claim})
    ]


def _kept(tenant: Tenant, kind: str) -> list[tuple[str, str]]:
    return sorted({**dict(tenant_annotations(tenant, kind)), **syncing.of_kept()}.items())


def local_queues(tenant: Tenant) -> list[Body]:
    """The doors from the team's namespace to its quota, where the cluster has Kueue."""
    values = _values(tenant, "LocalQueue", kueue_api=KUEUE_API)
    return [
        body
        for queue in tenant.queues
        for body in objects_of("tenant/localqueue.yaml.j2", {**values, "queue": queue})
    ]
