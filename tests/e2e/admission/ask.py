"""Put random runs into random worlds of a lab, many worlds at a time, one run per world at a time."""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
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


def ask(
    plane: Plane, profile: Profile, seed: int, count: int, say: Callable[[str], None] = lambda _: None
) -> tuple[list[Answer], list[str]]:
    """Answers to `count` questions by seed, in their order, and the troubles of the harness itself."""
    shapes = runs.rendered(profile)
    answers: dict[int, list[Answer]] = {}
    troubles: list[str] = []
    began = time.monotonic()

    def world(number: int) -> None:
        try:
            answers[number] = _world(plane, profile, shapes, (seed, number, count), troubles)
        except Exception:  # noqa: BLE001  one world's trouble is told and does not end the others
            troubles.append(f"world {seed}/{number}: {traceback.format_exc(limit=-2)}")
        done = sum(map(len, answers.values()))
        say(f"{done} questions in {time.monotonic() - began:.0f} s, {len(troubles)} troubles")

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(world, range(-(-count // RUNS))))
    return list(itertools.chain.from_iterable(answers[number] for number in sorted(answers))), troubles


def _world(
    plane: Plane,
    profile: Profile,
    shapes: dict[str, list[runs.Object]],
    which: tuple[int, int, int],
    troubles: list[str],
) -> list[Answer]:
    """Set one world up, ask its questions (of seed, number, count), take it away."""
    seed, number, count = which
    scene, questions = _drawn(profile, shapes, f"w{number}", Random(f"{seed}/{number}"), number)
    found = []
    plane.build(scene)
    try:
        for question in questions[: count - number * RUNS]:
            try:
                answer = _answer(plane, profile, f"{seed}/{question.name}", question)
                if compare.opened(answer):
                    # A busy machine may show what is not the last word: asked once more, with more patience.
                    patient = replace(plane, patience=PATIENT)
                    answer = _answer(patient, profile, f"{seed}/{question.name}", question)
            except TooLateError as late:
                troubles.append(f"{seed}/{question.name}: {late}")
                continue
            found.append(answer)
    finally:
        plane.raze(scene)
    return found


def _answer(plane: Plane, profile: Profile, name: str, question: Question) -> Answer:
    """One question, asked once."""
    scene = question.scene
    world, bodies = scene.world(versions_of(profile)), tuple(question.judged)
    seen = plane.ask(question)
    return Answer(name, profile.name, world, bodies, seen, tuple(question.edits), scene.mistake)


def _drawn(
    profile: Profile, shapes: dict[str, list[runs.Object]], name: str, random: Random, number: int
) -> tuple[Scene, list[Question]]:
    """Every third world is a workspace rendered in whole; the others are drawn object by object."""
    if number % 3 == 2:
        return sites.draw(name, random, profile, RUNS)
    scene = scenes.draw(name, random)
    mistakes.make(scene)
    return scene, [runs.draw(scene, shapes, f"{name}-r{index}") for index in range(RUNS)]
