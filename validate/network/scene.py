"""A run among the policies of its cluster: what the proofs and the table of connections are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gangplan.validate.apiserver.forms import range_of
from gangplan.validate.network.labels import ANYTHING, Labels, one_of
from gangplan.validate.network.pods import LAUNCHER, RUN_LABEL, WORKER, RolePods, run_roles
from gangplan.validate.network.policy import NetworkPolicy, PodGroup, policy
from gangplan.validate.network.ranges import EVERY_PORT, NO_PORT, Addresses, Ports, Region
from gangplan.validate.network.relation import beside, elsewhere, home_of, mentioned, strangers
from gangplan.validate.world import BuiltRun, World

# Where MPI, NCCL and Gloo take their ports from; they choose freely.
MPI_PORTS = Ports.of("TCP", 1024, 65535)


@dataclass(frozen=True, slots=True)
class ClusterPolicies:
    """The policies and namespaces of a cluster before any run."""

    world: World
    policies: Mapping[str, tuple[NetworkPolicy, ...]]
    homes: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Need:
    """A connection that the run cannot work without."""

    source: PodGroup
    target: PodGroup
    ports: Ports
    why: str


@dataclass(frozen=True, slots=True)
class Scene:
    """One run: its pods, the policies of its namespace (its own among them), who else there is.

    `policies` holds every namespace that matters; `beside` are the strangers in its own namespace,
    `others` all other namespaces in one; `homes` the labels of those that are known.
    """

    run: BuiltRun
    name: str
    namespace: str
    policies: Mapping[str, tuple[NetworkPolicy, ...]]
    roles: tuple[RolePods, ...]
    dns: PodGroup
    beside: PodGroup
    others: PodGroup
    homes: Mapping[str, Mapping[str, str]]
    train_job: int
    runtime: int

    @property
    def own(self) -> tuple[NetworkPolicy, ...]:
        """The policies of the run's namespace."""
        return self.policies.get(self.namespace, ())

    @property
    def pods(self) -> Iterator[PodGroup]:
        """All pods of the run, in parts."""
        return (part for role in self.roles for part in role.parts)

    @property
    def each(self) -> list[PodGroup]:
        """The pods of all other namespaces, one by one: slow to look at where there are many."""
        return strangers(self.namespace, RUN_LABEL, self.name, self.homes)[1:]

    @property
    def is_narrow(self) -> bool:
        """Whether the posture asks for certain ports inside the run."""
        return self.run.unit.job.posture != "default"

    @property
    def ssh(self) -> Ports:
        """The port of the workers' SSH server, as the built runtime says it; none without MPI."""
        job = self.run.unit.job
        if not job.uses_mpi:
            return NO_PORT
        built = next((role.ssh_port for role in self.roles if role.name == WORKER), None)
        port = built or job.image.ssh.port
        return Ports.of("TCP", port, port)

    @property
    def dns_ports(self) -> Ports:
        """The ports of the cluster's DNS pods, UDP and TCP."""
        found = NO_PORT
        for port in self.run.unit.job.platform.dns.ports:
            found |= Ports.of("UDP", port, port) | Ports.of("TCP", port, port)
        return found

    @property
    def dns_region(self) -> Region:
        """Addresses that answer DNS without being pods, on the port that resolvers ask."""
        found = (range_of(text) for text in self.run.unit.job.platform.dns.addresses)
        ports = Ports.of("UDP", 53, 53) | Ports.of("TCP", 53, 53)
        return tuple((Addresses.of(whole), ports) for whole in found if whole is not None)

    @property
    def declared(self) -> Region:
        """Addresses and ports that the spec's egress names."""
        found = []
        for target in self.run.unit.job.egress:
            whole = range_of(target.cidr)
            parts = [part for text in target.excluding if (part := range_of(text)) is not None]
            ports = NO_PORT
            for port in target.ports:
                ports |= Ports.of("TCP", port, port)
            if whole is not None:
                found.append((Addresses.of(whole, parts), ports if target.ports else EVERY_PORT))
        return tuple(found)

    def pairs(self) -> Iterator[tuple[RolePods, PodGroup, RolePods, PodGroup]]:
        """Any two different pods of the run, in parts; a pod always reaches itself."""
        for source in self.roles:
            for target in self.roles:
                for one in source.parts:
                    for two in target.parts:
                        if one is not two or one.count > 1:
                            yield source, one, target, two

    def permitted(self, source: RolePods, target: RolePods) -> Ports:
        """The most that the posture allows from one role to another."""
        if not self.is_narrow:
            return EVERY_PORT
        is_launch = source.name == LAUNCHER and target.name == WORKER
        return MPI_PORTS | self.ssh if is_launch else MPI_PORTS - self.ssh

    def needs(self) -> Iterator[Need]:
        """What must be open inside the run and to the DNS.

        In the default posture Open MPI starts its daemons as a tree, workers among each other (from 65 hosts
        on); in the others only the launcher opens SSH sessions.
        """
        working = (LAUNCHER, WORKER)
        for source, one, target, two in self.pairs():
            if source.name not in working or target.name not in working:
                continue
            if self.ssh and target.name == WORKER and (source.name == LAUNCHER or not self.is_narrow):
                yield Need(one, two, self.ssh, "SSH starts the ranks")
            back = source.name == WORKER and target.name == LAUNCHER
            yield Need(one, two, MPI_PORTS - self.ssh, "callbacks of the ranks" if back else "ranks talk")
        for one in self.pods:
            yield Need(one, self.dns, self.dns_ports, "DNS")


