"""`python -m benchmarks`: measure, and print one table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from benchmarks import peers
from benchmarks.budget import fitted, speed_of
from benchmarks.measure import Figure, command, gangplan, repeat
from benchmarks.validation import validation
from benchmarks.workspace import CLUSTERS, write_workspace

SEED = 1
_BARE = [sys.executable, "-c", "pass"]
_VERSION = [sys.executable, "-m", "gangplan", "--version"]
# kustomize is timed on this many jobs and scaled to all of them.
KUSTOMIZE_JOBS = 60


def main() -> int:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--specs", type=int, default=1000, help="size of the main workspace (1000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each long row (3)")
    parser.add_argument(
        "--within",
        type=float,
        default=240,
        metavar="SECONDS",
        help="measure less on a machine too slow to end in this time (240); 0: all, however long it takes",
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures to a file")
    asked = parser.parse_args()
    print(_machine())
    rows: list[tuple[str, list[Figure]]] = []
    with tempfile.TemporaryDirectory(prefix="gangplan-bench-") as folder:
        specs, times = _sized(Path(folder), asked.specs, asked.repeat, asked.within)
        for title, figures in _sections(Path(folder), specs, times):
            _print_section(title, figures)
            rows.append((title, figures))
    if asked.json:
        Path(asked.json).write_text(_as_json(rows), encoding="utf-8")
    return 0


def _sized(folder: Path, specs: int, times: int, within: float) -> tuple[int, int]:
    """Specs and repeats that this machine manages in the time it is given."""
    if not within:
        return specs, times
    began = time.monotonic()
    speed = speed_of(folder, SEED)
    found = fitted(specs, times, speed, within - (time.monotonic() - began))
    if found != (specs, times):
        asked = f"{specs} specs and {times} repeats"
        print(f"\nmeasured: {found[0]} specs, {found[1]} repeats, to end in {within:.0f} s ({asked}: longer)")
    return found


def _sections(folder: Path, specs: int, times: int) -> Iterator[tuple[str, list[Figure]]]:
    """Title and figures of each section; the first figure is what the others are compared with."""
    yield "Start", _start()
    yield "validate of the sample workspace", validation(times)
    workspace = folder / "main"
    files = write_workspace(workspace, specs, SEED)
    yield "One spec from cold, schema check and overlay included", _cold(workspace, files[0])
    main = _main_job(workspace, specs, times)
    yield f"{specs} specs on {len(CLUSTERS)} clusters", main
    yield "The same, judged by all gates and every policy", [main[0], *_judged(workspace, times)]
    yield "The same manifests otherwise", [main[0], *_peers(folder, workspace, times)]
    yield "Peak memory", _memory(folder, specs)


def _start() -> list[Figure]:
    # In turn, so that a machine that slows down slows both.
    pairs = [(command(_BARE), command(_VERSION)) for _ in range(20)]
    bare, version = zip(*pairs, strict=True)
    return [Figure("bare interpreter", bare), Figure("gangplan --version", version)]


def _cold(workspace: Path, file: str) -> list[Figure]:
    """A new process for one spec, on one cluster with a patch on runs and on all clusters."""
    base = ("render", "-C", str(workspace), "--output", "-")
    cluster = ("--cluster", CLUSTERS[0])
    bare = repeat("bare interpreter", 7, lambda: command(_BARE))
    gangplan(*base, *cluster, file)  # the first start compiles modules and asks tools for their versions
    return [
        bare,
        repeat("on 1 cluster", 7, lambda: gangplan(*base, *cluster, file)),
        repeat(f"on {len(CLUSTERS)} clusters", 7, lambda: gangplan(*base, file)),
    ]


def _main_job(workspace: Path, specs: int, times: int) -> list[Figure]:
    """Everything new, nothing changed, one spec changed."""
    render = ("render", "-C", str(workspace))
    spec = next(workspace.glob("specs/*/t*-0*.yaml"))
    fresh = []
    for _ in range(times):
        shutil.rmtree(workspace / "rendered", ignore_errors=True)
        fresh.append(gangplan(*render))
    numbers = count(1)

    def touched() -> None:
        spec.write_text(f"{_without_run(spec)}run: {next(numbers) + 1}\n", encoding="utf-8")

    def changed_alone() -> Figure:
        runs = []
        for _ in range(times):
            touched()
            runs.append(gangplan(*render, str(spec)))
        return Figure("one spec changed, named", tuple(runs))

    def changed() -> Figure:
        runs = []
        for _ in range(times):
            touched()
            runs.append(gangplan(*render))
        return Figure("one spec changed, all rendered", tuple(runs))

    note = f"{len(CLUSTERS) * specs} runs"
    return [
        Figure("everything new", tuple(fresh), note),
        repeat("nothing changed", times, lambda: gangplan(*render)),
        changed(),
        changed_alone(),
    ]


def _judged(workspace: Path, times: int) -> list[Figure]:
    """`validate`: schemas, rules, admission, nodes, network, contention, policies, kubeconform."""
    return [
        repeat("validate", times, lambda: gangplan("validate", "-C", str(workspace))),
        repeat(
            "validate, 1 process", 1, lambda: gangplan("validate", "-C", str(workspace), "--engine", "serial")
        ),
    ]


def _without_run(spec: Path) -> str:
    lines = spec.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("run:"))


def _peers(folder: Path, workspace: Path, times: int) -> list[Figure]:
    tree = workspace / "rendered"
    outs = (folder / f"copy-{number}" for number in count())
    figures = [repeat("jinja2 alone, 1 process", times, lambda: peers.copy_by_jinja(tree, next(outs)))]
    engine = peers.kustomize_command()
    if engine is None:
        print("  (no kustomize: its row is left out)")
        return figures
    jobs = peers.write_jobs(folder / "jobs", tree, workspace / "overlays", KUSTOMIZE_JOBS)
    total = sum(1 for _ in tree.glob("*/runs/*/*.yaml"))
    note = f"{len(jobs)} of {total} jobs timed, scaled"
    scale = total / len(jobs)
    name = f"{engine[0]} per job"
    figures.append(repeat(name, 1, lambda: peers.build_all(engine[1], jobs), note, scale))
    return figures


def _memory(folder: Path, specs: int) -> list[Figure]:
    """The same work at three sizes."""
    figures = []
    for size in sorted({specs * 3 // 10, specs, specs * 3}):
        workspace = folder / f"memory-{size}"
        write_workspace(workspace, size, SEED)
        figures.append(repeat(f"{size} specs", 1, lambda here=workspace: gangplan("render", "-C", str(here))))  # type: ignore[misc]
        shutil.rmtree(workspace)
    return figures


def _print_section(title: str, figures: list[Figure]) -> None:
    first = figures[0]
    print(f"\n{title}")
    heads = f"{'min':>9}{'median':>9}{'max':>9}{'cpu':>9}{'ratio':>8}{'of cpu':>8}{'MiB':>7}{'worker':>8}"
    print(f"  {'':32}{heads}")
    for figure in figures:
        walls = figure.walls
        seconds = "".join(f"{value:>8.3f}s" for value in (walls[0], figure.wall_s, walls[-1], figure.cpu_s))
        worker = f"{figure.worker_mib:>8.0f}" if figure.worker_mib else f"{'':8}"
        ratio = f"{figure.wall_s / first.wall_s:>7.2f}x{figure.cpu_s / first.cpu_s:>7.2f}x"
        note = f"  {figure.note}" if figure.note else ""
        print(f"  {figure.name:32}{seconds}{ratio}{figure.own_mib:>7.0f}{worker}{note}")
    sys.stdout.flush()


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"gangplan benchmarks: {cores} cores ({platform.machine()}), "
        f"{platform.python_implementation()} {platform.python_version()}{busy}, seed {SEED}\n"
        "Seconds on the clock (min, median, max) and of processor (median, children included); ratios of "
        "both to the\nfirst row of the section; peak memory of the process and of its largest child."
    )


def _as_json(rows: list[tuple[str, list[Figure]]]) -> str:
    content = {
        title: [
            {
                "name": figure.name,
                "wall_s": [round(value, 4) for value in figure.walls],
                "cpu_s": round(figure.cpu_s, 4),
                "peak_mib": figure.own_mib,
                "worker_peak_mib": figure.worker_mib,
                "note": figure.note,
            }
            for figure in figures
        ]
        for title, figures in rows
    }
    return json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main())
