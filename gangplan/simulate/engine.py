"""The simulation engine: runs arrive, are admitted, are preempted and finish, in order of time.

Between two events the scheduler runs until it finds nothing more to do. As a simplification, a preempted run
releases its quota at once (Kueue waits until its pods are gone). When quota is released, the heads of strict
queues are tried first: Kueue tries them all the time, and requeues blocked runs a second later
(pkg/cache/queue/inadmissible_workloads.go, v0.18.2 and v0.19.2: requeueBatchPeriod).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import floor
from typing import Literal

from gangplan.kueue.cycle import run_kueue_scheduling_cycle
from gangplan.kueue.model import KueueWorkload, QuotaSetup
from gangplan.kueue.pending import PendingQueue
from gangplan.kueue.state import (
    AdmittedWorkload,
    PendingWorkload,
    SchedulingState,
    WorkloadRequests,
    list_podset_requests_by_flavor,
    workload_equivalence_key_of,
)
from gangplan.records import dataclass

# How often a run may be preempted at one moment. Beyond this, runs preempt each other forever; so they do in
# a real queue, only more slowly.
MOST_TURNS = 20
FINISH, ARRIVE = 0, 1


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run; `time` is in seconds."""

    time: float
    what: Literal["admitted", "preempted", "finished"]
    run: str


class Simulation:
    """A simulation in progress."""

    def __init__(self, setup: QuotaSetup, runs: Iterable[KueueWorkload]) -> None:
        """Prepare a simulation. Every run must name a queue of the setup."""
        self.state = SchedulingState(setup)
        self.pending = [PendingQueue(queue.is_strict) for queue in setup.queues]
        self.events: list[Event] = []
        self.lost: dict[str, float] = {}  # run -> seconds of lost work
        self.endless: set[str] = set()
        self._numbers = {queue.name: number for number, queue in enumerate(setup.queues)}
        self._future: list[tuple[float, int, int, PendingWorkload | AdmittedWorkload]] = []
        self._admissions = 0
        self._freed = set[int]()  # queues that released quota since blocked runs were last retried
        groups = [group for queue in setup.queues for group in queue.groups]
        # An interrupted search for flavors continues in the next cycle, so a few cycles without changes are
        # not the end.
        self._patience = 2 + max((len(group.flavors) for group in groups), default=0)
        self._plans: dict[tuple[int, tuple[object, ...]], WorkloadRequests] = {}
        for number, run in enumerate(runs):
            self._future.append((run.arrival, ARRIVE, number, self._asking(run, number)))
        heapify(self._future)

    def _asking(self, run: KueueWorkload, number: int) -> PendingWorkload:
        queue, shape = self._numbers[run.queue], workload_equivalence_key_of(run)
        if (queue, shape) not in self._plans:
            self._plans[queue, shape] = list_podset_requests_by_flavor(
                self.state.tree, self.state.queue(queue), run
            )
        return PendingWorkload(run, queue, number, run.duration, shape, self._plans[queue, shape])

    def submit(self, run: KueueWorkload, number: int) -> None:
        """Add a run to its queue now; `settle` lets the scheduler try it."""
        asking = self._asking(run, number)
        self.pending[asking.queue].push(asking)

    def run(self) -> None:
        """Run all steps until no event is left."""
        while self._future:
            self.step()

    def step(self) -> float:
        """Process all events of the next moment and return its time."""
        now = self._future[0][0]
        while self._future and self._future[0][0] == now:
            _, _, _, what = heappop(self._future)
            if isinstance(what, PendingWorkload):
                self.pending[what.queue].push(what)
            elif self.state.holdings[what.queue].get(what.asking.number) is what:
                self.finish(what, now)
        self.settle(now)
        return now

    def finish(self, holding: AdmittedWorkload, now: float) -> None:
        """Finish a run and release its quota."""
        self.state.release(holding)
        self._freed.add(holding.queue)
        self.events.append(Event(now, "finished", holding.run.name))

    def settle(self, now: float) -> None:
        """Run cycles until nothing changes or the same runs only preempt each other."""
        idle, freed = 0, self._freed
        gone: Counter[str] = Counter()
        while True:
            cycle = run_kueue_scheduling_cycle(self.state, self.pending)
            for asking, usage in cycle.admitted:
                self._admit(asking, usage, now)
            for holding in cycle.preempted:
                self._preempt(holding, now)
                freed.add(holding.queue)
                gone[holding.run.name] += 1
            if cycle.preempted and max(gone.values()) > MOST_TURNS:
                self.endless.update(name for name, turns in gone.items() if turns > 1)
                return
            idle = 0 if cycle.is_news else idle + 1
            if cycle.is_news or (cycle.is_maybe and idle < self._patience):
                continue
            if not freed:
                return
            for queue in freed:
                self._retry(queue)
            freed.clear()

    def _admit(self, asking: PendingWorkload, usage: dict[int, int], now: float) -> None:
        self._admissions += 1
        holding = AdmittedWorkload(asking, usage, now, self._admissions)
        self.state.hold(holding)
        self.events.append(Event(now, "admitted", asking.run.name))
        heappush(self._future, (now + asking.rest, FINISH, self._admissions, holding))

    def _preempt(self, holding: AdmittedWorkload, now: float) -> None:
        self.state.release(holding)
        run, asking, done = holding.run, holding.asking, now - holding.since
        kept = 0.0
        if run.checkpoint is not None:
            kept = done if not run.checkpoint else floor(done / run.checkpoint) * run.checkpoint
        asking.rest -= kept
        self.lost[run.name] = self.lost.get(run.name, 0.0) + done - kept
        self.pending[asking.queue].push(asking)
        self.events.append(Event(now, "preempted", run.name))

    def _retry(self, queue: int) -> None:
        """Retry all waiting runs in the same tree of cohorts after quota was released."""
        tree = self.state.tree
        for other in tree.queues_below(tree.root(queue)):
            self.pending[other].retry()

    def waiting(self) -> list[KueueWorkload]:
        """Return the runs that still wait, by queue."""
        return [asking.run for pending in self.pending for asking in pending.all()]


def simulate_runs(setup: QuotaSetup, runs: Iterable[KueueWorkload]) -> Simulation:
    """Run a simulation to its end. The same input gives the same events."""
    engine = Simulation(setup, runs)
    engine.run()
    return engine
