"""Reduces pods and node groups to a question of plain numbers; also why a group accepts no pod of a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor

from gangplan.objects import Body
from gangplan.validate.scheduler.match import (
    add_match_label_keys_to_selector,
    applies_affinity_term_to_namespace,
    find_repelling_taint,
    is_host_key,
    matches_node_selector_and_affinity,
    matches_pods,
)
from gangplan.validate.scheduler.model import (
    HOST_KEY,
    FitQuestion,
    NodeShape,
    PodKind,
    PoolDomains,
    SpreadConstraint,
)
from gangplan.validate.scheduler.pods import PodShape, has_host_port_clash
from gangplan.validate.world import (
    HOSTNAME_LABEL,
    NodeGroup,
    World,
    index_namespace_labels,
    is_undeclared_resource,
)

# More bytes than any node has.
UNTOLD = 1 << 62
REQUIRED_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


class Reducer:
    """Builds the question for the pods of one phase and the nodes of a world."""

    def __init__(self, world: World, pods: Sequence[PodShape]) -> None:
        """Number the resources and topology keys that these pods use."""
        self.groups = world.nodes
        self.pods = pods
        self.resources = tuple(sorted({name for one in pods for name in one.requests}))
        self.keys = tuple(
            sorted(
                {key for one in pods for key in _list_topology_keys_of_pod(one.spec) if not is_host_key(key)}
            )
        )
        self._namespaces = world.once(index_namespace_labels)
        self._most_pods = world.pods_per_node
        self._has_numa = any(group.numa for group in world.nodes)

    def question(self) -> FitQuestion:
        """Return the question; equal pods and nodes give equal questions regardless of their names."""
        return FitQuestion(tuple(map(self._pool, self.groups)), tuple(map(self._kind, self.pods)))

    def _pool(self, group: NodeGroup) -> NodeShape:
        room = tuple(count_free_node_units(group.free, name) for name in self.resources)
        pods = group.free.get("pods")
        most = self._most_pods if pods is None else floor(pods)
        cells = tuple(group.numa.get(name, 1) for name in self.resources) if group.numa else ()
        return NodeShape(
            group.count,
            room,
            most,
            tuple(compute_topology_domains_of_group(group, key) for key in self.keys),
            cells,
        )

    def _kind(self, one: PodShape) -> PodKind:
        affinity = one.spec.get("affinity") or {}
        near = (affinity.get("podAffinity") or {}).get(REQUIRED_AFFINITY) or ()
        apart = (affinity.get("podAntiAffinity") or {}).get(REQUIRED_AFFINITY) or ()
        friends = [self._matched(one, term) for term in near]
        return PodKind(
            one.count,
            one.stage,
            tuple(one.requests.get(name, 0) for name in self.resources),
            tuple(explain_unfit_node_group(one, group) == "" for group in self.groups),
            frozenset(
                at for at, other in enumerate(self.pods) if has_host_port_clash(one.ports, other.ports)
            ),
            tuple(self._key(term) for term in near),
            frozenset.intersection(*friends) if friends else frozenset(),
            tuple((self._key(term), self._matched(one, term)) for term in apart),
            tuple(self._spread(one, each) for each in hard_spreads(one.spec)),
            self._pinned(one) if self._has_numa else (),
        )

    def _pinned(self, one: PodShape) -> tuple[bool, ...]:
        """Return by resource whether pods get it from one NUMA node.

        Devices always; CPU and memory for Guaranteed pods with whole cores.
        """
        is_guaranteed = one.requests.get("cpu", 0) % 1000 == 0 and all(
            (each.get("resources") or {}).get("requests") == (each.get("resources") or {}).get("limits")
            for each in one.spec["containers"]
        )
        return tuple(is_guaranteed or name not in ("cpu", "memory") for name in self.resources)

    def _key(self, constraint: Body) -> int:
        key = constraint["topologyKey"]
        return HOST_KEY if is_host_key(key) else self.keys.index(key)

    def _matched(self, one: PodShape, term: Body) -> frozenset[int]:
        if not applies_affinity_term_to_namespace(term, one.namespace, self._namespaces):
            return frozenset()
        return self._selected(add_match_label_keys_to_selector(term, one.labels))

    def _selected(self, selector: Body | None) -> frozenset[int]:
        return frozenset(at for at, other in enumerate(self.pods) if matches_pods(selector, other.labels))

    def _spread(self, one: PodShape, constraint: Body) -> SpreadConstraint:
        selector = add_match_label_keys_to_selector(constraint, one.labels)
        # An empty selector counts no pod at all (podtopologyspread/common.go countPodsMatchSelector).
        is_empty = (
            selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
        )
        matched = frozenset() if is_empty else self._selected(selector)
        counted = tuple(_is_node_counted_by_topology_spread(one, constraint, group) for group in self.groups)
        return SpreadConstraint(
            self._key(constraint),
            int(constraint["maxSkew"]),
            int(constraint.get("minDomains") or 1),
            matched,
            is_empty or matches_pods(selector, one.labels),
            counted,
        )


def _is_node_counted_by_topology_spread(one: PodShape, constraint: Body, group: NodeGroup) -> bool:
    """Return whether a spread constraint counts the nodes of a group; by default node affinity decides."""
    if constraint.get("nodeAffinityPolicy") != "Ignore" and not matches_node_selector_and_affinity(
        one.spec, group.labels
    ):
        return False
    tolerations = one.spec.get("tolerations") or ()
    return (
        constraint.get("nodeTaintsPolicy") != "Honor"
        or find_repelling_taint(group.taints, tolerations) is None
    )


def explain_unfit_node_group(one: PodShape, group: NodeGroup) -> str:
    """Return why no node of a group accepts these pods, in kube-scheduler's words, or "" if it does.

    The words are those of Kubernetes v1.34.4 (tainttoleration, nodeaffinity), with the taint as in v1.33.
    """
    taint = find_repelling_taint(group.taints, one.spec.get("tolerations") or ())
    if taint is not None:
        return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    if not matches_node_selector_and_affinity(one.spec, group.labels):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def list_unjudged_scheduling_constraints(one: PodShape, groups: Sequence[NodeGroup]) -> list[str]:
    """Return the constraints that a cluster file cannot answer: nodes by name, domains of unknown size."""
    levels = {label for group in groups for label, _ in group.domains} | {HOSTNAME_LABEL, "metadata.name"}
    asked = [
        key
        for key in list_node_label_keys_selected_by_pod(one.spec)
        if any(_may_label_vary_in_group(group, key, levels) for group in groups)
    ]
    unknown = [
        key
        for key in _list_topology_keys_of_pod(one.spec)
        if not is_host_key(key)
        and any(compute_topology_domains_of_group(group, key) == 0 for group in groups)
    ]
    return [
        *(f"pods of {one.name} ask for nodes by label {key}, which differs within a pool" for key in asked),
        *(f"pods of {one.name} have a constraint over {key}, whose domains have no size" for key in unknown),
    ]


def _may_label_vary_in_group(group: NodeGroup, key: str, levels: set[str]) -> bool:
    return key in levels and key not in group.labels


def list_node_label_keys_selected_by_pod(spec: Body) -> list[str]:
    """Return the keys of the node labels that a pod selects."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(REQUIRED_AFFINITY) or {}).get("nodeSelectorTerms") or ()
    keys = {one["key"] for term in terms for one in term.get("matchExpressions") or ()}
    named = {"metadata.name"} if any(term.get("matchFields") for term in terms) else set()
    return sorted({*keys, *(spec.get("nodeSelector") or {}), *named})


