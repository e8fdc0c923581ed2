"""Measure how time and memory grow with specs, clusters and teams, and what workers gain."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.measure import Figure, ProgramError, Run, bare, command, gangplan, repeat
from benchmarks.results import Section
from benchmarks.sections import FEW, SEED
from benchmarks.workspace import SPECS_PER_TEAM, write_workspace

#: Teams of the rows about specs and clusters, so that nothing else grows.
TEAMS = 5
# In the rows about teams and clusters, the cost of a run is the extra cost of this many times the specs.
_MORE = 3


def validated(folder: Path, specs: int, clusters: int, teams: int, words: Sequence[str] = ()) -> Figure:
    """Validate a new workspace of this size, once and without a cache."""
    write_workspace(folder, specs, SEED, clusters, teams)
    try:
        return repeat(
            f"{specs} specs × {clusters} clusters, {teams} teams",
            1,
            lambda: gangplan("validate", "--no-cache", "-C", str(folder), *words),
        )
    finally:
        shutil.rmtree(folder)


def sizes(folder: Path, specs: Sequence[int], clusters: int = 3) -> Section:
    """Measure growth with specs: the exponent of processor time, and memory of parent and largest worker."""
    base = validated(folder / "few", FEW, clusters, TEAMS)
    measured = [validated(folder / "size", size, clusters, TEAMS) for size in specs]
    figures = [
        replace(one, units=(size - FEW) * clusters, base_cpu_s=base.cpu_s)
        for size, one in zip(specs, measured, strict=True)
    ]
    told, values = [], {}
    for index in range(1, len(specs)):
        found = exponent(figures[index - 1], figures[index])
        name = f"{specs[index - 1]} to {specs[index]} specs"
        told.append(f"From {name} processor time grows with the exponent {found:.2f}.")
        values[f"exponent, {name}"] = found
    about = (
        f"`validate --no-cache` on {clusters} clusters, a worker per core. Exponents and a run: without the "
        f"{base.cpu_s:.2f} s of cpu that {FEW} specs take."
    )
    return Section("More specs", about, (bare(), *figures), tuple(told), values)


def changes(folder: Path, specs: Sequence[int], times: int, clusters: int = 3) -> Section:
    """Measure one changed spec among more and more: only looking at files and repeating findings grow."""
    figures: list[Figure] = []
    for size in specs:
        root = folder / "changes"
        file = root / write_workspace(root, size, SEED, clusters)[0]
        text, runs = file.read_text(encoding="utf-8"), count(2)

        def changed(
            name: str, root: Path = root, file: Path = file, text: str = text, runs: Iterator[int] = runs
        ) -> Run:
            file.write_text(f"{text}run: {next(runs)}\n", encoding="utf-8")
            return gangplan(name, "-C", str(root))

        gangplan("render", "-C", str(root))
        for name in ("render", "validate"):
            gangplan(name, "-C", str(root))
            figures.append(repeat(f"{name}, 1 of {size} specs changed", times, partial(changed, name)))
        shutil.rmtree(root)
    about = (
        f"All specs on {clusters} clusters, a team for each {SPECS_PER_TEAM}; with a cache. The system is "
        "asked about all files, and what was found about the other specs is shown again."
    )
    return Section("One changed spec among more", about, (bare(), *figures))


def exponent(small: Figure, large: Figure) -> float:
    """Return the exponent by which processor time, without the base, grows with the runs; 1 is linear."""
    grown = (large.cpu_s - large.base_cpu_s) / (small.cpu_s - small.base_cpu_s)
    return math.log(grown) / math.log(large.units / small.units)


def wider(folder: Path, specs: int, clusters: Sequence[int] = (1, 3, 10)) -> Section:
    """Measure the same specs on more clusters."""
    figures = [_alone(folder, (specs, _MORE * specs), number, TEAMS) for number in clusters]
    about = (
        f"`validate --no-cache --engine serial` of {_MORE * specs} specs, each on all clusters. A run: "
        f"without what the clusters and teams cost themselves, measured with {specs} specs."
    )
    return Section("More clusters", about, (bare(), *figures))


def crowded(folder: Path, teams: Sequence[int]) -> Section:
    """Measure the same number of runs with more teams; the cost of a run must not grow."""
    specs = max(teams)  # so that every team has a spec
    figures = [_alone(folder, (specs, _MORE * specs), 1, number) for number in teams]
    about = (
        f"`validate --no-cache --engine serial` of the same {_MORE * specs} specs on one cluster. A run: "
        "without what the teams' own objects (namespaces, quotas, roles, networks) and first runs cost, "
        f"measured with {specs} specs."
    )
    first, last = figures[0], figures[-1]
    growth = last.unit_cpu_s / first.unit_cpu_s if first.unit_cpu_s > 0 else math.nan
    told = f"A run at {teams[-1]} teams costs {growth:.2f} times what it costs at {teams[0]}."
    return Section("More teams", about, (bare(), *figures), (told,), {"a run, most to fewest teams": growth})


def _alone(folder: Path, specs: tuple[int, int], clusters: int, teams: int) -> Figure:
    """Measure the extra cost of more specs, compared with the same workspace with fewer.

    It runs in one process, because every worker builds the cluster's own objects again, and workers are only
    started for many specs.
    """
    words = ("--engine", "serial")
    few, many = specs
    base, whole = (validated(folder / "side", number, clusters, teams, words) for number in specs)
    note = f"{base.cpu_s:.2f} s of cpu with {few} specs"
    return replace(whole, units=(many - few) * clusters, base_cpu_s=base.cpu_s, note=note)


def corners(folder: Path, ends: Sequence[tuple[int, int, int]]) -> Section:
    """Measure the ends of the axes (specs, clusters, teams): from one spec on one cluster to all promised."""
    figures = [validated(folder / "corner", *end) for end in ends]
    return Section("The ends of the axes", "`validate --no-cache`.", (bare(), *figures))


def engines(folder: Path, specs: int) -> Section:
    """Measure the same work in one process, in worker processes, and on MPI ranks."""
    root = folder / "engines"
    write_workspace(root, specs, SEED)
    words, units = ("--no-cache", "-C", str(root)), specs * 3
    figures = [
        repeat(f"validate, {name}", 1, partial(gangplan, "validate", "--engine", name, *words), units=units)
        for name in ("serial", "process")
    ]
    serial, process = figures
    faster, dearer = serial.wall_s / process.wall_s, process.cpu_s / serial.cpu_s
    told = [f"Worker processes: {faster:.2f} times as fast on the clock, for {dearer:.2f} times the cpu."]
    launcher = ranks()
    if launcher is None:
        told.append("No mpirun and mpi4py: the MPI engine was not measured.")
    else:
        try:
            figures.append(_by_ranks(launcher, words, units, 60 + 5 * serial.wall_s))
        except ProgramError as failure:
            told.append(f"The MPI engine could not be measured: {str(failure).splitlines()[0]}")
    shutil.rmtree(root)
    about = (
        f"`validate --no-cache` of {specs} specs on 3 clusters, {units} runs. MPI: `mpirun -n "
        "3`, of which one "
        "rank hands out the work. Ranks that wait may use processor time."
    )
    return Section("Engines", about, (bare(), *figures), tuple(told))


def ranks() -> list[str] | None:
    """Return the command that starts gangplan on three MPI ranks, or None without mpirun or mpi4py.

    The mpirun is the one next to this Python, or else on PATH.
    """
    from importlib.util import find_spec

    beside = Path(sys.executable).with_name("mpirun")
    program = str(beside) if beside.is_file() else shutil.which("mpirun")
    if program is None or find_spec("mpi4py") is None:
        return None
    return [program, "-n", "3", sys.executable, "-m", "mpi4py.futures", "-m", "gangplan"]


def _by_ranks(launcher: list[str], words: tuple[str, ...], units: int, limit_s: float) -> Figure:
    # MPI waits forever if it has lost a rank.
    run = command([*launcher, "validate", "--engine", "mpi", *words], limit_s=limit_s)
    # The peak is that of the largest child process of mpirun: a rank.
    return Figure("validate, mpi", (replace(run, own_mib=0.0, worker_mib=run.own_mib),), units=units)
