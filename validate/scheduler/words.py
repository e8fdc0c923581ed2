"""Messages about pods that find no node, in the words of kube-scheduler (Kubernetes v1.34.4).

The scheduler's sentence counts nodes by reason: `0/16 nodes are available: 12 node(s) didn't match Pod's node
affinity/selector, 4 Insufficient nvidia.com/gpu.` (pkg/scheduler/framework/types.go FitError). This one does
the same for the state after the other pods are placed, with nodes filled as far as possible.
"""

from __future__ import annotations

from collections import Counter

from gangplan.validate.scheduler.model import HOST_KEY, FitQuestion, Packing
from gangplan.validate.scheduler.node import (
    NodeContent,
    count_pods_fitting_on_node,
    find_resources_short_on_node,
    find_short_numa_resources,
)
from gangplan.validate.scheduler.reduce import Reducer, explain_unfit_node_group
from gangplan.validate.world import World

SPREAD = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL = f"{SPREAD} (missing required label)"
NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
PORTS = "node(s) didn't have free ports for the requested pod ports"
MANY = "Too many pods"


def describe_pods_without_fitting_node(
    world: World, reducer: Reducer, question: FitQuestion, answer: Packing, kind: int
) -> str:
    """Return the message for the pods of a kind that find no node."""
    counts: Counter[str] = Counter()
    for at, group in enumerate(world.nodes):
        told = explain_unfit_node_group(reducer.pods[kind], group)
        if told:
            counts[told] += group.count
            continue
        for nodes, each in _explain_full_nodes(reducer, question, answer, kind, at):
            counts[each] += nodes
    total = sum(group.count for group in world.nodes)
    said = ", ".join(sorted(f"{count} {each}" for each, count in counts.items() if count))
    return f"0/{total} nodes are available: {said or 'there are no nodes'}."


def _explain_full_nodes(
    reducer: Reducer, question: FitQuestion, answer: Packing, kind: int, pool: int
) -> list[tuple[int, str]]:
    """Return why the nodes of an accepting pool take no more of these pods, as (nodes, reason)."""
    one, node = question.kinds[kind], question.pools[pool]
    if any(each.key != HOST_KEY and node.places[each.key] is None for each in one.spreads):
        return [(node.count, SPREAD_LABEL)]
    content = _build_full_node_content(question, answer, kind, pool)
    found = [MANY] if sum(content) >= node.pods else []
    found += [
        f"Insufficient {reducer.resources[i]}"
        for i in find_resources_short_on_node(question, pool, content, kind)
    ]
    if not found and node.cells:
        found = [
            f"Insufficient {reducer.resources[i]} on one NUMA node"
            for i in find_short_numa_resources(question, pool, content, kind)
        ]
    if any(content[other] for other in one.clashes):
        found = [PORTS]
    # Nodes that would take more of these pods without the constraints on domains.
    full = min(node.count, -(-answer.placed[kind][pool] // content[kind])) if content[kind] else 0
    rest = node.count if not found else node.count - full if content[kind] else 0
    constraint = SPREAD if one.spreads else NEAR if one.near else APART if one.apart else ""
    if not constraint or not rest:
        return [(node.count, each) for each in found or [APART]]
    return [*((node.count - rest, each) for each in found), (rest, constraint)]


def _build_full_node_content(question: FitQuestion, answer: Packing, kind: int, pool: int) -> NodeContent:
    """Return the content of a node of the pool: its share of other kinds, and otherwise full of this kind."""
    content = [
        -(-row[pool] // max(1, question.pools[pool].count)) if at != kind else 0
        for at, row in enumerate(answer.placed)
    ]
    content[kind] = count_pods_fitting_on_node(question, pool, kind, tuple(content))
    return tuple(content)
