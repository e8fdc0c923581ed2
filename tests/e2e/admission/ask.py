"""Put random runs into random worlds of a lab, many worlds at a time, one run per world at a time."""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import Any

from tests.e2e.admission import compare, mistakes, runs, scenes, sites
from tests.e2e.admission.plane import Plane
from tests.e2e.admission.question import Question
from tests.e2e.admission.recording import Answer
from tests.e2e.admission.scene import Scene
from tests.e2e.admission.watcher import Watcher
from tests.e2e.fidelity.sides import versions_of
from tests.lab.client import TooLateError
from tests.lab.lab import Lab
from tests.lab.profiles import Profile
from tests.lab.stages import Plot, Story

#: Runs of one world, and worlds side by side: a world mostly waits.
RUNS, SIDE_BY_SIDE = 8, 8
#: How much longer an answer that surprises is waited for the second time.
PATIENT = 4.0
#: Kueue from 0.19 on can give its finer reasons.
FINE = (0, 19)


def settings(profile: Profile, extra: Mapping[str, Any]) -> dict[str, Any]:
    """What the lab's Kueue is told beside its own configuration."""
    gates = {"VisibilityOnDemand": False}
    if tuple(map(int, profile.kueue.split(".")[:2])) >= FINE:
        gates["UnadmittedWorkloadsObservability"] = True
    return {"kueue": {"featureGates": gates, **extra}}


@contextmanager
def plane(profile: Profile, extra: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Plane]:
    """A lab in which pods run on for ever."""
    with Lab(profile, settings=settings(profile, extra)) as lab:
        lab.tell(Story(Plot.RUN))
        watcher = Watcher(lab)
        try:
            yield Plane(lab, watcher)
        finally:
            watcher.close()


@dataclass(frozen=True, slots=True)
class Which:
    """Which questions: the seed, how many in all, how many at most in each world."""

    seed: int
    count: int
    each: int = RUNS


def ask(
    plane: Plane, profile: Profile, which: Which, say: Callable[[str], None] = lambda _: None
) -> tuple[list[Answer], list[str]]:
    """Answers to the questions in their order, and the troubles of the harness itself."""
    asker = _Asker(plane, profile, which, runs.rendered(profile))
    began = time.monotonic()

    def world(number: int) -> None:
        asker.world(number)
        done = sum(map(len, asker.answers.values()))
        say(f"{done} questions in {time.monotonic() - began:.0f} s, {len(asker.troubles)} troubles")

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(world, range(-(-which.count // which.each))))
    ordered = (asker.answers[number] for number in sorted(asker.answers))
    return list(itertools.chain.from_iterable(ordered)), asker.troubles


@dataclass(frozen=True, slots=True)
class _Asker:
    """Many worlds of one lab, several at a time."""

    plane: Plane
    profile: Profile
    which: Which
    shapes: dict[str, list[runs.Object]]
    answers: dict[int, list[Answer]] = field(default_factory=dict)  # by world
    troubles: list[str] = field(default_factory=list)

    def world(self, number: int) -> None:
        """One world; once more, under another name, after trouble. Trouble is told, other worlds go on."""
        for name in (f"w{self.which.seed}-{number}", f"w{self.which.seed}-{number}b"):
            try:
                self.answers[number] = self._asked(name, number)
            except Exception:  # noqa: BLE001  also what nobody thought of must not end the other worlds
                trouble = f"world {self.which.seed}/{number}: {traceback.format_exc(limit=-2)}"
            else:
                return
        self.troubles.append(trouble)

    def _asked(self, name: str, number: int) -> list[Answer]:
        """Set a world up, ask its questions, take it away."""
        which = self.which
        count = min(which.each, which.count - number * which.each)
        scene, questions = self._drawn(name, number)
        try:
            self.plane.build(scene)
            return [self._answered(f"{which.seed}/{one.name}", one) for one in questions[:count]]
        finally:
            self.plane.raze(scene)

    def _drawn(self, name: str, number: int) -> tuple[Scene, list[Question]]:
        """Every third world is a workspace rendered in whole; the others are drawn object by object."""
        random = Random(f"{self.which.seed}/{number}")
        if number % 3 == 2:
            return sites.draw(name, random, self.profile, self.which.each)
        scene = scenes.draw(name, random)
        mistakes.make(scene)
        return scene, [runs.draw(scene, self.shapes, f"{name}-r{index}") for index in range(self.which.each)]

    def _answered(self, name: str, question: Question) -> Answer:
        """One question; asked once more, with patience, where a busy machine may not have said its last."""
        try:
            answer = self._answer(self.plane, name, question)
            if not compare.opened(answer):
                return answer
        except TooLateError:
            pass
        answer = self._answer(replace(self.plane, patience=PATIENT), name, question)
        return replace(answer, asked=2)

    def _answer(self, plane: Plane, name: str, question: Question) -> Answer:
        """One question, asked once."""
        scene = question.scene
        world, bodies = scene.world(versions_of(self.profile)), tuple(question.judged)
        seen = plane.ask(question)
        return Answer(name, self.profile.name, world, bodies, seen, tuple(question.edits), scene.mistake)
