"""Suggest what only the platform can give to pods: devices of nodes, fabrics and access to the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.amounts import convert_imported_memory
from gangplan.imports.draft import SpecDraft
from gangplan.imports.fabric import (
    NODE_ACCESS_QUESTION,
    NodeAccess,
    find_fabric_for_imported_job,
    list_imported_multus_networks,
)
from gangplan.imports.pools import has_room_for_imported_worker, suggest_pool_for_imported_job
from gangplan.model.quantity import Quantity, parse_quantity
from gangplan.resolve.fabric_presets import complete_fabric
from gangplan.spec.cluster import Cluster
from gangplan.spec.fabrics import Fabric
from gangplan.spec.nodes import NodePool, find_spec_field_of_resource, key_by_resource

# A placeholder for a day that a person has to choose; it is invalid, so that a file with it is refused.
OPEN_DAY = "YYYY-MM-DD"


def map_imported_devices_and_fabric(draft: SpecDraft) -> None:
    """Map devices, disk and huge pages to pools that must offer them, then the fabric; ask about the rest."""
    made = {
        name: found
        for name, one in draft.home.clusters.items()
        if (found := suggest_pool_for_imported_job(draft, name, one))
    }
    chosen = made | {
        name: found
        for name, one in draft.home.clusters.items()
        if name not in made and (found := _choose_pool_for_imported_job(draft, one))
    }
    _pin_spec_to_new_pool(draft, made)
    for cluster, (name, pool) in chosen.items():
        _suggest_pool_resources(draft, cluster, name, pool)
    _map_source_rdma_devices_to_pools(draft, chosen)
    _map_node_access_to_fabric(draft, chosen)


def _pin_spec_to_new_pool(draft: SpecDraft, made: Mapping[str, tuple[str, NodePool]]) -> None:
    """Name the new pool in the spec: Kueue fills pools in order, and an earlier one has quota but no room."""
    names = {name for name, _ in made.values()}
    if len(names) == 1 and made.keys() == draft.home.clusters.keys():
        draft.put("placement.nodePool", names.pop())


def _choose_pool_for_imported_job(draft: SpecDraft, cluster: Cluster) -> tuple[str, NodePool] | None:
    """Return the pool for the run: the one that it names, else the best fit with enough GPUs.

    Without GPUs, pools without GPUs are preferred.
    """
    gpus = draft.values.get("gpus", 0)
    stated = draft.values.get("placement", {}).get("nodePool")
    model = draft.values.get("gpu", {}).get("model")
    pools = {name: pool for name, pool in cluster.node_pools.items() if stated in (None, name)}
    fitting = [
        (name, pool)
        for name, pool in pools.items()
        if (pool.gpu is not None and pool.gpu.count >= gpus and model in (None, pool.gpu.model)) or not gpus
    ]
    wanted, uses_fabric = (
        _list_other_worker_resources(draft.values),
        bool(draft.rdma) or NodeAccess.of(draft).is_of_fabric,
    )
    ranked = sorted(
        fitting,
        key=lambda one: (
            not has_room_for_imported_worker(draft, one[1]),
            uses_fabric and not (one[1].fabric or one[1].rails),
            bool(set(wanted) - set(one[1].offered)),
            not gpus and one[1].gpu is not None,
        ),
    )
    if ranked and ranked[0] != fitting[0] and uses_fabric and len(draft.home.clusters) == 1:
        draft.put("placement.nodePool", ranked[0][0])
    return ranked[0] if ranked else None


def _list_other_worker_resources(values: Mapping[str, Any]) -> dict[str, Quantity]:
    """Return disk, huge pages and devices of a worker, by resource."""
    scratch = values.get("scratch")
    disk = parse_quantity(values["disk"]).value() if "disk" in values else 0
    if isinstance(scratch, dict) and scratch.get("medium") == "disk":
        disk += parse_quantity(scratch["size"]).value()
    pages = {size: parse_quantity(amount) for size, amount in values.get("hugePages", {}).items()}
    return key_by_resource(parse_quantity(str(disk)) if disk else None, pages, values.get("devices", {}))


def _count_workers_per_node(draft: SpecDraft, pool: NodePool) -> int:
    """Return how many workers fit on a node, by its GPUs."""
    gpus = draft.values.get("gpus", 0)
    return max(1, pool.gpu.count // gpus) if gpus and pool.gpu else 1


def _suggest_pool_resources(draft: SpecDraft, cluster: str, name: str, pool: NodePool) -> None:
    """Suggest resources that workers need for a pool that states none of them, and ask about the amounts."""
    for resource, amount in _list_other_worker_resources(draft.values).items():
        if resource in pool.offered:
            continue
        path = ("nodePools", name, *find_spec_field_of_resource(resource))
        needed = amount.value() * _count_workers_per_node(draft, pool)
        value: Any = needed if path[2] == "devices" else convert_imported_memory(str(needed))
        file = f"overlays/{cluster}/cluster.yaml"
        node = draft.origins.get(path[2]) or draft.origins.get("scratch")
        draft.suggest(file, path, value, f"workers need {resource}", node)
        draft.wonder(
            node or draft.work.account.root(),
            f"no node of pool {name} states {resource}; {value} keeps the place of what it has",
            f"Correct {'.'.join(path)} in {file}: kubectl get node NAME -o jsonpath='{{.status.allocatable}}'.",
        )


def _map_source_rdma_devices_to_pools(draft: SpecDraft, chosen: Mapping[str, tuple[str, NodePool]]) -> None:
    """Map RDMA devices: as many as the source requests, if a pool has them or can be extended."""
    for number, (resource, (count, nodes)) in enumerate(draft.rdma.items()):
        pools = [pool for one in draft.home.clusters.values() for pool in one.node_pools.values()]
        has = any(rail.resource == resource for pool in pools for rail in pool.rails)
        free = {name: one for name, one in chosen.items() if not one[1].rails and not has}
        if number or not (has or free) or not count:
            _ask_about_rdma_of_source(draft, resource, count, nodes, number > 0)
            continue
        for node in nodes:
            draft.put("network.rdma", count, node)
        networks, places = list_imported_multus_networks(draft)
        attached = any(rail.networks for pool in pools for rail in pool.rails)
        for node in places if free or attached else ():
            node.mapped("nodePools.rdma.network")
        for cluster, (name, pool) in free.items():
            file, path = f"overlays/{cluster}/cluster.yaml", ("nodePools", name, "rdma")
            value: dict[str, Any] = {
                "resource": resource,
                "count": min(count * _count_workers_per_node(draft, pool), 1000),
            }
            if networks:
                value["network"] = networks[0] if len(networks) == 1 else networks
            draft.suggest(file, path, value, f"workers need {resource}", nodes[0])
            draft.wonder(
                nodes[0],
                f"no pool of the team's clusters has {resource}; {name} gets {value['count']} of them for each node",
                f"Correct {'.'.join(path)} in {file}, or leave it out and write network.rdma: auto.",
            )


def _ask_about_rdma_of_source(
    draft: SpecDraft, resource: str, count: int | None, nodes: list[SourceNode], is_second: bool
) -> None:
    if is_second:
        for node in nodes:
            node.asked(
                "network.rdma asks for one kind of devices, and a pool with several rails gives one of each"
            )
        return
    for node in nodes:
        draft.put("network.rdma", "auto", node)
    draft.wonder(
        nodes[0],
        f"no pool of the team's clusters has {resource}, so the run falls back to TCP",
        f"The platform states it in the pool: rdma: {{resource: {resource}, count: {count or 1}}}; then write network.rdma: {count or 1}.",
    )


def _map_node_access_to_fabric(draft: SpecDraft, chosen: Mapping[str, tuple[str, NodePool]]) -> None:
    """Map access to nodes, other than devices, to the pool's fabric or to one that the cluster must gain."""
    wanted = NodeAccess.of(draft)
    is_given = False
    for cluster, (name, pool) in chosen.items():
        spec = draft.home.clusters[cluster]
        stated = spec.fabrics.get(pool.fabric) if pool.fabric else None
        if stated is not None:
            is_given |= _mark_access_given_by_fabric(
                draft, wanted, complete_fabric(stated), pool.fabric or ""
            )
            continue
        found = find_fabric_for_imported_job(draft, wanted, spec, pool)
        if found is None:
            _suggest_pod_security_for_imported_job(draft, wanted, cluster)
            continue
        label, value = found
        try:
            made = Fabric.model_validate(
                {key: tuple(one) if isinstance(one, list) else one for key, one in value.items()}
            )
        except ValueError:  # paths or capabilities of the source that no node has
            continue
        file = f"overlays/{cluster}/cluster.yaml"
        draft.suggest(file, ("fabrics", label), value, "the pods use the fabric of their nodes", wanted.place)
        draft.suggest(
            file, ("nodePools", name, "fabric"), label, "the pods use the fabric of their nodes", wanted.place
        )
        is_given |= _mark_access_given_by_fabric(draft, wanted, complete_fabric(made), label)
    if is_given and "rdma" not in draft.values.get("network", {}):
        draft.put("network.rdma", "required")
    _ask_about_source_node_access(draft, wanted)


