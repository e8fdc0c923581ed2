"""Write docs/performance.md and its chart from the figures in benchmarks/results.json."""

from __future__ import annotations

from pathlib import Path
from string import Template

from benchmarks.chart import chart
from benchmarks.results import HEADS, ROOT, Results, Section, table

_TEMPLATE = ROOT / "benchmarks" / "page.md"
#: The page and its chart.
PAGE, CHART = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.svg"


def text(results: Results) -> str:
    """Return the page. The same figures give the same bytes."""
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(
        machine=_machine(results),
        tables="\n\n".join(map(_section, results.sections)),
        left_out=_left_out(results.left_out),
    )


def write(results: Results) -> tuple[Path, Path]:
    """Write both files and return their paths."""
    PAGE.write_text(text(results), encoding="utf-8")
    CHART.write_text(chart(results), encoding="utf-8")
    return PAGE, CHART


def _machine(results: Results) -> str:
    told = [f"- {name}: {value}" for name, value in (results.machine | results.settings).items()]
    first = f"Measured on the sources `{results.sources}` (a digest); `make bench-page` warns of others."
    return "\n".join([first, "", *told])


def _section(section: Section) -> str:
    rows = list(table(section))
    # Columns that no row of this table fills are left out.
    used = [index for index in range(len(HEADS)) if not index or any(row[index] for row in rows)]
    has_notes = any(row[-1] for row in rows)
    lines = [_line([HEADS[index] or "what" for index in used] + ["note"] * has_notes)]
    lines.append("|---" + "|--:" * (len(used) - 1) + "|---" * has_notes + "|")
    lines += [_line([row[index] for index in used] + [row[-1]] * has_notes) for row in rows]
    told = ["", *(f"- {one}" for one in section.told)] if section.told else []
    return "\n".join([f"### {section.title}", section.about, "", *lines, *told])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _left_out(reasons: tuple[str, ...]) -> str:
    if not reasons:
        return "Nothing was left out."
    return "Left out:\n" + "\n".join(f"- {reason}" for reason in reasons)
