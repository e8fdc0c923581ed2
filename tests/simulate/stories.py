"""The stories of stories.yaml as setups and steps, and their simulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from gangplan.kueue.model import (
    ClusterQueue,
    KueueWorkload,
    Member,
    Podset,
    PreemptionRules,
    QuotaSetup,
    ResourceGroup,
)
from gangplan.kueue.units import convert_to_kueue_count
from gangplan.simulate.engine import Simulation
from tests import plain

FILE = Path(__file__).with_name("stories.yaml")
CPU, FLAVOR = "cpu", "default"
FOREVER = 1e9


@dataclass(frozen=True)
class Story:
    """A story as it is written."""

    title: str
    is_fair: bool
    cohorts: dict[str, dict[str, Any]]
    queues: dict[str, dict[str, Any]]
    steps: list[dict[str, Any]]

    @property
    def key(self) -> str:
        """A short name that objects may have."""
        words = [word for word in self.title.replace(",", "").replace(";", "").split() if word.isalpha()]
        return "-".join(words)[:24].rstrip("-").lower()


def all_stories() -> list[Story]:
    """Return every story of the file."""
    return [
        Story(one["story"], one.get("fair", False), one.get("cohorts", {}), one["queues"], one["steps"])
        for one in plain.load(FILE.read_text())
    ]


def flavors_of(queue: dict[str, Any]) -> dict[str, int]:
    """Return the quota of a queue, by flavor."""
    return dict(queue.get("flavors") or {FLAVOR: queue["cpu"]})


def setup_of(story: Story) -> QuotaSetup:
    """Return the queues of a story."""
    cohorts = tuple(
        Member(
            name,
            one.get("parent", ""),
            {(FLAVOR, CPU): _units(one["cpu"])} if "cpu" in one else {},
            {},
            {},
            float(one.get("weight", 1)),
        )
        for name, one in story.cohorts.items()
    )
    return QuotaSetup(tuple(_queue(name, one) for name, one in story.queues.items()), cohorts, story.is_fair)


def _units(cores: int) -> int:
    return convert_to_kueue_count(CPU, Fraction(cores))


def _queue(name: str, one: dict[str, Any]) -> ClusterQueue:
    flavors = flavors_of(one)
    within, reclaim, borrow = one.get("preempt", ("Never", "Never", "Never"))

    def limit(field: str) -> dict[tuple[str, str], int]:
        return {(flavor, CPU): _units(one[field]) for flavor in flavors} if field in one else {}

    return ClusterQueue(
        name,
        one.get("cohort", ""),
        {(flavor, CPU): _units(amount) for flavor, amount in flavors.items()},
        limit("borrow"),
        limit("lend"),
        float(one.get("weight", 1)),
        (ResourceGroup((CPU,), tuple(flavors)),),
        one.get("strict", False),
        PreemptionRules(within, reclaim, borrow, one.get("threshold")),
    )


def run_of(name: str, one: dict[str, Any], arrival: float) -> KueueWorkload:
    """Return a run of a story."""
    podset = Podset("main", 1, {CPU: _units(one["cpu"])})
    return KueueWorkload(name, one["queue"], (podset,), one.get("priority", 0), FOREVER, arrival)


def tell(story: Story) -> Iterator[list[str]]:
    """Yield the events after each step: `admitted a`, `preempted b`. Steps are ten seconds apart."""
    runs = [
        run_of(name, one, 10.0 * number)
        for number, step in enumerate(story.steps)
        for name, one in step.get("submit", {}).items()
    ]
    engine = Simulation(setup_of(story), runs)
    for number, step in enumerate(story.steps):
        seen = len(engine.events)
        if "submit" in step:
            assert engine.step() == 10.0 * number
        else:
            name = step["finish"]
            holding = next(
                one for held in engine.state.holdings for one in held.values() if one.run.name == name
            )
            engine.finish(holding, 10.0 * number)
            engine.settle(10.0 * number)
        yield [f"{event.what} {event.run}" for event in engine.events[seen:] if event.what != "finished"]
