"""A command in; its wall time, processor time and peak memory out, as the operating system counted them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Run:
    """One run: seconds on the clock, seconds of processor (its children's too), and peak memory in MiB."""

    wall_s: float
    cpu_s: float
    own_mib: float
    worker_mib: float = 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """The runs of one row, with the number of units (jobs, runs) that each of them did."""

    name: str
    runs: tuple[Run, ...]
    note: str = ""
    scale: float = 1.0

    @property
    def walls(self) -> list[float]:
        """Seconds on the clock, scaled, in order."""
        return sorted(run.wall_s * self.scale for run in self.runs)

    @property
    def wall_s(self) -> float:
        """The median on the clock."""
        return statistics.median(self.walls)

    @property
    def cpu_s(self) -> float:
        """The median of processor time."""
        return statistics.median(run.cpu_s for run in self.runs) * self.scale

    @property
    def own_mib(self) -> float:
        """The largest peak of the process itself."""
        return max(run.own_mib for run in self.runs)

    @property
    def worker_mib(self) -> float:
        """The largest peak of any process below it."""
        return max(run.worker_mib for run in self.runs)


def command(words: Sequence[str], cwd: Path | None = None) -> Run:
    """Run a program to its end. Raises SystemExit with its last words when it fails."""
    before = time.perf_counter()
    process = subprocess.Popen(words, cwd=cwd or _ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{Path(words[0]).name} {' '.join(words[1:])} failed:\n{said.decode()[-2000:]}")
    return Run(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def gangplan(*words: str) -> Run:
    """Run gangplan in a process of its own, and tell its memory from its workers'."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.probe", str(writing), *words],
        cwd=_ROOT,
        pass_fds=(writing,),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.close(writing)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    with os.fdopen(reading) as pipe:
        peaks = [float(word) for word in pipe.read().split()]
    if process.returncode != 0 or len(peaks) != 2:
        raise SystemExit(f"gangplan {' '.join(words)} failed:\n{said.decode()[-2000:]}")
    return Run(wall_s, usage.ru_utime + usage.ru_stime, *peaks)


def repeat(name: str, times: int, once: Callable[[], Run], note: str = "", scale: float = 1.0) -> Figure:
    """A figure of several runs."""
    return Figure(name, tuple(once() for _ in range(times)), note, scale)
