"""Reachability: a run's pods reach each other, DNS and the declared endpoints, and all else is closed.

It is proved symbolically from the built NetworkPolicies, with label sets, port intervals and address ranges
instead of samples. Not covered: AdminNetworkPolicy and the policies of a CNI's own kinds, which gangplan does
not render; traffic between a pod and its own node, which NetworkPolicy never closes (networking/v1); whether
address ranges also cover pods, which differs between CNIs.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.validate.network.beyond import (
    check_policies_select_own_pods,
    check_traffic_beyond_network_policies,
)
from gangplan.validate.network.clean import CleanRuns
from gangplan.validate.network.closed import check_connections_under_network_policies
from gangplan.validate.network.leaks import check_open_connections
from gangplan.validate.network.proxied import check_proxies_pods_cannot_reach
from gangplan.validate.network.scene import Scene, network_scene_of
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World

__all__ = ["check_reachability", "connections"]


def check_reachability(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Yield what `connections` finds; of equal runs without problems, only the first is examined."""
    clean = world.once(CleanRuns)
    key = clean.key(run)
    if key is None or key in clean.known:
        return
    scene = network_scene_of(world, run)
    found = [] if scene is None else list(connections(scene))
    if not found and scene is not None and not scene.asked:
        clean.known.add(key)
    yield from found


def connections(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Yield connections that are wrongly closed or open, and traffic that NetworkPolicy does not see."""
    yield from check_connections_under_network_policies(scene)
    yield from check_open_connections(scene)
    yield from check_traffic_beyond_network_policies(scene)
    yield from check_policies_select_own_pods(scene)
    yield from check_proxies_pods_cannot_reach(scene)
