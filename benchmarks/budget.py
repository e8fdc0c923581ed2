"""How much is measured in a given time: a slow machine gets fewer repeats, then fewer specs, never no end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import gangplan
from benchmarks.workspace import write_workspace

#: Specs of the trial; no measured workspace is smaller.
TRIAL = 60
#: How often all specs are rendered and judged when long rows are run once, and once more for each repeat:
#: new, unchanged, one changed; memory at 0.3, 1 and 3 times the size; validate with workers and without.
RENDERED, VALIDATED = (4.3, 3.0), (1.9, 1.0)
#: Seconds of what does not grow with the workspace, by what a trial's validate takes.
REST = 12.0
#: What is left for a machine that slows down under way.
SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds that one spec takes to render and to validate, and those of a start."""

    render: float
    validate: float
    start: float

    def needs(self, specs: int, times: int) -> float:
        """Seconds that all sections take with so many specs and repeats."""
        rendered = RENDERED[0] + RENDERED[1] * times
        validated = VALIDATED[0] + VALIDATED[1] * times
        return specs * (rendered * self.render + validated * self.validate) + REST * self.start * (1 + times)


def speed_of(folder: Path, seed: int) -> Speed:
    """Try a small workspace: rendered and validated once, with one start taken off each."""
    workspace = folder / "trial"
    files = write_workspace(workspace, TRIAL, seed)
    one = ("-C", str(workspace), files[0])
    gangplan("render", *one, "--output", "-")  # the first start compiles modules
    start = _seconds(lambda: gangplan("validate", *one))
    rendered = _seconds(lambda: gangplan("render", "-C", str(workspace)))
    validated = _seconds(lambda: gangplan("validate", "-C", str(workspace)))
    shutil.rmtree(workspace)
    return Speed(
        max(rendered - start / 2, rendered / 4) / TRIAL, max(validated - start, validated / 4) / TRIAL, start
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def fitted(specs: int, times: int, speed: Speed, seconds: float) -> tuple[int, int]:
    """Specs and repeats that end in so many seconds: first fewer repeats, then half the specs, and so on."""
    while speed.needs(specs, times) > seconds * SHARE and (specs > TRIAL or times > 1):
        if times > 1:
            times -= 1
        else:
            specs = max(TRIAL, specs // 2)
    return specs, times
