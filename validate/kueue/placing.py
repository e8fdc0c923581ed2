"""Topology placement of all pod sets of a workload after flavors were assigned.

Source: Kueue v0.19.2 tas_flavorassigner.go (WorkloadsTopologyRequests, podSetTopologyRequest, onlyTASFlavor),
clusterqueue_snapshot.go (FindTopologyAssignmentsForWorkload).
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model.support import KueueLine
from gangplan.validate.kueue.annotations import TopologyRequest
from gangplan.validate.kueue.chosen import NO_FIT_MODE, PodSetChoice, WorkloadAssignment
from gangplan.validate.kueue.counting import PlacedShape, Slices, TakenAmounts, add_pod_request
from gangplan.validate.kueue.domains import TopologyTree
from gangplan.validate.kueue.model import TOPOLOGY_FAILED
from gangplan.validate.kueue.standing import KueueWorld, QueueState
from gangplan.validate.kueue.topology import PlacementError, TopologySearch, place_pod_set_in_topology


def place_pod_sets_in_topology(
    standing: KueueWorld, queue: QueueState, kueue: KueueLine, assignment: WorkloadAssignment
) -> None:
    """Place every pod set that needs topology placement; record what does not fit in the assignment."""
    by_flavor: dict[str, list[PodSetChoice]] = {}
    for one in assignment.chosen:
        if one.wanted.pods.count and (_has_explicit_topology(one) or queue.is_topology_only):
            flavor = _find_only_topology_flavor(standing, queue, kueue, one)
            if flavor and not (queue.is_multikueue or flavor in queue.delayed):
                by_flavor.setdefault(flavor, []).append(one)
    if any(one.error for one in assignment.chosen):
        return
    shared: TakenAmounts = {}
    for flavor in sorted(by_flavor):
        tree = standing.flavors.tree(flavor)
        if tree is None:
            continue
        # Two flavors may share nodes, so both book their pods in one place.
        taken = shared if tree.is_by_node and kueue.shares_nodes else {}
        tolerations = standing.flavors[flavor].tolerations
        for members in _group_pod_sets_for_topology(by_flavor[flavor]):
            if not _place_pod_set_group_in_topology(tree, members, tolerations, taken, flavor):
                return  # Kueue reports only one failure
    for one in assignment.chosen:
        if one.places and not one.wanted.placed:
            # Kueue places it and then refuses the place on its second look, as `CountIn` returns 0 for no
            # requests (pkg/resources; `Fits` in tas_flavor_snapshot.go, v0.15.2 to v0.19.2).
            one.error = "it asks for no resource, and no domain of a topology has room for such pods"


def _has_explicit_topology(one: PodSetChoice) -> bool:
    return one.wanted.topology is not None and one.wanted.topology.is_explicit


def _find_only_topology_flavor(
    standing: KueueWorld, queue: QueueState, kueue: KueueLine, one: PodSetChoice
) -> str:
    """Return the only flavor with a topology that a pod set got; otherwise record an error and return ""."""
    has = standing.flavors.topology_name
    names = [flavor for group in queue.quotas.groups for flavor in group.flavors]
    if not any(has(name) for name in names):
        one.error = "workload requires Topology, but there is no TAS cache information"
        return ""
    got = sorted({flavor for flavor, _ in one.flavors.values()})
    if kueue.mixes_flavors:
        mine = [name for name in got if has(name)]
        if len(mine) > 1:
            one.error = f"more than one TAS flavor assigned: {', '.join(mine)}"
        elif not mine:
            one.error = "no TAS flavor assigned"
        return "" if one.error else mine[0]
    if len(got) > 1:
        one.error = f"more than one flavor assigned: {', '.join(got)}"
    elif not got:
        one.error = "no flavor assigned"
    elif not has(got[0]):
        one.error = (
            "workload requires Topology, but there is no TAS cache information for the assigned flavor"
        )
    return "" if one.error else got[0]


def _group_pod_sets_for_topology(chosen: Sequence[PodSetChoice]) -> list[list[PodSetChoice]]:
    groups: dict[str, list[PodSetChoice]] = {}
    for at, one in enumerate(chosen):
        name = one.wanted.topology.group if one.wanted.topology else ""
        groups.setdefault(name or f"#{at}", []).append(one)
    return list(groups.values())


def _place_pod_set_group_in_topology(
    tree: TopologyTree,
    members: Sequence[PodSetChoice],
    tolerations: tuple[dict[str, object], ...],
    taken: TakenAmounts,
    flavor: str,
) -> bool:
    """Place a pod set, or a leader pod with its workers (the larger pod set), and return whether they fit."""
    workers, leader = members[0], None
    if len(members) > 1:
        leader = members[1]
        if leader.wanted.pods.count > workers.wanted.pods.count:
            workers, leader = leader, workers
    spec = workers.wanted.pods.spec
    shape = PlacedShape(
        spec,
        (*(spec.get("tolerations") or ()), *tolerations),
        add_pod_request(workers.wanted.placed),
        add_pod_request(leader.wanted.placed) if leader else None,
    )
    try:
        search = _build_topology_search(tree, workers, leader is not None)
        placed = place_pod_set_in_topology(tree, search, shape, taken)
        workers.places = {leaf.values: pods for leaf, pods, _ in placed if pods}
        if leader is not None:
            leader.places = {leaf.values: pods for leaf, _, pods in placed if pods}
        return True
    except PlacementError as missing:
        failed = workers
        failed.reasons.append(missing.message)
        failed.attempts[flavor] = NO_FIT_MODE, TOPOLOGY_FAILED
        for name, (of, _) in failed.flavors.items():
            failed.flavors[name] = of, NO_FIT_MODE
        return False


def _build_topology_search(tree: TopologyTree, one: PodSetChoice, has_leader: bool) -> TopologySearch:
    asked = one.wanted.topology or TopologyRequest(unconstrained=True)
    key = asked.level(tree.levels)
    if not key:
        raise PlacementError("topology level not specified")
    if key not in tree.levels:
        raise PlacementError(f"no requested topology level: {key}")
    layers = asked.layers
    slice_key = layers[0][0] if layers else tree.levels[-1]
    if slice_key not in tree.levels:
        raise PlacementError(f"no requested topology level for slices: {slice_key}")
    level, slice_level = tree.levels.index(key), tree.levels.index(slice_key)
    if level > slice_level:
        raise PlacementError(f"podset slice topology {slice_key} is above the podset topology {key}")
    free = bool(asked.unconstrained) or bool(layers and not asked.required and not asked.preferred)
    slices = Slices(
        layers[0][1] if layers else 1,
        slice_level,
        _compute_inner_topology_slice_sizes(tree, layers, slice_level),
    )
    return TopologySearch(
        one.wanted.pods.count,
        level,
        slices,
        bool(asked.required),
        free,
        int(has_leader),
        layers,
    )


def _compute_inner_topology_slice_sizes(
    tree: TopologyTree, layers: Sequence[tuple[str, int]], level: int
) -> dict[int, int]:
    """Return the sizes of smaller slices by level (buildSliceSizeAtLevel)."""
    sizes: dict[int, int] = {}
    previous = layers[0][1] if layers else 1
    for label, size in layers[1:]:
        if label not in tree.levels:
            raise PlacementError(f"no requested topology level for additional slice layer: {label}")
        at = tree.levels.index(label)
        if at <= level:
            raise PlacementError(
                f"additional slice layer topology {label} must be at a lower level than {tree.levels[level]}"
            )
        if previous % size:
            raise PlacementError(
                f"additional slice layer size {size} must evenly divide parent layer size {previous}"
            )
        sizes.update(dict.fromkeys(range(level + 1, at + 1), size))
        previous, level = size, at
    return sizes
