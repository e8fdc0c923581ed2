"""Group the nodes of a cluster by the pools of its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from gangplan.model.quantity import Quantity, QuantityError, parse_quantity
from gangplan.objects import Body
from gangplan.spec.cluster import Cluster
from gangplan.spec.nodes import NodePool

#: Taints that come and go with the state of a node (Kubernetes, well-known labels and taints).
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/uninitialized")
#: Resources of a kubelet that no spec asks for.
_UNASKED = ("attachable-volumes-", "hugepages-")


class NodeList:
    """Nodes as the API server lists them."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self.bodies = bodies

    def levels(self, labels: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return by topology label the numbers of nodes, of domains, and of nodes in the largest domain."""
        found = {}
        for label in labels:
            values = Counter(
                value for body in self.bodies if (value := labels_of(body).get(label)) is not None
            )
            found[label] = {
                "nodes": values.total(),
                "domains": len(values),
                "largest": max(values.values(), default=0),
            }
        return found


def summarise_live_node_pools(nodes: NodeList, spec: Cluster) -> list[Body]:
    """Return a summary of each pool that has nodes, in the order of the file; nodes of no pool come last."""
    members: dict[str, list[Body]] = {name: [] for name in (*spec.node_pools, "")}
    for body in nodes.bodies:
        members[find_pool_of_live_node(body, spec)].append(body)
    return [summarise_live_nodes(name, bodies) for name, bodies in members.items() if bodies]


def find_pool_of_live_node(body: Body, spec: Cluster) -> str:
    """Return the pool that best matches a node's labels and devices; empty if none does."""
    known = {pool.gpu.resource for pool in spec.node_pools.values() if pool.gpu}
    labels, offered = labels_of(body), (body.get("status") or {}).get("allocatable") or {}
    fitting = [
        (_compute_pool_match_of_live_node(pool, offered, known), name)
        for name, pool in spec.node_pools.items()
        if pool.labels.items() <= labels.items()
    ]
    fitting = [one for one in fitting if one[0][0] or spec.node_pools[one[1]].labels]
    if not fitting:
        return ""
    best = max(likeness for likeness, _ in fitting)
    return next(name for likeness, name in fitting if likeness == best)


def _compute_pool_match_of_live_node(pool: NodePool, offered: Body, known: Set[str]) -> tuple[bool, int, int]:
    """Return whether a node's GPUs fit a pool, how many labels select it, and how close its cores are."""
    gpu = pool.gpu.resource if pool.gpu else ""
    has = {name for name in known if str(offered.get(name, "0")) != "0"}
    cores = _parse_quantity_or_zero(str(offered.get("cpu", "0"))).nano
    return (gpu in has if gpu else not has), len(pool.labels), -abs(cores - pool.cpu.nano)


def labels_of(body: Body) -> dict[str, str]:
    """Return the labels of an object."""
    return body["metadata"].get("labels") or {}


def summarise_live_nodes(name: str, bodies: Sequence[Body]) -> Body:
    """Summarise nodes as one pool: their number, common labels, taints, and the range of each resource."""
    taints: Counter[tuple[str, str, str]] = Counter()
    for body in bodies:
        for one in (body.get("spec") or {}).get("taints") or ():
            if not one["key"].startswith(_PASSING):
                taints[one["key"], one.get("value") or "", one["effect"]] += 1
    common = dict(set.intersection(*(set(labels_of(body).items()) for body in bodies)))
    return {
        "pool": name,
        "count": len(bodies),
        "ready": sum(map(is_node_ready, bodies)),
        "labels": {key: value for key, value in common.items() if key != "kubernetes.io/hostname"},
        "taints": [
            {"key": key, "value": value, "effect": effect, "nodes": count}
            for (key, value, effect), count in sorted(taints.items())
        ],
        "allocatable": _compute_allocatable_ranges(bodies),
    }


def is_node_ready(body: Body) -> bool:
    """Return whether the node accepts new pods: it is Ready and not cordoned."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not (body.get("spec") or {}).get("unschedulable")


def _compute_allocatable_ranges(bodies: Sequence[Body]) -> dict[str, dict[str, str]]:
    """Return the least and the most of each resource that a node offers, as the node writes it."""
    found: dict[str, list[tuple[int, str]]] = {}
    for body in bodies:
        for name, text in ((body.get("status") or {}).get("allocatable") or {}).items():
            if not name.startswith(_UNASKED):
                found.setdefault(name, []).append((_parse_quantity_or_zero(str(text)).nano, str(text)))
    return {
        name: {"least": min(amounts)[1] if len(amounts) == len(bodies) else "0", "most": max(amounts)[1]}
        for name, amounts in found.items()
    }


def _parse_quantity_or_zero(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError:
        return Quantity(0)
