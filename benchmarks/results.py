"""The results of a benchmark run: printed as tables, stored as JSON, and read again for the page."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, Run

ROOT = Path(__file__).resolve().parent.parent
#: The file with the figures of the page.
RESULTS = ROOT / "benchmarks" / "results.json"
#: The folders that decide how fast gangplan is; `python -m benchmarks --page` compares their digest.
SOURCES = ("gangplan", "generators", "policies", "templates", "validate")


@dataclass(frozen=True, slots=True)
class Section:
    """A table. Its first row is `bare`, measured at the same time, the base of its ratios.

    `told`: sentences about the figures. `values`: the numbers in them by name.
    """

    title: str
    about: str
    figures: tuple[Figure, ...]
    told: tuple[str, ...] = ()
    values: dict[str, float] = field(default_factory=dict)

    @property
    def bare(self) -> Figure:
        """The first row."""
        return self.figures[0]


@dataclass(frozen=True, slots=True)
class Results:
    """All tables, the machine (without host names and dates), and the digest of the measured sources."""

    sources: str
    machine: dict[str, str]
    settings: dict[str, int]
    sections: tuple[Section, ...]
    left_out: tuple[str, ...]


def sources_digest(root: Path = ROOT) -> str:
    """Return 16 hex digits over the names and bytes of all files in SOURCES, except what Python compiles."""
    digest = hashlib.sha256()
    files = (path for folder in SOURCES for path in (root / folder).rglob("*"))
    for path in sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts):
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def machine() -> dict[str, str]:
    """Return the facts about this machine that influence the figures."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "cores": f"{cores} ({platform.machine()}, {platform.system()})",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load at the beginning": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
    }


def as_json(results: Results) -> str:
    """Return the results as JSON text."""
    content = {
        "sources": results.sources,
        "machine": results.machine,
        "settings": results.settings,
        "sections": [
            {
                "title": section.title,
                "about": section.about,
                "rows": [_row(figure) for figure in section.figures],
                "told": list(section.told),
                "values": {name: round(value, 4) for name, value in section.values.items()},
            }
            for section in results.sections
        ],
        "left_out": list(results.left_out),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _row(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "wall_s": [round(run.wall_s, 4) for run in figure.runs],
        "cpu_s": [round(run.cpu_s, 4) for run in figure.runs],
        "peak_mib": [round(run.own_mib, 1) for run in figure.runs],
        "worker_peak_mib": [round(run.worker_mib, 1) for run in figure.runs],
        "note": figure.note,
        "scale": round(figure.scale, 4),
        "runs": figure.units,
        "base_cpu_s": round(figure.base_cpu_s, 4),
    }


def load(file: Path = RESULTS) -> Results:
    """Read results from a JSON file."""
    content = json.loads(file.read_text(encoding="utf-8"))
    sections = tuple(
        Section(
            one["title"], one["about"], tuple(map(_figure, one["rows"])), tuple(one["told"]), one["values"]
        )
        for one in content["sections"]
    )
    return Results(
        content["sources"],
        content["machine"],
        content["settings"],
        sections,
        tuple(content["left_out"]),
    )


def _figure(row: dict[str, Any]) -> Figure:
    measured = zip(row["wall_s"], row["cpu_s"], row["peak_mib"], row["worker_peak_mib"], strict=True)
    runs = tuple(Run(*one) for one in measured)
    return Figure(row["name"], runs, row["note"], row["scale"], row["runs"], row["base_cpu_s"])


HEADS = ("", "clock", "cpu", "clock / bare", "cpu / bare", "a run / bare", "MiB", "worker")


def table(section: Section) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row, under HEADS, and its note."""
    bare = section.bare
    for figure in section.figures:
        mib = [f"{value:.0f}" if value else "" for value in (figure.own_mib, figure.worker_mib)]
        unit = f"{figure.unit_cpu_s / bare.cpu_s:.3f}" if figure.units else ""
        ratios = (_ratio(figure.wall_s / bare.wall_s), _ratio(figure.cpu_s / bare.cpu_s), unit)
        yield (figure.name, _seconds(figure.wall_s), _seconds(figure.cpu_s), *ratios, *mib, figure.note)


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s" if value < 100 else f"{value:.0f} s"
