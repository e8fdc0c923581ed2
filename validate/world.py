"""A cluster as its built objects and node pools say it, and a run on it: what every proof starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from gangplan.model.quantity import Quantity
from gangplan.plan import Unit
from gangplan.spec.cluster import Cluster
from gangplan.spec.nodes import NodePool
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.apiserver.schema import SchemaVersions

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class NodeGroupTaint:
    """A taint of a node; an empty value is the empty text."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one shape. `free` is what one of them has for runs: allocatable without its DaemonSets.

    `domains` are the topology levels, widest first: (node label, nodes in one domain; 0 where not known).
    Nodes fill domains in order: node i is in domain i // nodes of each level.
    """

    name: str
    count: int
    labels: Mapping[str, str]
    taints: tuple[NodeGroupTaint, ...]
    free: Mapping[str, Fraction]
    domains: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Everything that stands on a cluster before any run, as built, and its nodes. Each is one of its own."""

    cluster: str
    versions: SchemaVersions
    standing: tuple[Body, ...]
    nodes: tuple[NodeGroup, ...]
    fair_sharing: bool = True
    pods_per_node: int = 110

    def of_kind(self, kind: str, namespace: str | None = None) -> list[Body]:
        """The objects of a kind, of one namespace when it is given."""
        return [
            body
            for body in self.standing
            if body["kind"] == kind and namespace in (None, body["metadata"].get("namespace"))
        ]

    def find(self, kind: str, name: str, namespace: str | None = None) -> Body | None:
        """One object by name."""
        found = (body for body in self.of_kind(kind, namespace) if body["metadata"]["name"] == name)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class BuiltRun:
    """A run: what was planned, and its built objects.

    `generated` are the objects before any patch, in the same order; empty where they do not matter.
    """

    unit: Unit
    bodies: tuple[Body, ...]
    generated: tuple[Body, ...] = field(default=(), compare=False, repr=False)
    known: dict[str, Any] = field(
        default_factory=dict, compare=False, repr=False
    )  # what a proof leaves the next


def world_of(cluster: str, spec: Cluster, versions: SchemaVersions, standing: Sequence[Body]) -> World:
    """The world of a cluster file and the objects that stand on it."""
    levels = tuple((level.label, level.nodes or 0) for level in spec.topology)
    groups = tuple(node_group(name, pool, levels) for name, pool in spec.node_pools.items())
    pods = (
        250 if spec.versions.openshift else 110
    )  # the kubelet's maxPods: OpenShift 4's default, Kubernetes'
    return World(cluster, versions, tuple(standing), groups, spec.fair_sharing, pods)


def node_group(name: str, pool: NodePool, levels: tuple[tuple[str, int], ...]) -> NodeGroup:
    """A node pool as nodes; a pool that grows has all the nodes that it may get."""
    count = pool.autoscale.most if pool.autoscale else pool.count
    taken = {"cpu": pool.daemons.cpu, "memory": pool.daemons.memory} if pool.daemons else {}
    free = {"cpu": _number(pool.cpu), "memory": _number(pool.memory)}
    free = {resource: amount - _number(taken.get(resource, Quantity(0))) for resource, amount in free.items()}
    free |= {resource: Fraction(count) for resource, count in pool.devices.items()}
    # Every node that runs may use is a Linux node.
    labels = {**pool.labels, "kubernetes.io/os": "linux"}
    taints = tuple(NodeGroupTaint(taint.key, taint.value or "", taint.effect) for taint in pool.taints)
    return NodeGroup(name, count, labels, taints, free, levels)


def _number(amount: Quantity) -> Fraction:
    return Fraction(amount.nano, 10**9)
