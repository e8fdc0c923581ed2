"""A review as text for a terminal: a headline, then a table per section."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.report.escape import escape_own_line
from gangplan.report.review_sections import build_review_sections, format_review_headline
from gangplan.report.section import Section, SectionRow
from gangplan.review.review import Review

# How many rows of a section are shown; --format json has all.
MOST_ROWS = 60
_WIDEST = 90


def render_review_text(review: Review, objects_alone: bool = False) -> str:
    """Return the whole review. Findings are only counted: they go to standard error, as in all commands."""
    lines = [f"compared with {review.revision.words}: {format_review_headline(review)}"]
    lines += [f"note: {one}" for one in review.notes]
    for section in build_review_sections(review, objects_alone):
        if section.title != "New findings":
            lines += [
                "",
                *_render_plain_text_review_section(
                    section, len(section.rows) if objects_alone else MOST_ROWS
                ),
            ]
        elif section.below:
            lines += ["", f"findings: {section.below}"]
    return "".join(f"{escape_own_line(line)}\n" if line else "\n" for line in lines)


def _render_plain_text_review_section(section: Section, most: int) -> list[str]:
    shown, left = section.rows[:most], len(section.rows) - most
    lines = [section.title, *_format_plain_text_review_table(section.columns, shown)]
    if left > 0:
        lines.append(f"  {left} more {section.unit}{'' if left == 1 else 's'}: --format json has all")
    return [*lines, *([f"  {section.below}"] if section.below else [])]


def _format_plain_text_review_table(columns: SectionRow, rows: Sequence[SectionRow]) -> list[str]:
    """Return the columns that hold anything, as wide as needed; the last one and wide ones are not padded."""
    kept = [number for number in range(len(columns)) if any(row[number] for row in rows)]
    table = [
        tuple(columns[number] for number in kept),
        *(tuple(row[number] for number in kept) for row in rows),
    ]
    widths = [min(_WIDEST, max(len(row[number]) for row in table)) for number in range(len(kept))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