def _suggest_pod_security_for_imported_job(draft: SpecDraft, wanted: NodeAccess, cluster: str) -> None:
    """Suggest the level that the namespace needs for a fabric; a person has to choose until when it applies.

    Host namespaces, folders of the node, privileged containers and capabilities of a fabric are beyond
    `baseline` (Kubernetes v1.34, Pod Security Standards).
    """
    grant = draft.home.clusters[cluster].teams[draft.home.team].pod_security
    access = [*wanted.network, *wanted.other, *wanted.privileged, *wanted.capabilities]
    access += [one.node for one in wanted.drivers]
    if (grant and grant.level == "privileged") or not access or not (draft.rdma or wanted.is_of_fabric):
        return
    shown = ", ".join(dict.fromkeys(_describe_node_access_of_source(access, wanted)))
    reason = f"Pods use the fabric of their nodes: {shown}."[:512]
    value = {"level": "privileged", "reason": reason, "until": OPEN_DAY}
    file, path = f"overlays/{cluster}/cluster.yaml", ("teams", draft.home.team, "podSecurity")
    why = "pods use the fabric of their nodes, which the level restricted forbids; until when they may, a person says"
    draft.suggest(file, path, value, why, access[0], is_open=True)
    draft.wonder(
        access[0],
        f"until when may team {draft.home.team} run pods with {shown} on cluster {cluster}? Nobody but the platform can say",
        f"If it may: add {'.'.join(path)} to {file} with level, reason and a day in until; then import again, for the fabric.",
    )


