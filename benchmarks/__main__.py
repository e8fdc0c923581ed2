"""Measure gangplan and print tables, or write the page from earlier figures: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import page, results, scaling, sections
from benchmarks.budget import SIDE, TEAMS, THIRD, Plan, Speed, plan, speed_of
from benchmarks.others import Others
from benchmarks.results import RESULTS, Results, Section

#: With `--all`: specs and teams of the rows about growth, and the ends of the axes (specs, clusters, teams).
ALL_SIZES = (300, 1000, 3000, 10_000)
ALL_TEAMS = (25, 200, 400)
CORNERS = ((1, 1, 5), (10_000, 10, 400))
#: Specs in the comparison with other programs, without and with `--all`. Only runs of one form are compared.
JOBS = (300, 1000)


def main() -> int:
    """Measure everything and print the tables, or write the page."""
    asked = _asked()
    if asked.page:
        for file in page.write(results.load()):
            print(f"wrote {file}")
        return _warn_when_stale()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gangplan-bench-") as folder:
        found = _measure(Path(folder), asked, began)
    print(f"\nended after {time.monotonic() - began:.0f} s")
    if asked.json:
        Path(asked.json).write_text(results.as_json(found), encoding="utf-8")
    return 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--specs", type=int, default=1000, help="size of the main workspace (1000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each long row (3)")
    parser.add_argument(
        "--within",
        type=float,
        default=230,
        metavar="SECONDS",
        help="measure less where this time would not do (230); 0: all that was asked for, however long",
    )
    parser.add_argument(
        "--all", action="store_true", help="the whole axes, to 10000 specs on 10 clusters; no limit"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures to a file")
    parser.add_argument(
        "--page", action="store_true", help=f"measure nothing: write the page of {RESULTS.name}"
    )
    return parser.parse_args()


def _warn_when_stale() -> int:
    measured, now = results.load().sources, results.sources_digest()
    if measured != now:
        print(
            f"warning: measured on sources {measured}, these are {now}; `make bench-all` measures again",
            file=sys.stderr,
        )
    return 0


def _measure(folder: Path, asked: argparse.Namespace, began: float) -> Results:
    within = 0 if asked.all else asked.within
    chosen = _chosen(folder, asked.specs, asked.repeat, within)
    used: dict[str, str] = {}
    left_out: list[str] = []
    found = []
    spent = planned = 0.0
    machine, sources = results.machine(), results.sources_digest()
    print(*(f"{name}: {value}" for name, value in machine.items()), sep="\n")
    for name, work in _sections(folder, chosen, asked.all, used, left_out).items():
        now = time.monotonic()
        if within and not chosen.fits(name, within - (now - began), spent / planned if planned else 1.0):
            left_out.append(f"section '{name}': it would not have ended in {within:.0f} s")
            continue
        section = work()
        _print(section)
        found.append(section)
        spent, planned = spent + time.monotonic() - now, planned + chosen.sections.get(name, 0.0)
    print(*(f"left out: {reason}" for reason in left_out), sep="\n")
    settings = {"specs": chosen.specs, "repeats": chosen.times, "seed": sections.SEED}
    told = machine | {"programs": ", ".join(f"{name} {version}".strip() for name, version in used.items())}
    return Results(sources, told, settings, tuple(found), tuple(left_out))


def _chosen(folder: Path, specs: int, times: int, within: float) -> Plan:
    """Return a plan that this machine can finish in the given time."""
    if not within:
        return Plan(specs, times, {})
    began = time.monotonic()
    speed: Speed = speed_of(folder, sections.SEED)
    found = plan(specs, times, speed, within - (time.monotonic() - began))
    if (found.specs, found.times) != (specs, times):
        print(f"measured: {found.specs} specs, {found.times} repeats, to end in {within:.0f} s")
    return found


def _sections(
    folder: Path, chosen: Plan, is_all: bool, used: dict[str, str], left_out: list[str]
) -> dict[str, Callable[[], Section]]:
    """Return the sections by name, in the order of `Speed.parts`."""
    specs, times = chosen.specs, chosen.times
    third = round(specs * THIRD)
    others = Others(folder, JOBS[is_all], times, used, left_out)
    growing = ALL_SIZES if is_all else (third, specs, specs * 3)
    side = SIDE * 10 if is_all else SIDE
    found: dict[str, Callable[[], Section]] = {
        "start": lambda: sections.start(folder),
        "work": lambda: sections.work(folder, specs, times),
        "review": lambda: sections.review(folder, specs, times),
        "others": others.makers,
        "judges": others.judges,
        "teams": lambda: scaling.crowded(folder, ALL_TEAMS if is_all else TEAMS),
        "clusters": lambda: scaling.wider(folder, side),
        "engines": lambda: scaling.engines(folder, specs * 2 if is_all else third),
        "changes": lambda: scaling.changes(folder, ALL_SIZES if is_all else (third,), times),
        "sizes": lambda: scaling.sizes(folder, growing),
    }
    if is_all:
        found["corners"] = lambda: scaling.corners(folder, CORNERS)
    return found


def _print(section: Section) -> None:
    print(f"\n{section.title}\n  {section.about}")
    rows = [(*results.HEADS, ""), *results.table(section)]
    wide = max(len(row[0]) for row in rows)
    for name, *cells, note in rows:
        print(f"  {name:{wide}}" + "".join(f"{cell:>13}" for cell in cells) + (f"  {note}" if note else ""))
    for told in section.told:
        print(f"  {told}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
