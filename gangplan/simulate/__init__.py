"""A simulation of the queues over time: which runs are admitted or preempted when, and the utilisation.

It is a discrete-event simulation of Kueue's scheduler (docs/simulation.md) for runs with given durations. It
ignores topology and nodes: only quota decides.
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
    """Return the events of runs on a cluster in order: admitted, preempted, finished."""
    return simulate(setup_of(world), runs).events
