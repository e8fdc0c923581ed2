"""Random stories: small setups and steps drawn from a seed, with the events of their simulation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from gangplan.simulate.engine import Simulation
from tests.simulate.stories import Story, run_of, setup_of

STEPS = 6


def draw(seed: int, count: int, is_fair: bool) -> Iterator[Story]:
    """Yield `count` stories; stories whose end real queues leave to chance are skipped."""
    number = found = 0
    while found < count:
        number += 1
        story = _story(random.Random(f"{seed} {is_fair} {number}"), f"chance {_letters(number)}", is_fair)
        if story is not None:
            found += 1
            yield story


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _story(chance: random.Random, title: str, is_fair: bool) -> Story | None:
    cohorts, queues = _setup(chance, is_fair)
    story = Story(title, is_fair, cohorts, queues, [])
    engine = Simulation(setup_of(story), [])
    together: list[set[str]] = []
    names = iter("abcdefghij")
    for number in range(STEPS):
        held = sorted(one.run.name for rows in engine.state.holdings for one in rows.values())
        seen = len(engine.events)
        step: dict[str, Any]
        if held and chance.random() < 0.25:
            step = {"finish": chance.choice(held)}
            holding = next(
                one
                for rows in engine.state.holdings
                for one in rows.values()
                if one.run.name == step["finish"]
            )
            engine.finish(holding, 10.0 * number)
            engine.settle(10.0 * number)
        else:
            name, one = next(names), _run(chance, queues)
            step = {"submit": {name: one}}
            engine.submit(run_of(name, one, 10.0 * number), number)
            engine.settle(10.0 * number)
        news = [f"{event.what} {event.run}" for event in engine.events[seen:] if event.what != "finished"]
        if engine.endless or _is_chance(news, together):
            return None
        story.steps.append({**step, "then": news})
    return (
        story if any(line.startswith("preempted") for step in story.steps for line in step["then"]) else None
    )


def _is_chance(news: list[str], together: list[set[str]]) -> bool:
    """Return whether one of two runs admitted at one moment was preempted: Kueue then goes by random ids.

    Runs that are admitted and preempted in the same step also count: they come and go too fast to be seen.
    """
    admitted = [line.partition(" ")[2] for line in news if line.startswith("admitted")]
    preempted = [line.partition(" ")[2] for line in news if line.startswith("preempted")]
    if len(set(admitted)) < len(admitted) or len(set(preempted)) < len(preempted):
        return True
    if set(admitted) & set(preempted):
        return True
    if any(name in pair for name in preempted for pair in together):
        return True
    if len(admitted) > 1:
        together.append(set(admitted))
    return False


def _run(chance: random.Random, queues: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "queue": chance.choice(sorted(queues)),
        "cpu": chance.randint(1, 6),
        "priority": chance.choice((0, 10, 10, 20)),
    }


def _setup(
    chance: random.Random, is_fair: bool
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    cohorts: dict[str, dict[str, Any]] = {}
    homes = ["all"]
    if chance.random() < 0.4:
        homes = ["near", "far"]
        cohorts = {"top": {}, "near": {"parent": "top"}, "far": {"parent": "top"}}
        if chance.random() < 0.5:
            cohorts["near"]["cpu"] = chance.randint(1, 4)
    queues: dict[str, dict[str, Any]] = {}
    for name in ("one", "two", "three")[: chance.randint(1, 3)]:
        quota = chance.randint(0, 6)
        queue: dict[str, Any] = {"cpu": quota, "strict": chance.random() < 0.2}
        if chance.random() < 0.2:
            queue = {"flavors": {"fast": quota, "slow": chance.randint(0, 4)}}
        reclaim = chance.choice(("Never", "LowerPriority", "Any", "Any"))
        within = chance.choice(("Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"))
        borrow = "LowerPriority" if not is_fair and reclaim != "Never" and chance.random() < 0.3 else "Never"
        queue["preempt"] = [within, reclaim, borrow]
        if chance.random() < 0.9:
            queue["cohort"] = chance.choice(homes)
            if chance.random() < 0.2:
                queue["borrow"] = chance.randint(0, 4)
            if chance.random() < 0.2 and "cpu" in queue:
                queue["lend"] = chance.randint(0, quota)
            if is_fair:
                queue["weight"] = chance.randint(1, 3)
        queues[name] = queue
    return cohorts, queues
