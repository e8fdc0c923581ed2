"""What is measured in a given time: fewer repeats, then fewer specs, then fewer sections, never no end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import gangplan
from benchmarks.workspace import write_workspace

#: Specs of the trial; no main workspace is smaller.
TRIAL = 60
#: What is left for a machine that slows down under way.
SHARE = 0.85
#: Specs of the rows about clusters: enough to stand out from what stands there without them.
SIDE = 20
#: Teams of the rows about teams, of which each has at least one spec.
TEAMS = (25, 100)
#: Of the specs of the main workspace: how many the rows about engines have.
THIRD = 0.3


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds that one spec takes to render and to validate on three clusters, and those of a start."""

    render: float
    validate: float
    start: float

    def parts(self, specs: int, times: int) -> dict[str, float]:
        """Seconds of each section with so many specs and repeats, in the order in which they are measured.

        Numbers before `start` count commands that a person waits for, or what takes as long.
        """
        rendered, validated = specs * self.render, specs * self.validate
        return {
            "start": 28 * self.start,
            "work": rendered * (times + 2) + validated * (times + 1) + 6 * times * self.start,
            "review": 3 * rendered + 5 * times * self.start,
            "others": 20 * self.start,
            "judges": 6 * self.start,
            "teams": 16 / 3 * TEAMS[-1] * self.validate + 12 * self.start,
            "clusters": 74 / 3 * SIDE * self.validate + 8 * self.start,
            "engines": 5 * THIRD * validated + 4 * self.start,
            "changes": THIRD * rendered + (3 + 2 * times) * self.start,
            "sizes": 4.3 * validated + 3 * self.start,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: specs of the main workspace, repeats of long rows, and seconds of each section."""

    specs: int
    times: int
    sections: dict[str, float]

    def fits(self, section: str, left_s: float, slower: float = 1.0) -> bool:
        """Whether a section ends in the time that is left, on a machine that got slower by this factor."""
        return self.sections[section] * max(slower, 1.0) <= left_s


def plan(specs: int, times: int, speed: Speed, seconds: float) -> Plan:
    """What ends in so many seconds: first fewer repeats, then half the specs, and so on, to one and TRIAL."""
    within = seconds * SHARE
    while sum(speed.parts(specs, times).values()) > within and (specs > TRIAL or times > 1):
        if times > 1:
            times -= 1
        else:
            specs = max(TRIAL, specs // 2)
    return Plan(specs, times, speed.parts(specs, times))


def speed_of(folder: Path, seed: int) -> Speed:
    """Try a small workspace: rendered and validated once, with one start taken off each."""
    workspace = folder / "trial"
    files = write_workspace(workspace, TRIAL, seed)
    here = ("--no-cache", "-C", str(workspace))
    gangplan("render", *here, files[0], "--output", "-")  # the first start compiles modules
    start = _seconds(lambda: gangplan("validate", *here, files[0]))
    rendered = _seconds(lambda: gangplan("render", *here))
    validated = _seconds(lambda: gangplan("validate", *here))
    shutil.rmtree(workspace)
    return Speed(
        max(rendered - start / 2, rendered / 4) / TRIAL, max(validated - start, validated / 4) / TRIAL, start
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
