"""The outcome of a simulation: waits, preemptions and utilisation, per team and in total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from gangplan.kueue.model import KueueWorkload, QuotaSetup
from gangplan.model.amounts import is_gpu
from gangplan.records import dataclass
from gangplan.simulate.engine import Simulation

BUCKETS = 60


@dataclass(slots=True)
class Tally:
    """Statistics of some runs; times in seconds. `first` is the earliest arrival, `last` the latest end."""

    runs: int = 0
    admissions: int = 0
    preemptions: int = 0
    waits: list[float] = field(default_factory=list)  # from arrival to the first admission
    lost: float = 0.0  # lost work
    first: float = 0.0
    last: float = 0.0
    unfinished: int = 0

    @property
    def makespan(self) -> float:
        """The time from the first arrival to the last end."""
        return max(0.0, self.last - self.first)

    @property
    def mean_wait(self) -> float:
        """The mean wait of the runs that were admitted."""
        return sum(self.waits) / len(self.waits) if self.waits else 0.0


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """The outcome of a simulation.

    `used` is the mean utilisation in each bucket of the time, 0 to 1; `mean` is that of the whole time.
    """

    total: Tally
    teams: Mapping[str, Tally]
    waits: Mapping[str, float]
    resource: str
    capacity: int
    used: tuple[float, ...]
    mean: float
    peak: float
    endless: tuple[str, ...]
    waiting: tuple[str, ...]


def choose_utilisation_resource(setup: QuotaSetup) -> tuple[str, int]:
    """Return the resource in which utilisation is measured, GPUs (or similar), else CPU, and its quota."""
    amounts: dict[str, int] = {}
    for one in (*setup.queues, *setup.cohorts):
        for (_, resource), amount in one.nominal.items():
            amounts[resource] = amounts.get(resource, 0) + amount
    devices = {
        name: amount for name, amount in amounts.items() if name not in ("cpu", "memory", "pods") and amount
    }
    chosen = max(
        devices or amounts or {"cpu": 0}, key=lambda name: (is_gpu(name), amounts.get(name, 0), name)
    )
    return chosen, amounts.get(chosen, 0)


def compute_simulation_outcome(engine: Simulation, runs: Sequence[KueueWorkload]) -> SimulationOutcome:
    """Compute the outcome of a finished simulation."""
    chosen, capacity = choose_utilisation_resource(engine.state.setup)
    by_name = {run.name: run for run in runs}
    tallies: dict[str, Tally] = {}
    waits: dict[str, float] = {}
    for run in sorted(runs, key=lambda run: run.arrival):
        tally = tallies.setdefault(run.team, Tally(first=run.arrival))
        tally.runs += 1
        tally.lost += engine.lost.get(run.name, 0.0)
    steps: list[tuple[float, int]] = []
    for event in engine.events:
        run = by_name[event.run]
        tally, amount = tallies[run.team], sum(one.amounts.get(chosen, 0) for one in run.podsets)
        if event.what == "admitted":
            tally.admissions += 1
            if run.name not in waits:
                waits[run.name] = event.time - run.arrival
                tally.waits.append(waits[run.name])
            steps.append((event.time, amount))
        else:
            tally.preemptions += event.what == "preempted"
            if event.what == "finished":
                tally.last = max(tally.last, event.time)
            steps.append((event.time, -amount))
    waiting = tuple(run.name for run in engine.waiting())
    for name in waiting:
        tallies[by_name[name].team].unfinished += 1
    total = _sum_simulated_team_tallies(list(tallies.values()))
    used, mean, peak = _compute_simulated_utilisation(steps, total, capacity)
    endless = tuple(sorted(engine.endless))
    return SimulationOutcome(
        total, dict(sorted(tallies.items())), waits, chosen, capacity, used, mean, peak, endless, waiting
    )


def _sum_simulated_team_tallies(tallies: Sequence[Tally]) -> Tally:
    if not tallies:
        return Tally()
    return Tally(
        sum(one.runs for one in tallies),
        sum(one.admissions for one in tallies),
        sum(one.preemptions for one in tallies),
        [wait for one in tallies for wait in one.waits],
        sum(one.lost for one in tallies),
        min(one.first for one in tallies),
        max(one.last for one in tallies),
        sum(one.unfinished for one in tallies),
    )


def _compute_simulated_utilisation(
    steps: Sequence[tuple[float, int]], total: Tally, capacity: int
) -> tuple[tuple[float, ...], float, float]:
    """Return the utilisation of the capacity: per bucket of the makespan, on average, and at the peak."""
    if not capacity or not total.makespan:
        return (), 0.0, 0.0
    width = total.makespan / BUCKETS
    area = [0.0] * BUCKETS
    now, level, peak = total.first, 0, 0
    for time, change in (*steps, (total.last, 0)):
        if time > now:
            peak = max(peak, level)
        while now < time:
            bucket = min(BUCKETS - 1, int((now - total.first) / width))
            end = time if bucket == BUCKETS - 1 else min(time, total.first + (bucket + 1) * width)
            if end <= now:  # rounding: the edge of a bucket is where it starts
                end = min(time, now + width)
            area[bucket] += level * (end - now)
            now = end
        level += change
    used = tuple(one / (width * capacity) for one in area)
    return used, sum(area) / (total.makespan * capacity), peak / capacity
