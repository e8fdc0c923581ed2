"""Counts of the pods of one shape that fit into each topology domain.

Source: Kueue v0.19.2 pkg/cache/scheduler/tas_flavor_snapshot.go (fillInCounts, fillLeafCounts,
fillInCountsHelper), scheduling_simulator_default.go, pkg/resources/requests.go (CountInWithLimitingResource).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from gangplan.kueue.units import KUEUE_PODS
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.apiserver.labels import (
    find_required_node_affinity_terms,
    has_all_labels,
    matches_any_node_selector_term,
)
from gangplan.validate.kueue.domains import TopologyDomain, TopologyTree
from gangplan.validate.kueue.matching import find_untolerated_taint
from gangplan.validate.kueue.model import CountedAmounts

ANY = 2**31 - 1
TakenAmounts = dict[tuple[str, ...], CountedAmounts]  # leaf -> what earlier pod sets use


@dataclass(slots=True)
class PlacedShape:
    """Equal pods to place, optionally with one leader pod."""

    spec: Body
    tolerations: tuple[Body, ...]
    each: CountedAmounts
    leader: CountedAmounts | None = None


@dataclass(slots=True)
class ExcludedNodes:
    """The number of nodes, and the reasons why some were excluded."""

    nodes: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def text(self) -> str:
        """Return the end of a message, or "" if no node was excluded."""
        if not self.reasons:
            return ""
        listed = ", ".join(sorted(f"{reason}: {count}" for reason, count in self.reasons.items()))
        return f". Total nodes: {self.nodes}; excluded: {listed}"


@dataclass(frozen=True, slots=True)
class Slices:
    """Pods that stay together: `size` of them in one domain of `level`; `inner` is level -> smaller size."""

    size: int
    level: int
    inner: Mapping[int, int]


def leaf_key(tree: TopologyTree, leaf: TopologyDomain) -> tuple[str, ...]:
    """Return the key of a leaf in `TakenAmounts`: the host name for nodes, since two flavors may share
    one."""
    return leaf.values[-1:] if tree.is_by_node else leaf.values


def add_pod_request(each: CountedAmounts) -> CountedAmounts:
    """Add the pod itself to its requests."""
    return {**each, KUEUE_PODS: each.get(KUEUE_PODS, 0) + 1}


def fill_topology_domain_counts(
    tree: TopologyTree, shape: PlacedShape, slices: Slices, taken: TakenAmounts
) -> ExcludedNodes:
    """Set the counts of every domain and return why nodes were excluded."""
    stats = ExcludedNodes(len(tree.leaves))
    verdicts: dict[int, str] = {}
    counts: dict[int, tuple[int, str]] = {}
    per_leaf = _collect_node_selector_keys(shape.spec) & {*tree.levels, "metadata.name"}
    for leaf in tree.leaves:
        leaf.pods = leaf.pods_led = leaf.slices = leaf.slices_led = leaf.leaders = 0
        if tree.is_by_node:
            kind = id(leaf.group)
            if per_leaf or kind not in verdicts:
                verdicts[kind] = _explain_unfit_topology_leaf(leaf, shape)
            if verdicts[kind]:
                stats.reasons[verdicts[kind]] += 1
                continue
        _fill_topology_leaf_counts(
            leaf, shape, taken.get(leaf_key(tree, leaf)), counts, stats, shared=tree.is_by_node
        )
    for root in tree.by_level[0]:
        _sum_topology_domain_counts(root, slices, 0, needs_leader=shape.leader is not None)
    return stats


def _collect_node_selector_keys(spec: Body) -> set[str]:
    """Return the labels and fields that the pod's selector and affinity use."""
    keys = set(spec.get("nodeSelector") or {})
    for term in find_required_node_affinity_terms(spec) or ():
        for entry in [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]:
            keys.add(entry["key"])
    return keys