@lru_cache(maxsize=8)
def standing_of(world: World) -> ClusterPolicies:
    """The policies and namespaces of a world, read once per world."""
    policies: dict[str, tuple[NetworkPolicy, ...]] = {}
    for body in world.of_kind("NetworkPolicy"):
        one = policy(body)
        policies[one.namespace] = (*policies.get(one.namespace, ()), one)
    homes = {
        body["metadata"]["name"]: body["metadata"].get("labels") or {} for body in world.of_kind("Namespace")
    }
    return ClusterPolicies(world, policies, homes)


def scene_of(world: World, run: BuiltRun) -> Scene | None:
    """The scene of a run; None when it has no TrainJob with a runtime."""
    at = {body["kind"]: index for index, body in enumerate(run.bodies)}
    if "TrainJob" not in at or "TrainingRuntime" not in at:
        return None
    train_job, runtime = run.bodies[at["TrainJob"]], run.bodies[at["TrainingRuntime"]]
    name, namespace = train_job["metadata"]["name"], train_job["metadata"].get("namespace", "")
    standing = standing_of(world)
    policies = dict(standing.policies)
    for index, body in enumerate(run.bodies):
        if body["kind"] == "NetworkPolicy":
            one = policy(body, index)
            policies[one.namespace] = (*policies.get(one.namespace, ()), one)
    home = home_of(namespace, standing.homes)
    roles = run_roles(train_job, runtime, home, mentioned(policies.get(namespace, ())))
    roles.sort(key=lambda role: role.name != LAUNCHER)
    return Scene(
        run,
        name,
        namespace,
        policies,
        tuple(roles),
        _dns_pods(run, standing),
        beside(namespace, home, RUN_LABEL, name),
        elsewhere(namespace),
        standing.homes,
        at["TrainJob"],
        at["TrainingRuntime"],
    )


def _dns_pods(run: BuiltRun, standing: ClusterPolicies) -> PodGroup:
    """The cluster's DNS pods: the labels that the cluster file states, beside others that nobody knows."""
    dns = run.unit.job.platform.dns
    known = {key: one_of(value) for key, value in dns.labels}
    home = home_of(dns.namespace, standing.homes)
    return PodGroup("DNS", dns.namespace, home, Labels(known, rest=ANYTHING))
