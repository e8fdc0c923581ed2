"""Which namespace a team has on a cluster: the platform's to give, never the team's to take."""

from __future__ import annotations

import re

from gangplan.spec.cluster import Cluster
from gangplan.spec.team import Team

# Namespaces of the platform, by the defaults of their projects' manifests and charts: Kubernetes, OpenShift and
# OpenShift AI, Kubeflow, Kueue, JobSet, GitOps engines, secret stores, meshes, operators, policy engines, network
# plugins, storage, monitoring, and what managed clusters bring along. A team there would get the pods, and with
# them the secrets and service accounts, of what runs the cluster.
RESERVED = re.compile(
    r"default|(kube|openshift|redhat|rhods|opendatahub|kubeflow|istio|calico|cattle|knative|gke|gmp)(-.*)?"
    r"|(kueue|trainer|jobset|mpi-operator|volcano|gatekeeper|flux|metallb|longhorn|crossplane|keda|linkerd)-system"
    r"|(argo|argocd|argo-.*|vault|cert-manager|external-secrets|sealed-secrets|kyverno|keda|velero|linkerd|cilium)"
    r"|(external-secrets|cilium|linkerd|spire|argocd)-.*"
    r"|gpu-operator|nvidia-.*|mpi-operator|node-feature-discovery|network-operator|kuberay-(operator|system)"
    r"|ingress-nginx|rook-ceph|tigera-operator|volcano-monitoring|spire|keycloak"
    r"|monitoring|prometheus|grafana|karpenter|local-path-storage|amazon-.*|aws-.*|azure-.*"
)


def own_names(name: str) -> tuple[str, str]:
    """What a team may call its namespace where the cluster gives it no other: its own name, or team-<name>."""
    return name, f"team-{name}"


def namespace_of(cluster: Cluster, name: str, team: Team) -> str:
    """The namespace of a team on a cluster: the one that the cluster gives it; else of its own names the one
    that team.yaml chooses, the first when it says nothing (or what it must not: then an error stands there)."""
    queue = cluster.teams.get(name)
    if queue is not None and queue.namespace is not None:
        return queue.namespace
    chosen = team.namespace
    return chosen if chosen in own_names(name) else name
