"""Argo CD: two AppProjects and three Applications per cluster.

platform and tenants are guardrails: pruned and healed. runs are created once: never pruned, never healed,
never waited for. Options and reasons: docs/gitops.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gangplan.objects import Body
from gangplan.source import load_objects
from gangplan.template import render_yaml

# Kinds that gangplan renders for each application, and for runs the kinds that Argo CD shows below them:
# a project that does not list a child hides it from people.
PLATFORM_KINDS = (
    ("kueue.x-k8s.io", "AdmissionCheck"),
    ("kueue.x-k8s.io", "ClusterQueue"),
    ("kueue.x-k8s.io", "Cohort"),
    ("kueue.x-k8s.io", "MultiKueueCluster"),
    ("kueue.x-k8s.io", "MultiKueueConfig"),
    ("kueue.x-k8s.io", "ProvisioningRequestConfig"),
    ("kueue.x-k8s.io", "ResourceFlavor"),
    ("kueue.x-k8s.io", "Topology"),
    ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("scheduling.k8s.io", "PriorityClass"),
)
# What stands in the namespaces of teams, and of the cluster's Prometheus. No Secret: the External Secrets
# Operator makes those, and one in Git is an error.
TENANT_KINDS = (
    ("", "ConfigMap"),
    ("", "LimitRange"),
    ("", "PersistentVolumeClaim"),
    ("", "ResourceQuota"),
    ("", "ServiceAccount"),
    ("external-secrets.io", "ExternalSecret"),
    ("kueue.x-k8s.io", "LocalQueue"),
    ("monitoring.coreos.com", "PrometheusRule"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
)
RUN_KINDS = (
    ("networking.k8s.io", "NetworkPolicy"),
    ("trainer.kubeflow.org", "TrainingRuntime"),
    ("trainer.kubeflow.org", "TrainJob"),
)
CHILD_KINDS = (
    ("", "Pod"),
    ("", "Service"),
    ("batch", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
    ("kueue.x-k8s.io", "Workload"),
)


@dataclass(frozen=True, slots=True)
class RepositorySource:
    """Where Argo CD finds the rendered tree, and where it stands itself."""

    repository: str
    revision: str
    namespace: str


def argocd_objects(
    cluster: str,
    namespaces: list[str],
    source: RepositorySource,
    paths: list[str],
    override_field: str,
    others: Sequence[str] = (),
) -> list[Body]:
    """Projects and applications for one cluster.

    `override_field` is where Kueue writes into a TrainJob that it starts, which Trainer's version decides
    (`model/support.py`); an Argo CD that does not know it would show the run as drifted. `namespaces` are
    those of its teams; `paths` says which of platform, tenants and runs are rendered: an application without
    its folder would never sync. `others` are namespaces of the platform that something is rendered into: that
    of the cluster's Prometheus.
    """
    values = {
        "cluster": cluster,
        "namespaces": namespaces,
        "homes": sorted({*namespaces, *others}) or ["default"],
        "source": source,
        "override_field": override_field,
        "platform_kinds": PLATFORM_KINDS,
        "tenant_kinds": TENANT_KINDS,
        "run_kinds": (*RUN_KINDS, *CHILD_KINDS),
    }
    bodies = load_objects(render_yaml("gitops/argocd-projects.yaml.j2", values))
    for part in paths:
        bodies += load_objects(render_yaml("gitops/argocd-application.yaml.j2", {**values, "part": part}))
    return bodies
