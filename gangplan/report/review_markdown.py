"""A review as Markdown: the comment on a pull or merge request.

GitHub takes 65 536 characters ("Body is too long (maximum is 65536 characters)"), GitLab a megabyte (its
limit of notes, MAX_TEXT_SIZE_LIMIT). What does not fit is left out by meaning, the last sections first and
the last rows of each, and a line says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.report.escape import escape_markdown, shorten_text
from gangplan.report.markdown import COMMENT_MARKER
from gangplan.report.review_sections import build_review_sections, format_review_headline
from gangplan.report.section import Section, SectionRow
from gangplan.review.review import Review

GITHUB_MAX_BYTES, GITLAB = 65_536, 1_000_000
# A bot finds its comment by this line; validate has one of its own.
REVIEW_MARKER = COMMENT_MARKER.replace("gangplan", "gangplan plan")
# The most of one text of a user.
_LONGEST = 1000
# A section with more rows is folded.
_OPEN = 20


def format_review_as_markdown(
    review: Review, most: int = GITHUB_MAX_BYTES, objects_alone: bool = False
) -> str:
    """Return the review in at most `most` bytes of UTF-8, and so in as many characters."""
    room = most
    while (text := _render_markdown_review_within_size(review, room, objects_alone)) and (
        size := len(text.encode("utf-8"))
    ) > most:
        if room <= 0:
            return f"{REVIEW_MARKER}\n"
        room -= size - most
    return text


def _render_markdown_review_within_size(review: Review, room: int, objects_alone: bool) -> str:
    """Return the review with sections of at most `room` bytes; the line that says what is missing is not
    counted."""
    name = "diff" if objects_alone else "plan"
    lines = [
        REVIEW_MARKER.replace("plan -->", f"{name} -->"),
        f"### gangplan {name}: {_format_markdown_text(format_review_headline(review))}",
        "",
    ]
    lines += [f"Compared with {_format_markdown_text(review.revision.words)}.", ""]
    lines += [f"- {_format_markdown_text(one)}" for one in review.notes] + ([""] if review.notes else [])
    room -= sum(map(_count_line_bytes, lines))
    left = []
    for section in build_review_sections(review, objects_alone):
        block, missing = _render_markdown_review_section(section, room)
        lines += block
        room -= sum(map(_count_line_bytes, block))
        if missing:
            left.append(f"{missing} {section.unit}{'' if missing == 1 else 's'} of “{section.title}”")
    if left:
        lines += [
            f"**Left out, because a comment holds no more:** {', '.join(left)}. `--format json` has all.",
            "",
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _render_markdown_review_section(section: Section, room: int) -> tuple[list[str], int]:
    """Return a section in at most `room` bytes, and how many rows are missing."""
    if not section.rows:
        line = f"**{section.title}.** {_format_markdown_text(section.below)}"
        return ([line, ""], 0) if _count_line_bytes(line) < room else ([], 1)
    kept = [number for number in range(len(section.columns)) if any(row[number] for row in section.rows)]
    columns = [section.columns[number] for number in kept]
    is_open = len(section.rows) <= _OPEN and not section.is_detail
    title = f"<details{' open' if is_open else ''}><summary>{section.title}: {len(section.rows)}</summary>"
    head = [title, "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    below = ["", _format_markdown_text(section.below)] if section.below else []
    tail = [*below, "", "</details>", ""]
    size = sum(map(_count_line_bytes, [*head, *tail]))
    if size > room:
        return [], len(section.rows)
    rows = []
    for row in section.rows:
        line = _render_table_row(row, kept)
        if size + _count_line_bytes(line) > room:
            break
        rows.append(line)
        size += _count_line_bytes(line)
    missing = len(section.rows) - len(rows)
    if not rows:
        return [], missing
    return [*head, *rows, *tail], missing


def _render_table_row(row: SectionRow, kept: Sequence[int]) -> str:
    return f"| {' | '.join(_format_markdown_text(row[number]) for number in kept)} |"


def _format_markdown_text(text: str) -> str:
    return escape_markdown(shorten_text(text, _LONGEST))


def _count_line_bytes(line: str) -> int:
    return len(line.encode("utf-8")) + 1