def _explain_unfit_topology_leaf(leaf: TopologyDomain, shape: PlacedShape) -> str:
    """Return why a node takes none of the pods, or ""."""
    group = leaf.group
    taints = (
        [{"key": one.key, "value": one.value, "effect": one.effect} for one in group.taints] if group else []
    )
    taint = find_untolerated_taint(taints, shape.tolerations)
    if taint:
        value = f"={taint['value']}" if taint["value"] else ""
        return f'taint "{taint["key"]}{value}:{taint["effect"]}"'
    if not has_all_labels(shape.spec.get("nodeSelector") or {}, leaf.labels):
        return "nodeSelector"
    terms = find_required_node_affinity_terms(shape.spec)
    if terms is not None and not matches_any_node_selector_term(terms, leaf.labels, leaf.values[-1]):
        return "affinity"
    return ""


def _fill_topology_leaf_counts(
    leaf: TopologyDomain,
    shape: PlacedShape,
    held: CountedAmounts | None,
    counts: dict[int, tuple[int, str]],
    stats: ExcludedNodes,
    *,
    shared: bool,
) -> None:
    """Set the counts of a leaf; with `shared`, unused nodes of one group are counted once."""
    free = leaf.capacity
    if held:
        free = {name: amount - held.get(name, 0) for name, amount in leaf.capacity.items()}
    if shared and not held:
        kind = id(leaf.group)
        if kind not in counts:
            counts[kind] = count_pods_fitting_topology_leaf(shape.each, free)
        leaf.pods, limit = counts[kind]
    else:
        leaf.pods, limit = count_pods_fitting_topology_leaf(shape.each, free)
    if not leaf.pods and limit:
        stats.reasons[f'resource "{limit}"'] += 1
    leaf.pods_led = leaf.pods
    if shape.leader is not None and count_pods_fitting_topology_leaf(shape.leader, free)[0] > 0:
        leaf.leaders = 1
        left = {name: amount - shape.leader.get(name, 0) for name, amount in free.items()}
        leaf.pods_led = count_pods_fitting_topology_leaf(shape.each, left)[0]


def count_pods_fitting_topology_leaf(each: CountedAmounts, free: Mapping[str, int]) -> tuple[int, str]:
    """Return how often a request fits, and the limiting resource (the first by name among equals)."""
    best: tuple[int, str] | None = None
    for name, wanted in each.items():
        count = ANY if wanted == 0 else max(0, min(_divide_towards_zero(free.get(name, 0), wanted), ANY))
        if best is None or (count, name) < best:
            best = (count, name)
    return best or (0, "")


def _divide_towards_zero(amount: int, divisor: int) -> int:
    """Divide and round towards zero, as Go does."""
    return amount // divisor if amount >= 0 else -(-amount // divisor)


def _sum_topology_domain_counts(
    domain: TopologyDomain, slices: Slices, level: int, *, needs_leader: bool
) -> None:
    if not domain.children:
        if level == slices.level:
            domain.slices, domain.slices_led = domain.pods // slices.size, domain.pods_led // slices.size
        return
    inner = slices.inner.get(level + 1, 1)
    pods = count = leaders = 0
    losses: list[tuple[int, int]] = []
    for child in domain.children:
        _sum_topology_domain_counts(child, slices, level + 1, needs_leader=needs_leader)
        whole, led = child.pods // inner * inner, child.pods_led // inner * inner
        pods += whole
        count += child.slices
        if not needs_leader or child.leaders:
            losses.append((whole - led, child.slices - child.slices_led))
        leaders = max(leaders, child.leaders)
    domain.pods, domain.leaders = pods, leaders
    domain.pods_led = pods - min(loss for loss, _ in losses) if losses else 0
    led_count = count - min(loss for _, loss in losses) if losses else 0
    if level == slices.level:
        count, led_count = pods // slices.size, domain.pods_led // slices.size
    domain.slices, domain.slices_led = count, led_count


def record_pods_on_topology_leaf(
    tree: TopologyTree, taken: TakenAmounts, leaf: TopologyDomain, each: CountedAmounts, pods: int
) -> None:
    """Record pods as placed on a leaf."""
    held = taken.setdefault(leaf_key(tree, leaf), {})
    for name, amount in each.items():
        held[name] = held.get(name, 0) + amount * pods


def total(domains: Sequence[TopologyDomain]) -> int:
    """Return the number of pods that fit into several domains."""
    return sum(domain.pods for domain in domains)
