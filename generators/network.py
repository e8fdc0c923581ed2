"""NetworkPolicy: which peers may talk to the pods of a run, in three postures.

A policy that selects a pod closes everything that no policy opens. In every posture only pods of the same run
may connect, and only DNS and the declared endpoints may be reached. The restricted and isolated postures
narrow this to ports: SSH only from the launcher to workers, and the unprivileged range from which MPI, NCCL
and Gloo take their ports (they choose freely: NCCL has no setting for it).
"""

from __future__ import annotations

from gangplan.generators.common import (
    LabelPairs,
    TemplateRenderer,
    generate_run_labels,
    generate_run_part_annotations,
    render_to_objects,
)
from gangplan.model.job import Job
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.records import dataclass

FIRST_PORT, LAST_PORT = 1024, 65535


@dataclass(frozen=True, slots=True)
class Port:
    """A range of ports; one port when both ends are equal."""

    protocol: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RulePeer:
    """Pods by label (in the named namespace, if any), or an address range."""

    pods: LabelPairs = ()
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
    pods: LabelPairs
    ingress: tuple[PolicyRule, ...] | None
    egress: tuple[PolicyRule, ...] | None


def generate_network_policies(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return the policies of a run: one, and outside the default posture two more for the SSH of MPI."""
    values = {
        "job": unit.job,
        "labels": generate_run_labels(unit),
        "annotations": generate_run_part_annotations(unit, "NetworkPolicy"),
    }
    return [
        body
        for policy in generate_network_policy_values(unit)
        for body in write("networkpolicy.yaml.j2", {**values, "policy": policy})
    ]


def generate_network_policy_values(unit: RunPlan) -> list[PolicyShape]:
    """Return the policies of a run as values."""
    job, run = unit.job, unit.run_name
    # The labels that JobSet or the MPI operator gives to pods, not those of the TrainJob or MPIJob.
    same_run = RulePeer(pods=((job.backend.run_label, run),))
    ports = () if job.posture == "default" else _generate_network_policy_port_ranges(job)
    nodes = _generate_node_address_rules(job, ports)
    outside = (*_generate_egress_target_rules(job), *nodes)
    inside = PolicyRule((same_run,), ports)
    policies = [PolicyShape(run, same_run.pods, (inside, *nodes), (inside, *outside))]
    if job.posture == "default":
        return policies
    if job.uses_mpi:
        policies += _generate_ssh_network_policies(job, run)
    return policies


def _generate_network_policy_port_ranges(job: Job) -> tuple[Port, ...]:
    """Return the unprivileged range; for MPI without the SSH port, which has its own policies."""
    if not job.uses_mpi:
        return (Port("TCP", FIRST_PORT, LAST_PORT),)
    ssh = job.image.ssh.port
    ranges = ((FIRST_PORT, ssh - 1), (ssh + 1, LAST_PORT))
    return tuple(Port("TCP", first, last) for first, last in ranges if first <= last)


def _generate_node_address_rules(job: Job, ports: tuple[Port, ...]) -> list[PolicyRule]:
    """Return a rule for node addresses if workers use the host network, where no pod selector matches.

    Only the launcher can still be in the pod network; without a launcher, or if it runs with the workers, no
    pod needs the rule.
    """
    return [PolicyRule(_generate_node_address_peers(job), ports)] if _generate_node_address_peers(job) else []


def _generate_node_address_peers(job: Job) -> tuple[RulePeer, ...]:
    access = job.fabric.access
    if not access.host_network or not job.uses_mpi or job.launcher_runs_ranks:
        return ()
    return tuple(RulePeer(cidr=cidr) for cidr in access.node_addresses)


def _generate_ssh_network_policies(job: Job, run: str) -> list[PolicyShape]:
    """Return policies that allow SSH from the launcher to the workers, and from and to nothing else."""
    made = job.backend
    launcher, workers = (
        ((made.run_label, run), (made.role_label, made.role(role))) for role in ("launcher", "worker")
    )
    port = (Port("TCP", job.image.ssh.port, job.image.ssh.port),)
    return [
        PolicyShape(
            f"{run}-launcher-ssh",
            launcher,
            None,
            (PolicyRule((RulePeer(pods=workers), *_generate_node_address_peers(job)), port),),
        ),
        PolicyShape(
            f"{run}-{made.role('worker')}-ssh", workers, (PolicyRule((RulePeer(pods=launcher),), port),), None
        ),
    ]


def _generate_egress_target_rules(job: Job) -> list[PolicyRule]:
    return [
        PolicyRule(
            (RulePeer(cidr=target.cidr, excluding=target.excluding),),
            tuple(Port("TCP", port, port) for port in target.ports),
        )
        for target in job.egress
    ]