def _mark_access_given_by_fabric(draft: SpecDraft, wanted: NodeAccess, fabric: Fabric, name: str) -> bool:
    """Mark what a fabric gives; return whether it gives anything that the source has."""
    nodes = list(wanted.given_by(fabric))
    for node in nodes:
        node.account.remark(node.path, "mapped", f"fabrics.{name}")
    draft.of_fabric |= set(fabric.sidecars) | set(fabric.setup)
    return bool(nodes)


def _ask_about_source_node_access(draft: SpecDraft, wanted: NodeAccess) -> None:
    """Ask about what no fabric gives, once for all pods."""
    left = [node for node in wanted.nodes() if not _is_mapped(node)]
    for node in left:
        node.account.mark(node.path, "asked", "", NODE_ACCESS_QUESTION)
    shown = ", ".join(dict.fromkeys(_describe_node_access_of_source(left, wanted)))
    if not shown:
        return
    draft.wonder(
        left[0],
        f"the pods have {shown}; {NODE_ACCESS_QUESTION}",
        "Where a fabric or a driver needs it, the platform states it: fabrics.NAME, nodePools.X.fabric and teams.X.podSecurity"
        " (docs/fabrics.md); data belongs on a claim.",
    )


def _describe_node_access_of_source(left: list[SourceNode], wanted: NodeAccess) -> Iterator[str]:
    capabilities = {node.path for node in wanted.capabilities}
    paths = {mount.node.path: mount for mount in wanted.paths}
    for node in left:
        if node.path in paths and (volume := paths[node.path].volume):
            yield f"the folder {volume.reference} of the node"
        elif node.path in capabilities:
            yield node.text()
        elif "volumes" not in node.path:
            yield str(node.path[-1])


def _is_mapped(node: SourceNode) -> bool:
    entries = (one for one in node.account.entries() if one.path[: len(node.path)] == node.path)
    return any(one.state == "mapped" and one.to.startswith(("fabrics.", "nodePools.")) for one in entries)
