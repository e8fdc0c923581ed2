"""Small stories: runs come to shared queues, others end; who is admitted and preempted after each step?

The stories are played to a real Kueue and to `gangplan.simulate`, step by step. After each step both must
have admitted and preempted the same runs. Every second story is played with fair sharing.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.e2e.admission import plots, runs, story_records, telling
from tests.e2e.admission.ask import PATIENT, plane
from tests.e2e.admission.plane import Plane
from tests.e2e.admission.story import Told
from tests.e2e.fidelity.sides import versions_of
from tests.lab.profiles import Profile

Object = dict[str, Any]
STRATEGIES = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
#: Stories in one lab at a time: each mostly waits until nothing more happens.
SIDE_BY_SIDE = 12


@dataclass(frozen=True, slots=True)
class Which:
    """Which stories to tell: the seed, the first number, how many, and where to record them."""

    seed: int
    count: int
    first: int = 0
    record: Path | None = None

    @property
    def numbers(self) -> list[int]:
        """The numbers of the stories that are not recorded yet."""
        kept = {one["number"] for one in story_records.lines_of(self.record)} if self.record else set()
        return [number for number in range(self.first, self.first + self.count) if number not in kept]


def tell(profile: Profile, which: Which, say: Callable[[str], None] = lambda _: None) -> list[Told]:
    """Tell the stories to both sides, without fair sharing and then with it."""
    teller = _Teller(profile, which, runs.rendered(profile), say)
    for fair in (False, True):
        extra = {"fairSharing": {"preemptionStrategies": STRATEGIES}} if fair else {}
        numbers = [number for number in which.numbers if number % 2 == fair]
        if not numbers:
            continue
        with plane(profile, extra) as real, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            list(pool.map(lambda number, real=real, fair=fair: teller.tell(real, number, fair), numbers))
    return sorted(teller.told, key=lambda one: one.name)


@dataclass(frozen=True, slots=True)
class _Teller:
    profile: Profile
    which: Which
    shapes: dict[str, list[Object]]
    say: Callable[[str], None]
    told: list[Told] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, real: Plane, number: int, fair: bool) -> None:
        """Tell one story; repeat it with more patience if a busy machine may have been late."""
        told = self._told(real, number, fair, f"s{number}")
        if not told.agrees:
            told = self._told(replace(real, patience=PATIENT), number, fair, f"s{number}b")
            told.times = 2
        self.told.append(told)
        self.say(f"{len(self.told)} stories, {sum(one.is_open for one in self.told)} told differently")

    def _told(self, real: Plane, number: int, fair: bool, name: str) -> Told:
        """Tell one story to both sides. Errors of the harness are recorded in the story, not raised."""
        told = Told(name, fair, [], [], [])
        versions = versions_of(self.profile)
        try:
            plot = plots.draw(versions, self.shapes, str(self.which.seed), number, name, fair)
            told.steps, told.simulated = list(plot.steps), list(plot.told)
            told.flavors = len(plot.scene.flavors)
            told.seen = telling.tell(real, plot)
            if self.which.record and (told.agrees or name.endswith("b")):
                kept = story_records.line(self.profile.name, self.which.seed, number, plot, versions, told)
                with self.lock, self.which.record.open("a", encoding="utf-8") as file:
                    file.write(f"{kept}\n")
        except Exception:  # noqa: BLE001  errors are reported with the story
            told.trouble = traceback.format_exc(limit=-3)
        return told
