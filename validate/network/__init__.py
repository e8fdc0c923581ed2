"""Reachability: a run's pods reach each other, the DNS and the declared endpoints, and nobody else anything.

Proved from the built NetworkPolicies, symbolically: label sets, port intervals and address ranges, never
samples of them. Not seen here: AdminNetworkPolicy and the policies of a CNI's own kinds, which gangplan does
not render; traffic between a pod and its own node, which NetworkPolicy never closes (networking/v1); whether
address ranges also cover pods, which CNIs answer differently.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.validate.network.beyond import beyond_policy
from gangplan.validate.network.clean import Clean
from gangplan.validate.network.closed import unreachable
from gangplan.validate.network.leaks import leaking
from gangplan.validate.network.proxied import closed_proxies
from gangplan.validate.network.scene import Scene, scene_of
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World

__all__ = ["connections", "reachability"]


def reachability(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """What `connections` finds; of runs that are alike and in order, only the first is looked at."""
    clean = world.once(Clean)
    key = clean.key(run)
    if key is None or key in clean.known:
        return
    scene = scene_of(world, run)
    found = [] if scene is None else list(connections(scene))
    if not found and scene is not None and not scene.asked:
        clean.known.add(key)
    yield from found


def connections(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """What the policies close that must be open, open that must be closed, or cannot see at all."""
    yield from unreachable(scene)
    yield from leaking(scene)
    yield from beyond_policy(scene)
    yield from closed_proxies(scene)
