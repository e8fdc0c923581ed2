"""Capacity of one node, limited by resources, host ports, pods per node and anti-affinity on the host.

Source: pkg/scheduler/framework/plugins/{noderesources,nodeports,interpodaffinity} of Kubernetes v1.34.4.
"""

from __future__ import annotations

from gangplan.validate.scheduler.model import HOST_KEY, FitQuestion

NodeContent = tuple[int, ...]  # pods of each kind


def build_empty_content(question: FitQuestion) -> NodeContent:
    """Return the content of a node without pods."""
    return (0,) * len(question.kinds)


def list_pod_kinds_never_sharing_node(question: FitQuestion, kind: int) -> frozenset[int]:
    """Return the kinds that cannot share a node with this one: host ports, anti-affinity of either side."""
    one = question.kinds[kind]
    mine = {other for key, kinds in one.apart if key == HOST_KEY for other in kinds}
    theirs = {
        at
        for at, other in enumerate(question.kinds)
        for key, kinds in other.apart
        if key == HOST_KEY and kind in kinds
    }
    return one.clashes | mine | theirs


def has_node_room_for_all_pods(question: FitQuestion, pool: int) -> bool:
    """Return whether a node has room for all pods that could be on it, so that kinds never compete for it."""
    content = tuple(
        min(kind.count, count_pods_fitting_on_node(question, pool, at)) if kind.homes[pool] else 0
        for at, kind in enumerate(question.kinds)
    )
    present = [at for at, n in enumerate(content) if n]
    if sum(content) > question.pools[pool].pods:
        return False
    if any(
        other != at and other in present
        for at in present
        for other in list_pod_kinds_never_sharing_node(question, at)
    ):
        return False
    room = question.pools[pool].room
    used = [
        sum(n * kind.needs[i] for n, kind in zip(content, question.kinds, strict=True))
        for i in range(len(room))
    ]
    return all(have >= amount for have, amount in zip(room, used, strict=True))


def count_pods_fitting_numa_resource(
    question: FitQuestion, pool: int, kind: int, resource: int
) -> int | None:
    """Return how many pods a node takes if each gets a resource from one NUMA node; None without this limit.

    Pods larger than a NUMA node have no limit here; the pool's policy decides, and `restricted` gives them
    several.
    """
    node, one = question.pools[pool], question.kinds[kind]
    if not node.cells or node.cells[resource] == 1 or not one.is_pinned[resource] or not one.needs[resource]:
        return None
    each = node.room[resource] // node.cells[resource] // one.needs[resource]
    return each * node.cells[resource] if each else None


def _count_pods_fitting_numa_nodes(question: FitQuestion, pool: int, kind: int) -> int | None:
    """Return the smallest of these limits over all resources."""
    if not question.pools[pool].cells:
        return None
    limits = [
        count_pods_fitting_numa_resource(question, pool, kind, i)
        for i in range(len(question.kinds[kind].needs))
    ]
    return min((limit for limit in limits if limit is not None), default=None)


def has_node_room_for_pod(question: FitQuestion, pool: int, content: NodeContent, kind: int) -> bool:
    """Return whether resources, pods per node and host ports allow one more pod."""
    node, one = question.pools[pool], question.kinds[kind]
    if sum(content) >= node.pods:
        return False
    if any(content[other] for other in one.clashes):
        return False
    limit = _count_pods_fitting_numa_nodes(question, pool, kind)
    if limit is not None and content[kind] >= limit:
        return False
    return all(
        need == 0
        or need + sum(n * question.kinds[at].needs[i] for at, n in enumerate(content) if n) <= node.room[i]
        for i, need in enumerate(one.needs)
    )


def count_pods_fitting_on_node(
    question: FitQuestion, pool: int, kind: int, beside: NodeContent | None = None
) -> int:
    """Return how many pods of a kind a node takes next to others, by all constraints within one node."""
    content = beside if beside is not None else build_empty_content(question)
    node, one = question.pools[pool], question.kinds[kind]
    apart = list_pod_kinds_never_sharing_node(question, kind)
    if any(n for at, n in enumerate(content) if at in apart and at != kind):
        return 0
    most = node.pods - sum(content)
    for i, need in enumerate(one.needs):
        if need:
            used = sum(n * question.kinds[at].needs[i] for at, n in enumerate(content) if n)
            most = min(most, (node.room[i] - used) // need)
    limit = _count_pods_fitting_numa_nodes(question, pool, kind)
    if limit is not None:
        most = min(most, limit - content[kind])
    if kind in apart:
        most = min(most, 1 - content[kind])
    return max(0, most)


def find_resources_short_on_node(
    question: FitQuestion, pool: int, content: NodeContent, kind: int
) -> list[int]:
    """Return the resources that a node lacks for one more pod."""
    node, one = question.pools[pool], question.kinds[kind]
    return [
        i
        for i, need in enumerate(one.needs)
        if need
        and need + sum(n * question.kinds[at].needs[i] for at, n in enumerate(content) if n) > node.room[i]
    ]


def find_short_numa_resources(question: FitQuestion, pool: int, content: NodeContent, kind: int) -> list[int]:
    """Return the resources for one more pod that the node has but none of its NUMA nodes has."""
    limits = [
        count_pods_fitting_numa_resource(question, pool, kind, i)
        for i in range(len(question.kinds[kind].needs))
    ]
    return [i for i, limit in enumerate(limits) if limit is not None and content[kind] >= limit]
