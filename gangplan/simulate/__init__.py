"""The queue played through time: who is admitted when, who gives way, how much is used.

A discrete-event simulation of Kueue's scheduler (docs/simulation.md) over runs with given durations.
Topology and nodes are left out: quota alone decides here.
"""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.kueue.model import Workload
from gangplan.simulate.engine import Event, Simulation, simulate
from gangplan.simulate.read import run_of
from gangplan.validate.kueue.members import setup_of
from gangplan.validate.world import World

__all__ = ["Event", "Simulation", "order", "run_of", "simulate"]


def order(world: World, runs: Iterable[Workload]) -> list[Event]:
    """Everything that happens to runs on a cluster, in order: admitted, preempted, finished."""
    return simulate(setup_of(world), runs).events