def compute_topology_domains_of_group(group: NodeGroup, key: str) -> PoolDomains:
    """Return the domains of a group's nodes for a topology key (see `model.PoolDomains`)."""
    if key in group.labels:
        return group.labels[key]
    return next((nodes for label, nodes in group.domains if label == key), None)


def count_free_node_units(free: Mapping[str, Fraction], name: str) -> int:
    """Return what a node has free for runs, as the scheduler counts: thousandths of a core, else whole units.

    Nodes have disk even if their pool does not state how much.
    """
    if name not in free and is_undeclared_resource(name):
        return UNTOLD
    amount = free.get(name, Fraction(0))
    return max(0, floor(amount * 1000 if name == "cpu" else amount))


def hard_spreads(spec: Body) -> list[Body]:
    """Return the spread constraints that can keep a pod pending; ScheduleAnyway only prefers."""
    every = spec.get("topologySpreadConstraints") or ()
    return [one for one in every if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]


def _list_topology_keys_of_pod(spec: Body) -> list[str]:
    affinity = spec.get("affinity") or {}
    terms = [
        term
        for kind in ("podAffinity", "podAntiAffinity")
        for term in (affinity.get(kind) or {}).get(REQUIRED_AFFINITY) or ()
    ]
    return [one["topologyKey"] for one in [*terms, *hard_spreads(spec)]]
