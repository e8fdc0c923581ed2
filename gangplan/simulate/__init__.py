"""A simulation of the queues over time: which runs are admitted or preempted when, and the utilisation.

It is a discrete-event simulation of Kueue's scheduler (docs/simulation.md) for runs with given durations. It
ignores topology and nodes: only quota decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.kueue.model import KueueWorkload
from gangplan.simulate.engine import Event, Simulation, simulate_runs
from gangplan.simulate.read import read_workload
from gangplan.validate.kueue.members import read_quota_setup_of_cluster
from gangplan.validate.world import World

__all__ = ["Event", "Simulation", "order", "read_workload", "simulate_runs"]


def order(world: World, runs: Iterable[KueueWorkload]) -> list[Event]:
    """Return the events of runs on a cluster in order: admitted, preempted, finished."""
    return simulate_runs(read_quota_setup_of_cluster(world), runs).events
