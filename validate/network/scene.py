"""A run with the policies of its cluster: the input of the network proof and of the table of connections."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import field
from typing import cast

from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import parse_cidr_like_api_server
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.network.labels import ANYTHING, PartialLabels, build_label_values
from gangplan.validate.network.pods import RolePods, build_roles_seen_by_network_policies
from gangplan.validate.network.policy import Direction, NetworkPolicy, PodGroup, read_network_policy
from gangplan.validate.network.ranges import EVERY_PORT, NO_PORT, Addresses, Ports, Region
from gangplan.validate.network.relation import (
    build_namespace_labels,
    build_pod_group_of_other_namespaces,
    build_sibling_group,
    find_labels_network_policies_mention,
    list_pods_outside_run,
)
from gangplan.validate.world import BuiltRun, World, index_namespace_labels

# Ports that MPI, NCCL and Gloo choose from freely.
MPI_PORTS = Ports.of("TCP", 1024, 65535)


class StandingPolicies(Mapping[str, tuple[NetworkPolicy, ...]]):
    """The policies of each namespace, parsed on first use: a run needs those of few teams."""

    def __init__(self, bodies: Iterable[Body]) -> None:
        self._bodies: dict[str, list[Body]] = {}
        for body in bodies:
            self._bodies.setdefault(body["metadata"].get("namespace", ""), []).append(body)
        self._read: dict[str, tuple[NetworkPolicy, ...]] = {}

    def __getitem__(self, namespace: str) -> tuple[NetworkPolicy, ...]:
        if namespace not in self._read:
            self._read[namespace] = tuple(read_network_policy(body) for body in self._bodies[namespace])
        return self._read[namespace]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)


@dataclass(frozen=True, slots=True)
class ClusterPolicies:
    """The policies and namespaces of a cluster before any run."""

    policies: StandingPolicies
    homes: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class NeededConnection:
    """A connection that the run cannot work without."""

    source: PodGroup
    target: PodGroup
    ports: Ports
    why: str


@dataclass(frozen=True, slots=True)
class Scene:
    """A run's pods, the policies of its namespace (its own among them), and all other pods of the cluster.

    `policies` has every namespace that matters. `beside` are the other pods in the run's namespace, `others`
    the pods of all other namespaces as one group. `homes` are the labels of the known namespaces. `asked` is
    not empty once these were examined one by one.
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
    train_job: int  # indexes among the run's objects; both are the MPIJob if there is one
    runtime: int
    run_label: str
    asked: list[str] = field(default_factory=list)

    @property
    def own(self) -> tuple[NetworkPolicy, ...]:
        """The policies of the run's namespace."""
        return self.policies.get(self.namespace, ())

    @property
    def hosted(self) -> frozenset[str]:
        """The roles that the platform put into their node's network, where no policy applies."""
        job = self.run.unit.job
        return frozenset(
            role.name
            for role in self.roles
            if role.template["spec"].get("hostNetwork")
            and job.access_of(LAUNCHER if role.name == LAUNCHER else "worker").host_network
        )

    @property
    def pods(self) -> Iterator[PodGroup]:
        """All pods of the run that policies apply to, in parts."""
        hosted = self.hosted
        return (part for role in self.roles if role.name not in hosted for part in role.parts)

    def nodes(self, direction: Direction) -> Region:
        """Return the addresses of nodes, through which pods and workers on the node network connect."""
        job, hosted = self.run.unit.job, self.hosted
        if not hosted or len(hosted) == len(self.roles):
            return ()
        ports = EVERY_PORT if not self.is_narrow else MPI_PORTS - self.ssh
        if direction == "egress":
            ports |= self.ssh
        found = (parse_cidr_like_api_server(text) for text in job.fabric.access.node_addresses)
        return tuple((Addresses.of(whole), ports) for whole in found if whole is not None)

    @property
    def each(self) -> list[PodGroup]:
        """The pods of all other namespaces, one by one: slow to check if there are many."""
        self.asked.append(self.namespace)
        return list_pods_outside_run(self.namespace, self.run_label, self.name, self.homes)[1:]

    @property
    def is_narrow(self) -> bool:
        """Whether the posture limits the ports inside the run."""
        return self.run.unit.job.posture != "default"

    @property
    def ssh(self) -> Ports:
        """The port of the workers' SSH server according to the built runtime; none without MPI."""
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
        """Addresses that answer DNS and are not pods, on the port that resolvers use."""
        found = (parse_cidr_like_api_server(text) for text in self.run.unit.job.platform.dns.addresses)
        ports = Ports.of("UDP", 53, 53) | Ports.of("TCP", 53, 53)
        return tuple((Addresses.of(whole), ports) for whole in found if whole is not None)

    @property
    def declared(self) -> Region:
        """Addresses and ports that the spec's egress names."""
        found = []
        for target in self.run.unit.job.egress:
            whole = parse_cidr_like_api_server(target.cidr)
            parts = [
                part for text in target.excluding if (part := parse_cidr_like_api_server(text)) is not None
            ]
            ports = NO_PORT
            for port in target.ports:
                ports |= Ports.of("TCP", port, port)
            if whole is not None:
                found.append((Addresses.of(whole, parts), ports if target.ports else EVERY_PORT))
        return tuple(found)

    def pairs(self) -> Iterator[tuple[RolePods, PodGroup, RolePods, PodGroup]]:
        """Yield any two different pods of the run, in parts; a pod always reaches itself."""
        hosted = self.hosted
        roles = [role for role in self.roles if role.name not in hosted]
        for source in roles:
            for target in roles:
                for one in source.parts:
                    for two in target.parts:
                        if one is not two or one.count > 1:
                            yield source, one, target, two

    def permitted(self, source: RolePods, target: RolePods) -> Ports:
        """Return the most that the posture allows from one role to another."""
        if not self.is_narrow:
            return EVERY_PORT
        is_launch = source.name == LAUNCHER and target.name == WORKER
        return MPI_PORTS | self.ssh if is_launch else MPI_PORTS - self.ssh

    def needs(self) -> Iterator[NeededConnection]:
        """Yield what must be open inside the run and to DNS.

        In the default posture Open MPI starts its daemons as a tree, workers among each other (from 65 hosts
        on); in the others only the launcher opens SSH sessions.
        """
        working = (LAUNCHER, WORKER)
        for source, one, target, two in self.pairs():
            if source.name not in working or target.name not in working:
                continue
            if self.ssh and target.name == WORKER and (source.name == LAUNCHER or not self.is_narrow):
                yield NeededConnection(one, two, self.ssh, "SSH starts the ranks")
            back = source.name == WORKER and target.name == LAUNCHER
            yield NeededConnection(
                one, two, MPI_PORTS - self.ssh, "callbacks of the ranks" if back else "ranks talk"
            )
        for one in self.pods:
            yield NeededConnection(one, self.dns, self.dns_ports, "DNS")


