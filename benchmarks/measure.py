"""Run a command and measure its wall time, processor time and peak memory, as the operating system counts."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

_ROOT = Path(__file__).resolve().parent.parent
#: The base of ratios: an interpreter that does nothing.
BARE = (sys.executable, "-c", "pass")


class ProgramError(Exception):
    """A measured program ended with an exit code that its row does not expect."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: wall time and processor time with children in seconds, peak memory in MiB (0: unknown)."""

    wall_s: float
    cpu_s: float
    own_mib: float
    worker_mib: float = 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """The runs of one row.

    `units` is the number of training runs that each of them processed, 0 if the row has no such number.
    `base_cpu_s` is the processor time in seconds of the same command with next to no runs. `scale` converts
    the time of a part to that of the whole.
    """

    name: str
    runs: tuple[Run, ...]
    note: str = ""
    scale: float = 1.0
    units: int = 0
    base_cpu_s: float = 0.0

    @property
    def wall_s(self) -> float:
        """The median wall time in seconds."""
        return statistics.median(run.wall_s for run in self.runs) * self.scale

    @property
    def cpu_s(self) -> float:
        """The median processor time in seconds."""
        return statistics.median(run.cpu_s for run in self.runs) * self.scale

    @property
    def unit_cpu_s(self) -> float:
        """The processor time in seconds per training run, without the base."""
        return (self.cpu_s - self.base_cpu_s) / self.units if self.units else 0.0

    @property
    def own_mib(self) -> float:
        """The largest peak of the process itself, in MiB."""
        return max(run.own_mib for run in self.runs)

    @property
    def worker_mib(self) -> float:
        """The largest peak of any child process, in MiB."""
        return max(run.worker_mib for run in self.runs)


def command(
    words: Sequence[str],
    cwd: Path | None = None,
    good: Sequence[int] = (0,),
    out: Path | None = None,
    limit_s: float | None = None,
) -> Run:
    """Run a program to its end; its output goes to `out`, if given.

    After `limit_s` seconds, it is terminated. Raises ProgramError with the end of its output.
    """
    return _run(words, cwd, good, out, limit_s=limit_s)[0]


def gangplan(*words: str) -> Run:
    """Run gangplan in a process of its own, and measure its memory and its workers' separately."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    probe = [sys.executable, "-m", "benchmarks.probe", str(writing), *words]
    try:
        run, said = _run(probe, None, (0,), None, writing)
    finally:
        with os.fdopen(reading) as pipe:
            peaks = [float(word) for word in pipe.read().split()]
    if len(peaks) != 2:
        raise ProgramError(f"gangplan {' '.join(words)} told no peaks:\n{said[-2000:]}")
    return Run(run.wall_s, run.cpu_s, *peaks)


def _run(
    words: Sequence[str],
    cwd: Path | None,
    good: Sequence[int],
    out: Path | None,
    pipe: int | None = None,
    limit_s: float | None = None,
) -> tuple[Run, str]:
    before = time.perf_counter()
    with open(out or os.devnull, "wb") as target:
        process = subprocess.Popen(
            words,
            cwd=cwd or _ROOT,
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            pass_fds=() if pipe is None else (pipe,),
            stdout=target if out else subprocess.PIPE,
            stderr=subprocess.PIPE if out else subprocess.STDOUT,
        )
    if pipe is not None:
        os.close(pipe)
    spoken = process.stderr if out else process.stdout
    assert spoken is not None
    timer = Timer(limit_s or 0.0, process.terminate)
    if limit_s:
        timer.start()
    with spoken:
        said = spoken.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    wall_s = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in good:
        name = " ".join([Path(words[0]).name, *words[1:]])
        raise ProgramError(f"{name} failed with {process.returncode}:\n{said[-2000:]}")
    # Linux counts the memory of the parent process as the program's, so a peak below that is unknown.
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_mib = usage.ru_maxrss / 1024 if usage.ru_maxrss > ours * 1.01 else 0.0
    return Run(wall_s, usage.ru_utime + usage.ru_stime, peak_mib), said


def repeat(name: str, times: int, once: Callable[[], Run], note: str = "", units: int = 0) -> Figure:
    """Return the figure of several runs."""
    return Figure(name, tuple(once() for _ in range(times)), note, units=units)


def bare(times: int = 7) -> Figure:
    """Measure the base of ratios at the time of the rows, because machines change their speed."""
    return repeat("python -c pass", times, lambda: command(BARE))
