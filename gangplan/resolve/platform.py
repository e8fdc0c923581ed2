"""A cluster file becomes the platform facts that generators and checks read."""

from __future__ import annotations

from gangplan.model.job import Dns, Platform
from gangplan.model.version import Version, parse_version
from gangplan.spec.cluster import Cluster
from gangplan.workspace import ClusterFile

# The JobSet release in go.mod of each Trainer line (Trainer tags v2.1.0, v2.2.1, v2.3.0).
PINNED_JOBSET = {"2.1": Version(0, 10, 1), "2.2": Version(0, 11, 0), "2.3": Version(0, 12, 0)}

# Where DNS pods stand. NetworkPolicy matches the pod's own port: CoreDNS listens on 53, OpenShift's
# DNS operator on 5353 behind a Service on 53.
KUBE_DNS = Dns("kube-system", (("k8s-app", "kube-dns"),), (53,))
OPENSHIFT_DNS = Dns("openshift-dns", (("dns.operator.openshift.io/daemonset-dns", "default"),), (5353,))


def resolve_platform(cluster: ClusterFile) -> Platform:
    """The platform facts of one cluster."""
    spec = cluster.spec
    versions = spec.versions
    trainer = parse_version(versions.trainer)
    jobset = (
        parse_version(versions.jobset)
        if versions.jobset
        else PINNED_JOBSET.get(trainer.line, Version(0, 12, 0))
    )
    return Platform(
        cluster=cluster.name,
        environment=spec.environment,
        region=spec.region,
        kubernetes=parse_version(versions.kubernetes),
        trainer=trainer,
        jobset=jobset,
        kueue=parse_version(versions.kueue) if versions.kueue else None,
        openshift=parse_version(versions.openshift) if versions.openshift else None,
        domain=spec.domain,
        dns=_dns(spec),
    )


def _dns(spec: Cluster) -> Dns:
    if spec.dns is not None:
        return Dns(spec.dns.namespace, tuple(sorted(spec.dns.labels.items())), spec.dns.ports)
    return OPENSHIFT_DNS if spec.versions.openshift else KUBE_DNS
