"""Draw two charts in one SVG, on logarithmic axes: growth with specs, and comparison with other programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.results import Results, Section

WIDE, HIGH = 900, 420
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.head{font-weight:bold;font-size:13px}.grid{stroke:#ddd}"
    ".axis{stroke:#555}.ideal{stroke:#999;stroke-dasharray:4 4;fill:none}"
    ".line{stroke:#0b5cad;stroke-width:2;fill:none}.dot{fill:#0b5cad}.ours{fill:#0b5cad}.theirs{fill:#b9b9b9}"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic axis from values to pixels. It spans whole powers of ten around all values."""

    low: int
    high: int
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the pixel and label of each power of ten."""
        for power in range(self.low, self.high + 1):
            yield (
                self.at(10.0**power),
                f"{10**power:,}".replace(",", " ") if power >= 0 else f"{10.0**power:g}",
            )


def scale(values: Sequence[float], begin: float, end: float) -> Scale:
    """Return an axis for these values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(low, max(high, low + 1), begin, end)


def chart(results: Results) -> str:
    """Return the SVG; the half of a section that was not measured stays empty."""
    named = {section.title: section for section in results.sections}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img">',
        "<title>Processor time in units of a bare interpreter</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDE}" height="{HIGH}" fill="#fff"/>',
    ]
    if growth := named.get("More specs"):
        parts += _growth(growth)
    beside = [section for title, section in named.items() if title.startswith("The same manifests")]
    if beside:
        parts += _beside(beside)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _growth(section: Section) -> Iterator[str]:
    """Draw processor time by specs, and linear growth from the first point."""
    bare = section.bare.cpu_s
    points = [(int(figure.name.split()[0]), figure.cpu_s / bare) for figure in section.figures[1:]]
    left, right, top, bottom = 60.0, 380.0, 50.0, 360.0
    x = scale([one for one, _ in points], left, right)
    y = scale([one for _, one in points], bottom, top)
    yield _text(left, 24, "validate, everything new: cpu / bare", "head")
    for at, label in x.ticks():
        yield f'<line class="grid" x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{bottom}"/>'
        yield _text(at, bottom + 18, label, anchor="middle")
    for at, label in y.ticks():
        yield f'<line class="grid" x1="{left}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>'
        yield _text(left - 6, at + 4, label, anchor="end")
    yield _text((left + right) / 2, bottom + 40, "specs, each on 3 clusters", anchor="middle")
    (first, begun), (last, _) = points[0], points[-1]
    straight = min(begun * last / first, 10.0**y.high)
    reached = first * straight / begun
    ideal = f"{x.at(first):.1f},{y.at(begun):.1f} {x.at(reached):.1f},{y.at(straight):.1f}"
    yield f'<polyline class="ideal" points="{ideal}"/>'
    drawn = [(x.at(one), y.at(two)) for one, two in points]
    yield f'<polyline class="line" points="{" ".join(f"{one:.1f},{two:.1f}" for one, two in drawn)}"/>'
    for (one, two), (_, value) in zip(drawn, points, strict=True):
        yield f'<circle class="dot" cx="{one:.1f}" cy="{two:.1f}" r="4"/>'
        yield _text(one - 6, two - 9, f"{value:,.0f}".replace(",", " "), anchor="end")
    yield _text(right, bottom - 8, "dashed: linear", anchor="end")


def _beside(sections: Sequence[Section]) -> Iterator[str]:
    """Draw a bar for each program, the shortest first."""
    rows = [
        (figure.unit_cpu_s / section.bare.cpu_s, figure.name)
        for section in sections
        for figure in section.figures
        if figure.unit_cpu_s > 0
    ]
    left, right, top, bottom = 640.0, 850.0, 50.0, 360.0
    x = scale([value for value, _ in rows], left, right)
    yield _text(440, 24, "cpu of one run / bare, the same manifests", "head")
    for at, label in x.ticks():
        yield f'<line class="grid" x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{bottom}"/>'
        yield _text(at, bottom + 18, label, anchor="middle")
    step = (bottom - top) / len(rows)
    for index, (value, name) in enumerate(sorted(rows)):
        y, thick = top + index * step, min(18.0, step * 0.7)
        kind = "ours" if name.startswith("gangplan") else "theirs"
        middle = y + step / 2
        long = max(x.at(value) - left, 1.0)
        size = f'x="{left}" y="{middle - thick / 2:.1f}" width="{long:.1f}" height="{thick:.1f}"'
        yield f'<rect class="{kind}" {size}/>'
        yield _text(left - 8, middle + 4, name, anchor="end")
        yield _text(left + long + 5, middle + 4, f"{value:.3f}")


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
