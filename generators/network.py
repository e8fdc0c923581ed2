"""NetworkPolicy: who may talk to the pods of a run, in three postures.

A policy that selects a pod closes everything that no policy opens. In every posture only pods of the same
run may connect, and DNS and the declared endpoints may be reached. The restricted and isolated postures
narrow this to ports: SSH only from the launcher to workers, and the unprivileged range that MPI, NCCL and
Gloo take their ports from (they choose freely: NCCL has no knob for it).
"""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.generators.common import Pairs, objects_of, run_annotations, run_labels
from gangplan.model.job import Job
from gangplan.objects import Body
from gangplan.plan import Unit

WAVE = -20
FIRST_PORT, LAST_PORT = 1024, 65535
# Where resolvers ask; the DNS pods themselves may listen on another port behind their Service.
DNS_PORT = 53
# Pods carry these labels by JobSet (not those of TrainJob); v0.10 to v0.12.
JOBSET = "jobset.sigs.k8s.io/jobset-name"
ROLE = "jobset.sigs.k8s.io/replicatedjob-name"


@dataclass(frozen=True, slots=True)
class Port:
    """A range of ports; one port when both ends are equal."""

    protocol: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RulePeer:
    """Pods by label (in another namespace when named), or an address range."""

    pods: Pairs = ()
    namespace: str = ""
    cidr: str = ""
    excluding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Any of the peers on any of the ports; no ports means every port."""

    peers: tuple[RulePeer, ...]
    ports: tuple[Port, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyShape:
    """One NetworkPolicy. None leaves a direction alone; an empty tuple closes it."""

    name: str
    pods: Pairs
    ingress: tuple[PolicyRule, ...] | None
    egress: tuple[PolicyRule, ...] | None


def network_policies(unit: Unit) -> list[Body]:
    """The policies of a run: one in the default posture, three where SSH is held apart."""
    values = {"job": unit.job, "labels": run_labels(unit), "annotations": run_annotations(unit, WAVE)}
    return [
        body
        for policy in policies_of(unit)
        for body in objects_of("networkpolicy.yaml.j2", {**values, "policy": policy})
    ]


def policies_of(unit: Unit) -> list[PolicyShape]:
    """The policies as values."""
    job, run = unit.job, unit.run_name
    same_run = RulePeer(pods=((JOBSET, run),))
    outside = (*_dns(job), *_endpoints(job))
    if job.posture == "default":
        inside = PolicyRule((same_run,))
        return [PolicyShape(run, same_run.pods, (inside,), (inside, *outside))]
    inside = PolicyRule((same_run,), _open_ports(job))
    policies = [PolicyShape(run, same_run.pods, (inside,), (inside, *outside))]
    if job.uses_mpi:
        policies += _ssh_policies(job, run)
    return policies


def _open_ports(job: Job) -> tuple[Port, ...]:
    """The unprivileged range; for MPI without the SSH port, which has policies of its own."""
    if not job.uses_mpi:
        return (Port("TCP", FIRST_PORT, LAST_PORT),)
    ssh = job.image.ssh.port
    ranges = ((FIRST_PORT, ssh - 1), (ssh + 1, LAST_PORT))
    return tuple(Port("TCP", first, last) for first, last in ranges if first <= last)


def _ssh_policies(job: Job, run: str) -> list[PolicyShape]:
    """SSH from the launcher to the workers, and nowhere else."""
    launcher, workers = (((JOBSET, run), (ROLE, role)) for role in ("launcher", "node"))
    port = (Port("TCP", job.image.ssh.port, job.image.ssh.port),)
    return [
        PolicyShape(f"{run}-launcher-ssh", launcher, None, (PolicyRule((RulePeer(pods=workers),), port),)),
        PolicyShape(f"{run}-node-ssh", workers, (PolicyRule((RulePeer(pods=launcher),), port),), None),
    ]


def _dns(job: Job) -> list[PolicyRule]:
    """The DNS pods, and in a rule of its own what answers without being a pod (NodeLocal DNSCache)."""
    dns = job.platform.dns
    rules = [PolicyRule((RulePeer(pods=dns.labels, namespace=dns.namespace),), _both(dns.ports))]
    if dns.addresses:
        rules.append(PolicyRule(tuple(RulePeer(cidr=cidr) for cidr in dns.addresses), _both((DNS_PORT,))))
    return rules


def _both(ports: tuple[int, ...]) -> tuple[Port, ...]:
    return tuple(Port(protocol, port, port) for port in ports for protocol in ("UDP", "TCP"))


def _endpoints(job: Job) -> list[PolicyRule]:
    return [
        PolicyRule(
            (RulePeer(cidr=target.cidr, excluding=target.excluding),),
            tuple(Port("TCP", port, port) for port in target.ports),
        )
        for target in job.egress
    ]
