"""Namespace of a team: Pod Security restricted unless the cluster's file says otherwise, at its version."""

from __future__ import annotations

from gangplan.generators.common import (
    PREFIX,
    Pairs,
    objects_of,
    regime_labels,
    tenant_annotations,
    tenant_labels,
)
from gangplan.model import syncing
from gangplan.model.site import Tenant
from gangplan.objects import Body

WAVE = -30


def namespace(tenant: Tenant) -> list[Body]:
    """The namespace; removing it from Git must be confirmed by a person."""
    annotations = dict(
        tenant_annotations(tenant, WAVE, contact=tenant.contact, description=tenant.description)
    )
    if tenant.pod_security.reason:
        annotations[f"{PREFIX}pod-security-reason"] = tenant.pod_security.reason
        annotations[f"{PREFIX}pod-security-until"] = tenant.pod_security.until
    annotations |= syncing.CONFIRMED
    if tenant.platform.openshift is not None:
        annotations["openshift.io/display-name"] = tenant.team
        if tenant.description:
            annotations["openshift.io/description"] = tenant.description
    values = {
        "tenant": tenant,
        "labels": _labels(tenant),
        "namespace_annotations": sorted(annotations.items()),
    }
    return objects_of("tenant/namespace.yaml.j2", values)


def _labels(tenant: Tenant) -> Pairs:
    """Those of a tenant; on OpenShift also what makes the namespace a project of its AI dashboard, and what
    its build of Kueue wants: that one leaves namespaces without the label alone (Red Hat build of Kueue,
    "Labeling namespaces")."""
    labels = dict(tenant_labels(tenant)) | regime_labels(tenant.regimes)
    if tenant.platform.openshift is not None:
        labels["opendatahub.io/dashboard"] = "true"
        if tenant.platform.kueue is not None:
            labels["kueue.openshift.io/managed"] = "true"
    return tuple(sorted(labels.items()))
