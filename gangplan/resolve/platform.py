"""The platform facts of a cluster file, which generators and checks read."""

from __future__ import annotations

from gangplan.model.job import DnsService, Platform
from gangplan.model.support import TRAINER_LINES
from gangplan.model.version import NOT_INSTALLED, ToolVersion, parse_version
from gangplan.spec.cluster import Cluster
from gangplan.workspace import ClusterFile

# Where DNS pods are. NetworkPolicy matches the pod's own port: CoreDNS listens on 53, OpenShift's DNS
# operator on 5353 behind a Service on 53.
KUBE_DNS = DnsService("kube-system", (("k8s-app", "kube-dns"),), (53,))
OPENSHIFT_DNS = DnsService(
    "openshift-dns", (("dns.operator.openshift.io/daemonset-dns", "default"),), (5353,)
)


def resolve_platform_of_cluster_file(cluster: ClusterFile) -> Platform:
    """Return the platform facts of one cluster. Kueue counts only if it starts the runs."""
    spec = cluster.spec
    versions = spec.versions
    trainer = parse_version(versions.trainer) if versions.trainer else NOT_INSTALLED
    return Platform(
        cluster=cluster.name,
        environment=spec.environment,
        region=spec.region,
        kubernetes=parse_version(versions.kubernetes),
        trainer=trainer,
        jobset=parse_version(versions.jobset) if versions.jobset else _resolve_jobset_of_trainer(trainer),
        kueue=parse_version(versions.kueue) if versions.kueue and spec.gang == "kueue" else None,
        openshift=parse_version(versions.openshift) if versions.openshift else None,
        domain=spec.domain,
        dns=_resolve_dns_service(spec),
        gang=spec.gang,
        start_wait_s=spec.pods_ready_timeout,
        hands_on=spec.multi_kueue is not None and spec.gang == "kueue",
        runtime_classes=spec.runtime_classes,
        mpi_operator=parse_version(versions.mpi_operator) if versions.mpi_operator else None,
        currency=spec.currency,
        crds=cluster.crds,
        engines=list_sync_engines(spec),
    )


def list_sync_engines(spec: Cluster) -> tuple[str, ...]:
    """Return the engines that sync a cluster: those whose versions it states, or any if it states none."""
    stated = {"argocd": spec.versions.argocd, "flux": spec.versions.flux}
    return tuple(name for name, version in stated.items() if version) or tuple(stated)


def _resolve_jobset_of_trainer(trainer: ToolVersion) -> ToolVersion:
    """Return the JobSet that a version of Trainer brings; for an unknown version, the newest."""
    if trainer == NOT_INSTALLED:
        return NOT_INSTALLED
    line = TRAINER_LINES.get(trainer.line) or list(TRAINER_LINES.values())[-1]
    return line.jobset


def _resolve_dns_service(spec: Cluster) -> DnsService:
    if spec.dns is not None:
        labels = tuple(sorted(spec.dns.labels.items()))
        return DnsService(spec.dns.namespace, labels, spec.dns.ports, spec.dns.addresses)
    return OPENSHIFT_DNS if spec.versions.openshift else KUBE_DNS