def standing_of(world: World) -> ClusterPolicies:
    """Return the policies and namespaces of a world; for `World.once`."""
    return ClusterPolicies(
        StandingPolicies(world.of_kind("NetworkPolicy")), world.once(index_namespace_labels)
    )


def network_scene_of(world: World, run: BuiltRun) -> Scene | None:
    """Return the scene of a run, or None if it has neither a TrainJob with a runtime nor an MPIJob."""
    at = {body["kind"]: index for index, body in enumerate(run.bodies)}
    made = run.unit.job.backend
    if made.kind not in at or made.holder not in at:
        return None
    train_job, runtime = run.bodies[at[made.kind]], run.bodies[at[made.holder]]
    name, namespace = train_job["metadata"]["name"], train_job["metadata"].get("namespace", "")
    label = made.run_label
    if run.unit.job.is_dated:  # its runs share the label of their runtime, and run one at a time
        label, name = run.unit.job.backend.run_label, run.unit.run_name
    standing = world.once(standing_of)
    own: dict[str, tuple[NetworkPolicy, ...]] = {}
    for index, body in enumerate(run.bodies):
        if body["kind"] == "NetworkPolicy":
            one = read_network_policy(body, index)
            own[one.namespace] = (*own.get(one.namespace, standing.policies.get(one.namespace, ())), one)
    # Policies of the run are layered over those of their namespaces; copying all would grow with the number
    # of teams.
    policies = ChainMap(own, cast(MutableMapping[str, tuple[NetworkPolicy, ...]], standing.policies))
    home = build_namespace_labels(namespace, standing.homes)
    looked_at = find_labels_network_policies_mention(policies.get(namespace, ()))
    roles = build_roles_seen_by_network_policies(made, train_job, runtime, home, looked_at)
    roles.sort(key=lambda role: role.name != LAUNCHER)
    return Scene(
        run,
        name,
        namespace,
        policies,
        tuple(roles),
        _build_cluster_dns_pods(run, standing),
        build_sibling_group(namespace, home, label, name),
        build_pod_group_of_other_namespaces(namespace),
        standing.homes,
        at[made.kind],
        at[made.holder],
        label,
    )


def _build_cluster_dns_pods(run: BuiltRun, standing: ClusterPolicies) -> PodGroup:
    """Return the cluster's DNS pods, with the labels that the cluster file states and perhaps others."""
    dns = run.unit.job.platform.dns
    known = {key: build_label_values(value) for key, value in dns.labels}
    home = build_namespace_labels(dns.namespace, standing.homes)
    return PodGroup("DNS", dns.namespace, home, PartialLabels(known, rest=ANYTHING))
