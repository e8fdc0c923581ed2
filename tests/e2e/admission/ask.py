"""Submit random runs to random worlds of a lab: many worlds at a time, one run per world at a time."""

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

#: Runs of one world, and worlds at the same time: a world mostly waits.
RUNS, SIDE_BY_SIDE = 8, 8
#: The factor by which the second attempt at a surprising question waits longer.
PATIENT = 4.0
#: The first Kueue that can give finer reasons.
FINE = (0, 19)


def settings(profile: Profile, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lab's Kueue settings that are added to its own configuration."""
    gates = {"VisibilityOnDemand": False}
    if tuple(map(int, profile.kueue.split(".")[:2])) >= FINE:
        gates["UnadmittedWorkloadsObservability"] = True
    return {"kueue": {"featureGates": gates, **extra}}


@contextmanager
def plane(profile: Profile, extra: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Plane]:
    """Run a lab in which pods run forever."""
    with Lab(profile, settings=settings(profile, extra)) as lab:
        lab.tell(Story(Plot.RUN))
        watcher = Watcher(lab)
        try:
            yield Plane(lab, watcher)
        finally:
            watcher.close()


@dataclass(frozen=True, slots=True)
class Which:
    """Which questions to ask: the seed, how many in all, and how many at most in each world."""

    seed: int
    count: int
    each: int = RUNS


def ask(
    plane: Plane, profile: Profile, which: Which, say: Callable[[str], None] = lambda _: None
) -> tuple[list[Answer], list[str]]:
    """Return the answers in the order of the questions, and the errors of the harness itself."""
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
    """Asks the questions of many worlds of one lab, several worlds at a time."""

    plane: Plane
    profile: Profile
    which: Which
    shapes: dict[str, list[runs.Object]]
    answers: dict[int, list[Answer]] = field(default_factory=dict)  # by world
    troubles: list[str] = field(default_factory=list)

    def world(self, number: int) -> None:
        """Ask the questions of one world, and try once more under another name after an error.
        A second error is recorded; other worlds go on."""
        for name in (f"w{self.which.seed}-{number}", f"w{self.which.seed}-{number}b"):
            try:
                self.answers[number] = self._asked(name, number)
            except Exception:  # noqa: BLE001  also what nobody thought of must not end the other worlds
                trouble = f"world {self.which.seed}/{number}: {traceback.format_exc(limit=-2)}"
            else:
                return
        self.troubles.append(trouble)

    def _asked(self, name: str, number: int) -> list[Answer]:
        """Set up a world, ask its questions, and remove it."""
        which = self.which
        count = min(which.each, which.count - number * which.each)
        scene, questions = self._drawn(name, number)
        try:
            self.plane.build(scene)
            return [self._answered(f"{which.seed}/{one.name}", one) for one in questions[:count]]
        finally:
            self.plane.raze(scene)

    def _drawn(self, name: str, number: int) -> tuple[Scene, list[Question]]:
        """Draw a world and its questions: every third world is a rendered workspace, the others are drawn by
        object."""
        random = Random(f"{self.which.seed}/{number}")
        if number % 3 == 2:
            return sites.draw(name, random, self.profile, self.which.each)
        scene = scenes.draw(name, random)
        mistakes.make(scene)
        return scene, [runs.draw(scene, self.shapes, f"{name}-r{index}") for index in range(self.which.each)]

    def _answered(self, name: str, question: Question) -> Answer:
        """Answer one question; ask again with more patience if a busy machine may not have given its final
        answer."""
        try:
            answer = self._answer(self.plane, name, question)
            if not compare.opened(answer):
                return answer
        except TooLateError:
            pass
        answer = self._answer(replace(self.plane, patience=PATIENT), name, question)
        return replace(answer, asked=2)

    def _answer(self, plane: Plane, name: str, question: Question) -> Answer:
        """Ask one question once."""
        scene = question.scene
        world, bodies = scene.world(versions_of(self.profile)), tuple(question.judged)
        seen = plane.ask(question)
        return Answer(name, self.profile.name, world, bodies, seen, tuple(question.edits), scene.mistake)
