"""Flavors with topologies and nodes: the tree of topology domains of each flavor.

Source: Kueue v0.19.2 pkg/cache/scheduler/tas_topology_tree.go, tas_nodes_cache.go; v0.15.2 builds the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from gangplan.kueue.units import KUEUE_PODS, convert_to_kueue_count
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.kueue.model import CountedAmounts
from gangplan.validate.world import HOSTNAME_LABEL, NodeGroup

# The kubelet's default (KubeletConfiguration.maxPods, Kubernetes v1.34), if a node group does not set it.
MOST_PODS = 110


@dataclass(slots=True)
class TopologyDomain:
    """A topology domain: its path (values of the levels down to it), its capacity, and how much fits.

    A leaf has `group` (nodes of one shape) and `capacity`. The counts are from the last search: pods and
    slices that fit, with (`_led`) and without a leader pod, and leaders that fit (0 or 1).
    """

    values: tuple[str, ...]
    children: list[TopologyDomain] = field(default_factory=list)
    group: NodeGroup | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: CountedAmounts = field(default_factory=dict)
    pods: int = 0
    pods_led: int = 0
    slices: int = 0
    slices_led: int = 0
    leaders: int = 0


@dataclass(frozen=True, slots=True)
class TopologyTree:
    """The topology domains of a flavor by level, widest first."""

    topology: str
    levels: tuple[str, ...]
    by_level: tuple[tuple[TopologyDomain, ...], ...]

    @property
    def is_by_node(self) -> bool:
        """Whether the leaves are nodes; only then does Kueue look at taints and labels of nodes."""
        return self.levels[-1] == HOSTNAME_LABEL

    @property
    def leaves(self) -> tuple[TopologyDomain, ...]:
        """The domains of the narrowest level."""
        return self.by_level[-1]


@dataclass(frozen=True, slots=True)
class StandingFlavor:
    """A ResourceFlavor; `topology` is the name of its Topology, or ""."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Body, ...]
    tolerations: tuple[Body, ...]
    topology: str


def read_resource_flavor(body: Body) -> StandingFlavor:
    """Read a ResourceFlavor for the solver."""
    spec = body.get("spec") or {}
    taints, tolerations = tuple(spec.get("nodeTaints") or ()), tuple(spec.get("tolerations") or ())
    return StandingFlavor(
        body["metadata"]["name"],
        spec.get("nodeLabels") or {},
        taints,
        tolerations,
        spec.get("topologyName") or "",
    )


class Flavors:
    """The flavors of a cluster, and the topology trees of some, built on first use."""

    def __init__(
        self, flavors: Sequence[Body], topologies: Sequence[Body], nodes: Sequence[NodeGroup]
    ) -> None:
        """Read objects that fit their schemas."""
        self._flavors = {one.name: one for one in map(read_resource_flavor, flavors)}
        self._levels = {
            body["metadata"]["name"]: tuple(level["nodeLabel"] for level in body["spec"]["levels"])
            for body in topologies
        }
        self._nodes = tuple(nodes)
        self._trees: dict[str, TopologyTree] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._flavors

    def __getitem__(self, name: str) -> StandingFlavor:
        return self._flavors[name]

    def topology_name(self, name: str) -> str:
        """Return the topology of a flavor, or "" if it has none or does not exist."""
        return self._flavors[name].topology if name in self._flavors else ""

    def tree(self, name: str) -> TopologyTree | None:
        """Return the domains of a flavor, or None if it has no topology or the topology does not exist."""
        topology = self.topology_name(name)
        levels = self._levels.get(topology)
        if levels is None:
            return None
        if name not in self._trees:
            self._trees[name] = _build_topology_tree(
                topology, levels, self._flavors[name].labels, self._nodes
            )
        return self._trees[name]


def iterate_topology_node_labels(group: NodeGroup) -> Iterator[dict[str, str]]:
    """Yield the labels of each node of a group, with numbered domains (`pool-0`, `pool-1`, ...).

    A level of unknown size is one domain for the whole group.
    """
    for number in range(group.count):
        labels = {HOSTNAME_LABEL: f"{group.name}-{number}"}
        for label, size in group.domains:
            if label != HOSTNAME_LABEL:
                labels[label] = f"{group.name}-{number // size if size else 0}"
        yield {**labels, **group.labels}


def _build_topology_tree(
    topology: str, levels: tuple[str, ...], wanted: Mapping[str, str], nodes: Sequence[NodeGroup]
) -> TopologyTree:
    by_level: list[dict[tuple[str, ...], TopologyDomain]] = [{} for _ in levels]
    for group in nodes:
        capacity = {resource: convert_to_kueue_count(resource, free) for resource, free in group.free.items()}
        capacity.setdefault(KUEUE_PODS, MOST_PODS)
        for labels in iterate_topology_node_labels(group):
            if any(labels.get(key) != value for key, value in wanted.items()):
                continue
            if any(level not in labels for level in levels):
                continue
            _add_node_to_topology_tree(
                by_level, tuple(labels[level] for level in levels), group, labels, capacity
            )
    return TopologyTree(topology, levels, tuple(tuple(level.values()) for level in by_level))


def _add_node_to_topology_tree(
    by_level: list[dict[tuple[str, ...], TopologyDomain]],
    values: tuple[str, ...],
    group: NodeGroup,
    labels: Mapping[str, str],
    capacity: CountedAmounts,
) -> None:
    leaf = by_level[-1].get(values)
    if leaf is not None:
        for resource, amount in capacity.items():
            leaf.capacity[resource] = leaf.capacity.get(resource, 0) + amount
        return
    below = TopologyDomain(values, group=group, labels=labels, capacity=dict(capacity))
    by_level[-1][values] = below
    for depth in range(len(values) - 1, 0, -1):
        known = by_level[depth - 1].get(values[:depth])
        if known is not None:
            known.children.append(below)
            return
        above = TopologyDomain(values[:depth], [below])
        by_level[depth - 1][above.values] = above
        below = above
