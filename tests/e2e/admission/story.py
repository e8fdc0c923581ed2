"""A story: which runs are admitted and preempted after each step, in the simulation and in Kueue."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gangplan.simulate import Simulation, read_workload
from gangplan.validate.kueue.members import read_quota_setup_of_cluster
from gangplan.validate.world import World

Object = dict[str, Any]
#: Seconds between simulated steps.
APART = 100.0


@dataclass(frozen=True, slots=True)
class Step:
    """A run comes, or ends if `ends` is set."""

    run: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """The runs that are admitted after a step, and those that were preempted during it."""

    admitted: frozenset[str]
    preempted: frozenset[str]

    def __str__(self) -> str:
        gone = f", preempted {', '.join(sorted(self.preempted))}" if self.preempted else ""
        return f"in: {', '.join(sorted(self.admitted)) or 'nobody'}{gone}"


NOBODY = State(frozenset(), frozenset())


def has_preemption(states: Sequence[State]) -> bool:
    """Return whether a run was preempted."""
    return any(state.preempted for state in states)


def has_return(states: Sequence[State]) -> bool:
    """Return whether a preempted run was admitted again after a later step."""
    gone: set[str] = set()
    for state in states:
        if gone & state.admitted:
            return True
        gone |= state.preempted
    return False


@dataclass(slots=True)
class Told:
    """A story as both sides tell it. `flavors` counts the flavors of its queues."""

    name: str
    fair: bool
    steps: list[Step]
    simulated: list[State]
    seen: list[State]
    flavors: int = 1
    trouble: str = ""
    times: int = 1  # how often it was played to Kueue

    @property
    def agrees(self) -> bool:
        """Whether both sides tell the same story."""
        return not self.trouble and self.simulated == self.seen

    @property
    def is_open(self) -> bool:
        """Whether they tell different stories, and not by chance."""
        return not self.agrees and not self.is_chance

    @property
    def is_rich(self) -> bool:
        """Whether it has several flavors, a preemption, and a preempted run that comes back."""
        return self.flavors > 1 and has_preemption(self.seen) and has_return(self.seen)

    @property
    def is_chance(self) -> bool:
        """Whether the sides first differ only in which run, of some admitted in the same step, was preempted.

        Among runs admitted in the same second Kueue chooses by their random ids
        (pkg/scheduler/preemption/common CandidatesOrdering); the simulation takes the last one.
        """
        pairs = enumerate(zip(self.simulated, self.seen, strict=False))
        at, (mine, theirs) = next(
            ((at, pair) for at, pair in pairs if pair[0] != pair[1]), (0, (NOBODY, NOBODY))
        )
        either = mine.preempted ^ theirs.preempted
        if self.trouble or not mine.preempted - theirs.preempted or not theirs.preempted - mine.preempted:
            return False
        came = {
            name: max(step for step in range(at) if name not in self._before(step))
            for name in either
            if name in self.seen[at - 1].admitted
        }
        return came.keys() == either and len(set(came.values())) == 1

    def _before(self, step: int) -> frozenset[str]:
        """Return the runs that were admitted before a step."""
        return self.seen[step - 1].admitted if step else frozenset()


def simulated(world: World, runs: Mapping[str, Sequence[Object]], steps: Sequence[Step]) -> list[State]:
    """Simulate runs (their objects by name) step by step, and return the state after each step.

    Runs that are never admitted do not take part.
    """
    comes = {step.run: number * APART for number, step in enumerate(steps) if not step.ends}
    asking = [
        run
        for name, at in comes.items()
        if (run := read_workload(world, runs[name], name, duration=1e9, arrival=at)) is not None
    ]
    known, found = {run.name for run in asking}, []
    engine, done = Simulation(read_quota_setup_of_cluster(world), asking), 0
    for number, step in enumerate(steps):
        if step.run in known:
            if step.ends:
                _end(engine, step.run, number * APART)
            else:
                engine.step()
        events, done = engine.events[done:], len(engine.events)
        admitted = {holding.run.name for holding in _holdings(engine)}
        # Kueue is observed once it is calm: a run that came and went in between is not seen there.
        before = found[-1].admitted if found else frozenset()
        gone = ({event.run for event in events if event.what == "preempted"} & before) - admitted
        found.append(State(frozenset(admitted), frozenset(gone)))
    return found


def _holdings(engine: Simulation) -> list[Any]:
    return list(itertools.chain.from_iterable(each.values() for each in engine.state.holdings))


def _end(engine: Simulation, name: str, now: float) -> None:
    """Remove a run: it ends, or it is no longer pending."""
    for holding in _holdings(engine):
        if holding.run.name == name:
            engine.finish(holding, now)
    for pending in engine.pending:
        for asking in pending.all():
            if asking.run.name == name:
                pending.take(asking)
    engine.settle(now)


def lines(told: Sequence[Told], title: str) -> list[str]:
    """Return the lines of the report: counts, what the stories cover, and those with other ends."""
    steps = sum(len(one.steps) for one in told)
    gone = sum(len(state.preempted) for one in told for state in one.seen)
    counts = f"stories {len(told)}, alike {sum(one.agrees for one in told)}"
    counts += f", another one of the same second {sum(not one.agrees and one.is_chance for one in told)}"
    counts += f", open {sum(one.is_open for one in told)}; {steps} steps"
    counts += f", {gone} preemptions; {sum(one.times > 1 for one in told)} told twice"
    out = [f"who is admitted and who is preempted? {title}", f"  {counts}", f"  {shares(told)}"]
    for one in told:
        if one.agrees:
            continue
        what = one.trouble or ("another one of the same second" if one.is_chance else "told differently")
        out.append(f"  {one.name}{' (fair sharing)' if one.fair else ''}: {what}")
        for step, mine, theirs in zip(one.steps, one.simulated, one.seen, strict=False):
            what = "ends" if step.ends else "comes"
            out.append(
                f"    {step.run} {what}: {mine}"
                if mine == theirs
                else f"    {step.run} {what}: simulated {mine}; Kueue {theirs}"
            )
    return out


def shares(told: Sequence[Told]) -> str:
    """Return how many stories have what is worth testing, by what Kueue did."""
    parts = {
        "a preemption": sum(has_preemption(one.seen) for one in told),
        "a preempted run that came back": sum(has_return(one.seen) for one in told),
        "several flavors": sum(one.flavors > 1 for one in told),
        "all three": sum(one.is_rich for one in told),
    }
    return "with " + ", ".join(
        f"{what} {count} ({100 * count // max(1, len(told))} %)" for what, count in parts.items()
    )
