"""The events of a story: runs come, others end. They are drawn by seed, except for the first story.

Four of five stories are contended: guests come first and live on what the owner lends, then the owner and
more important runs come and take places, then these end, so that preempted runs may come back. Only stories
in which the simulation sees a preemption are played. Whether a run comes back is never chosen: that is what
the simulation may get wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from gangplan.validate.apiserver.schema import SchemaVersions
from tests.e2e.admission import sharing
from tests.e2e.admission.question import Question
from tests.e2e.admission.scene import POOL, Scene
from tests.e2e.admission.story import State, Step, has_preemption, simulated

Object = dict[str, Any]
Shapes = dict[str, list[Object]]
#: One story of so many is drawn without contention in mind; attempts to draw a preemption.
PLAIN_EVERY, ATTEMPTS = 5, 40
#: Of so many stories, two use what gangplan renders and the others plain Jobs with the same pods: to Kueue
#: they are the same, and they are less work for a lab.
RENDERED_EVERY = 8


@dataclass(frozen=True, slots=True)
class Plot:
    """A world, its runs, their events, and the states that the simulation expects."""

    scene: Scene
    questions: tuple[Question, ...]
    steps: tuple[Step, ...]
    fair: bool
    told: tuple[State, ...]


def draw(versions: SchemaVersions, shapes: Shapes, seed: str, number: int, name: str, fair: bool) -> Plot:
    """Draw the story with a number; number 0 is the simulator's first known bug."""
    if number == 0:
        return _whole(versions, *_preempted_from_the_first_flavor(shapes, name), fair)
    is_rendered = number % RENDERED_EVERY < 2
    contended = number % PLAIN_EVERY != 1
    for attempt in range(ATTEMPTS):
        random = Random(f"story {seed}/{number}/{attempt}")
        scene = sharing.draw(name, random, fair, contended)
        acts = _acts(scene, shapes, name) if contended else _plain(scene, shapes, name)
        if not is_rendered:
            for question in acts[0]:
                question.bodies = [sharing.as_job(question)]
        plot = _whole(versions, scene, *acts, fair)
        if not contended or has_preemption(plot.told):
            return plot
    return plot


def _whole(
    versions: SchemaVersions, scene: Scene, questions: Sequence[Question], steps: Sequence[Step], fair: bool
) -> Plot:
    told = simulated(scene.world(versions, fair), {one.name: one.judged for one in questions}, steps)
    return Plot(scene, tuple(questions), tuple(steps), fair, tuple(told))


def _plain(scene: Scene, shapes: Shapes, name: str) -> tuple[list[Question], list[Step]]:
    """Draw runs that come one after another; some earlier ones end in between."""
    random = scene.random
    questions = [sharing.draw_run(scene, shapes, f"{name}-r{index}") for index in range(random.randint(4, 8))]
    steps: list[Step] = []
    alive: list[str] = []
    for one in questions:
        steps.append(Step(one.name))
        alive.append(one.name)
        if len(alive) > 2 and random.random() < 0.3:
            gone = random.choice(alive)
            alive.remove(gone)
            steps.append(Step(gone, ends=True))
    return questions, steps


def _acts(scene: Scene, shapes: Shapes, name: str) -> tuple[list[Question], list[Step]]:
    """Draw a contended story: guests come, then the owner and more important runs, which end, mostly with
    others."""
    random, numbers = scene.random, iter(range(20))
    owner, guests = scene.entries[:1], scene.entries[1:]

    def come(entries: list[Any], levels: list[str]) -> Question:
        return sharing.draw_run(scene, shapes, f"{name}-r{next(numbers)}", entries, levels)

    first = [
        come(guests if random.random() < 0.7 else scene.entries, ["low", "low", "normal"])
        for _ in range(random.randint(2, 4))
    ]
    second = [
        come(owner if random.random() < 0.6 else scene.entries, ["normal", "high", "high"])
        for _ in range(random.randint(1, 3))
    ]
    steps = [Step(one.name) for one in (*first, *second)]
    ending = [one.name for one in second]
    random.shuffle(ending)
    late = [come(scene.entries, ["low", "normal", "high"])] if random.random() < 0.4 else []
    for gone in ending:
        steps.append(Step(gone, ends=True))
        if late and random.random() < 0.5:
            steps.append(Step(late[0].name))
            first, late = [*first, *late], []
    if random.random() < 0.4:
        steps.append(Step(random.choice(first).name, ends=True))
    known = {step.run for step in steps}
    return [one for one in (*first, *second, *late) if one.name in known], steps


def _preempted_from_the_first_flavor(shapes: Shapes, name: str) -> tuple[Scene, list[Question], list[Step]]:
    """Build a story of a guest that borrows the first flavor, is preempted by its owner, and comes back when
    a run of the owner ends.

    Until November 2026 the simulation kept it pending forever under Kueue 0.19.
    """
    scene = sharing.draw(name, Random(0), fair=False)
    scene.cohorts[1:], scene.queues[2:], scene.locals[2:], scene.entries[2:] = [], [], [], []
    flavors = [f"{name}-a", f"{name}-b"]
    for flavor in flavors[len(scene.flavors) :]:
        group = scene.groups[0]
        labels = {**group.labels, POOL: flavor}
        scene.groups.append(type(group)(flavor, 2, labels, (), group.free))
        scene.pool_of[flavor] = scene.groups[-1]
        scene.flavors[flavor] = sharing.kueue("ResourceFlavor", flavor, {"nodeLabels": {POOL: flavor}})
    for body, cores in zip(scene.queues, ((8, 0), (0, 0)), strict=True):
        spec = body["spec"]
        spec["cohortName"] = scene.cohorts[0]["metadata"]["name"]
        spec["queueingStrategy"] = "BestEffortFIFO"
        spec["preemption"] = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
        spec.pop("flavorFungibility")
        spec["resourceGroups"][0]["flavors"] = [
            {
                "name": flavor,
                "resources": [
                    {"name": "cpu", "nominalQuota": str(amount)},
                    {"name": "memory", "nominalQuota": "400Gi"},
                ],
            }
            for flavor, amount in zip(flavors, cores, strict=True)
        ]
    owner, guest = scene.entries
    runs = [(owner, "high"), (guest, "normal"), (owner, "high")]
    questions = []
    for index, (entry, level) in enumerate(runs):
        one = sharing.draw_run(scene, shapes, f"{name}-r{index}", [entry], [level])
        one.pod()["spec"]["nodeSelector"].pop(POOL, None)
        one.container()["resources"] = {
            part: {"cpu": "2", "memory": "1Gi"} for part in ("requests", "limits")
        }
        one.train_job["spec"]["trainer"]["numNodes"] = 2
        questions.append(one)
    names = [one.name for one in questions]
    return scene, questions, [*(Step(one) for one in names), Step(names[2], ends=True)]
