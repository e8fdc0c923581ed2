"""The namespace of a team on a cluster. The platform assigns it; a team cannot choose any other."""

from __future__ import annotations

import re

from gangplan.spec.cluster import Cluster
from gangplan.spec.team import Team

# Namespaces of the platform, by the defaults of their projects' manifests and charts: Kubernetes, OpenShift
# and OpenShift AI, Kubeflow, Kueue, JobSet, GitOps engines, secret stores, meshes, operators, policy engines,
# network plugins, storage, monitoring, and what managed clusters add. A team in one of them would get the
# pods, and with them the secrets and service accounts, of what runs the cluster.
RESERVED_NAMESPACES = re.compile(
    r"default|(kube|openshift|redhat|rhods|opendatahub|kubeflow|istio|calico|cattle|knative|gke|gmp)(-.*)?"
    r"|(kueue|trainer|jobset|mpi-operator|volcano|gatekeeper|flux|metallb|longhorn|crossplane|keda|linkerd)-system"
    r"|(argo|argocd|argo-.*|vault|cert-manager|external-secrets|sealed-secrets|kyverno|keda|velero|linkerd|cilium)"
    r"|(external-secrets|cilium|linkerd|spire|argocd)-.*"
    r"|gpu-operator|nvidia-.*|mpi-operator|node-feature-discovery|network-operator|kuberay-(operator|system)"
    r"|ingress-nginx|rook-ceph|tigera-operator|volcano-monitoring|spire|keycloak"
    r"|monitoring|prometheus|grafana|karpenter|local-path-storage|amazon-.*|aws-.*|azure-.*"
)


def list_own_namespaces(name: str) -> tuple[str, str]:
    """Return the names that a team may choose if the cluster assigns no namespace: its own name, or
    team-<name>."""
    return name, f"team-{name}"


def namespace_of(cluster: Cluster, name: str, team: Team) -> str:
    """Return the namespace of a team on a cluster: the one that the cluster assigns, else the one of its own
    names that team.yaml chooses.

    The default is its own name, also if team.yaml chooses a name that it must not, which is reported as an
    error.
    """
    queue = cluster.teams.get(name)
    if queue is not None and queue.namespace is not None:
        return queue.namespace
    chosen = team.namespace
    return chosen if chosen in list_own_namespaces(name) else name
