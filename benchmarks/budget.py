"""Choose what to measure in a given time: fewer repeats, then fewer specs, then fewer sections."""

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
#: The share of the time that is planned; the rest is for a machine that slows down meanwhile.
SHARE = 0.85
#: Specs of the rows about clusters: enough to show next to the cost of the clusters themselves.
SIDE = 20
#: Teams of the rows about teams; each team has at least one spec.
TEAMS = (25, 100)
#: The share of the main workspace's specs that the rows about engines have.
THIRD = 0.3


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds to render and to validate one spec on three clusters, and seconds of a start."""

    render: float
    validate: float
    start: float

    def parts(self, specs: int, times: int) -> dict[str, float]:
        """Return the seconds of each section with so many specs and repeats, in the order of measurement.

        Factors of `start` count short commands, or work that takes as long.
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
    """What to measure: specs of the main workspace, repeats of long rows, and seconds of each section."""

    specs: int
    times: int
    sections: dict[str, float]

    def fits(self, section: str, left_s: float, slower: float = 1.0) -> bool:
        """Return whether a section ends in the remaining time, on a machine that is slower by this factor."""
        return self.sections[section] * max(slower, 1.0) <= left_s


def plan(specs: int, times: int, speed: Speed, seconds: float) -> Plan:
    """Plan what ends in so many seconds: reduce the repeats to one, then halve the specs, down to TRIAL."""
    within = seconds * SHARE
    while sum(speed.parts(specs, times).values()) > within and (specs > TRIAL or times > 1):
        if times > 1:
            times -= 1
        else:
            specs = max(TRIAL, specs // 2)
    return Plan(specs, times, speed.parts(specs, times))


def speed_of(folder: Path, seed: int) -> Speed:
    """Measure a small workspace: render and validate it once, without the time of a start."""
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
