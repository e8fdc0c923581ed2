"""Small stories: runs come to queues that share, others end; who is in after each step, and who had to go?

Told to a real Kueue and to `gangplan.simulate`, step by step; after each step both must have the same runs
admitted and the same ones preempted. Every second story is told with fair sharing.
"""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from gangplan.simulate import Engine, run_of, setup_of
from gangplan.validate.world import World
from tests.e2e.admission import runs, sharing
from tests.e2e.admission.ask import PATIENT, plane
from tests.e2e.admission.plane import PASSING, Plane, reserved
from tests.e2e.admission.question import Question
from tests.e2e.admission.scene import Scene
from tests.e2e.fidelity.sides import versions_of
from tests.lab.client import condition
from tests.lab.profiles import Profile

Object = dict[str, Any]
STRATEGIES = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
SIDE_BY_SIDE = 8
#: Seconds: how long nothing may happen before a step is over, and where Kueue has not said a word of a run
#: (nor will it, behind the head of a strict queue); how long a step may take; between simulated steps.
QUIET, SILENT, LONGEST, APART = 2.5, 10.0, 60.0, 100.0


@dataclass(frozen=True, slots=True)
class Step:
    """A run comes, or one ends (then `ends`)."""

    run: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """After a step: who is in, and who lost its place during the step."""

    admitted: frozenset[str]
    preempted: frozenset[str]

    def __str__(self) -> str:
        gone = f", preempted {', '.join(sorted(self.preempted))}" if self.preempted else ""
        return f"in: {', '.join(sorted(self.admitted)) or 'nobody'}{gone}"


NOBODY = State(frozenset(), frozenset())


@dataclass(slots=True)
class Told:
    """A story, and how both sides tell it."""

    name: str
    fair: bool
    steps: list[Step] = field(default_factory=list)
    simulated: list[State] = field(default_factory=list)
    seen: list[State] = field(default_factory=list)
    trouble: str = ""
    times: int = 1  # how often it was told to Kueue

    @property
    def agrees(self) -> bool:
        """Whether both sides tell the same."""
        return not self.trouble and self.simulated == self.seen

    @property
    def is_chance(self) -> bool:
        """Whether the two sides differ first in which of some runs had to go that came in during one step.

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
        """Who was in before a step."""
        return self.seen[step - 1].admitted if step else frozenset()


def tell(profile: Profile, seed: int, count: int, say: Callable[[str], None] = lambda _: None) -> list[Told]:
    """Tell `count` stories to both sides."""
    shapes = runs.rendered(profile)
    told: list[Told] = []
    for fair in (False, True):
        extra = {"fairSharing": {"preemptionStrategies": STRATEGIES}} if fair else {}
        numbers = [number for number in range(count) if number % 2 == fair]
        if not numbers:
            continue
        with plane(profile, extra) as real, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:

            def one(number: int, real: Plane = real, fair: bool = fair) -> Told:
                story = _tell(real, profile, shapes, f"{seed}/{number}", f"s{number}", fair)
                if not story.agrees:  # a busy machine may be late: once more, with time
                    patient = replace(real, patience=PATIENT)
                    story = _tell(patient, profile, shapes, f"{seed}/{number}", f"s{number}b", fair)
                    story.times = 2
                told.append(story)
                say(f"{len(told)} stories, {sum(not each.agrees for each in told)} told differently")
                return story

            list(pool.map(one, numbers))
    return sorted(told, key=lambda story: story.name)


def _tell(
    real: Plane, profile: Profile, shapes: dict[str, list[Object]], seed: str, name: str, fair: bool
) -> Told:
    """One story; trouble of the harness is told, not raised."""
    random = Random(f"story {seed}")
    story = Told(name, fair)
    try:
        scene = sharing.draw(name, random, fair)
        questions = [
            sharing.draw_run(scene, shapes, f"{name}-r{index}") for index in range(random.randint(4, 8))
        ]
        story.steps = _steps(random, [one.name for one in questions])
        story.simulated = simulated(scene.world(versions_of(profile), fair), questions, story.steps)
        story.seen = _seen(real, scene, {one.name: one for one in questions}, story)
    except Exception:  # noqa: BLE001  trouble is told with the story
        story.trouble = traceback.format_exc(limit=-3)
    return story


def _steps(random: Random, names: Sequence[str]) -> list[Step]:
    """All runs come one after the other; some that came earlier end in between."""
    steps: list[Step] = []
    alive: list[str] = []
    for name in names:
        steps.append(Step(name))
        alive.append(name)
        if len(alive) > 2 and random.random() < 0.3:
            gone = random.choice(alive)
            alive.remove(gone)
            steps.append(Step(gone, ends=True))
    return steps


def simulated(world: World, questions: Sequence[Question], steps: Sequence[Step]) -> list[State]:
    """What gangplan's simulation tells, step by step. Runs that are never admitted do not take part."""
    by_name = {one.name: one for one in questions}
    comes = {step.run: number * APART for number, step in enumerate(steps) if not step.ends}
    asking = [
        run
        for name, at in comes.items()
        if (run := run_of(world, by_name[name].bodies, name, duration=1e9, arrival=at)) is not None
    ]
    known, found = {run.name for run in asking}, []
    engine, done = Engine(setup_of(world), asking), 0
    for number, step in enumerate(steps):
        if step.run in known:
            if step.ends:
                _end(engine, step.run, number * APART)
            else:
                engine.step()
        events, done = engine.events[done:], len(engine.events)
        admitted = {holding.run.name for holding in _holdings(engine)}
        gone = {event.run for event in events if event.what == "preempted"} - admitted
        found.append(State(frozenset(admitted), frozenset(gone)))
    return found


def _holdings(engine: Engine) -> list[Any]:
    return list(itertools.chain.from_iterable(each.values() for each in engine.state.holdings))


def _end(engine: Engine, name: str, now: float) -> None:
    """A run is taken away: it ends, or it no longer waits."""
    for holding in _holdings(engine):
        if holding.run.name == name:
            engine.finish(holding, now)
    for pending in engine.pending:
        for asking in pending.all():
            if asking.run.name == name:
                pending.take(asking)
    engine.settle(now)


def _seen(real: Plane, scene: Scene, questions: dict[str, Question], story: Told) -> list[State]:
    """What the real Kueue does, step by step."""
    real.build(scene)
    found: list[State] = []
    alive: list[Question] = []
    try:
        for number, step in enumerate(story.steps):
            question = questions[step.run]
            if step.ends:
                alive.remove(question)
                real.remove(question)
            else:
                refusal = real.submit(question)
                assert not refusal, refusal
                alive.append(question)
            found.append(_settled(real, alive, found[-1] if found else None, story.simulated[number]))
    finally:
        for question in alive:
            real.remove(question)
        real.raze(scene)
    return found


def _settled(real: Plane, alive: Sequence[Question], before: State | None, expected: State) -> State:
    """The state once nothing happens any more: a while after the last change, longer if it surprises."""
    evicted = before.admitted if before else frozenset()
    began = since = time.monotonic()
    said: Any = None
    state = State(frozenset(), frozenset())
    while time.monotonic() - began < LONGEST:
        time.sleep(0.2)
        workloads = {one.name: real.watcher.workload(one.entry.namespace, one.name) for one in alive}
        look = {name: _look(item) for name, item in workloads.items()}
        if look != said:
            said, since = look, time.monotonic()
        admitted = frozenset(name for name, (_, is_in, _) in look.items() if is_in)
        names = frozenset(one.name for one in alive)
        state = State(admitted, (evicted & names) - admitted)
        calm = all(is_in or reason not in ("", *PASSING) for _, is_in, reason in look.values())
        surprises = state != expected
        wait = (QUIET, SILENT, 3 * SILENT, LONGEST)[2 * surprises + (not calm)]
        if time.monotonic() - since > real.patience * wait:
            return state
    return state


def _look(workload: Object | None) -> tuple[str, bool, str]:
    if workload is None:
        return "", False, ""
    return (
        workload["metadata"]["resourceVersion"],
        condition(workload, "Admitted") == "True",
        reserved(workload)[0],
    )


def lines(told: Sequence[Told], title: str) -> list[str]:
    """The report for people."""
    steps = sum(len(one.steps) for one in told)
    gone = sum(len(state.preempted) for one in told for state in one.seen)
    counts = f"stories {len(told)}, alike {sum(one.agrees for one in told)}"
    counts += f", another one of the same second {sum(one.is_chance for one in told)}; {steps} steps"
    counts += f", {gone} preemptions; {sum(one.times > 1 for one in told)} told twice"
    out = [f"who is admitted and who is preempted? {title}", f"  {counts}"]
    for one in told:
        if one.agrees:
            continue
        out.append(
            f"  {one.name}{' (fair sharing)' if one.fair else ''}: {one.trouble or 'told differently'}"
        )
        for step, mine, theirs in zip(one.steps, one.simulated, one.seen, strict=False):
            what = "ends" if step.ends else "comes"
            out.append(
                f"    {step.run} {what}: {mine}"
                if mine == theirs
                else f"    {step.run} {what}: simulated {mine}; Kueue {theirs}"
            )
    return out
