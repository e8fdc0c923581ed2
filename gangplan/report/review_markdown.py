"""A review as Markdown: the comment on a pull or merge request.

GitHub takes 65 536 characters ("Body is too long (maximum is 65536 characters)"), GitLab a megabyte (its
limit of notes, MAX_TEXT_SIZE_LIMIT). What does not fit is left out by meaning, the last sections first and
the last rows of each, and a line says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.report.escape import markdown, short
from gangplan.report.markdown import MARKER
from gangplan.report.review_sections import headline, sections
from gangplan.report.section import Row, Section
from gangplan.review.review import Review

GITHUB, GITLAB = 65_536, 1_000_000
# A bot finds its comment by this line; validate has one of its own.
REVIEW_MARKER = MARKER.replace("gangplan", "gangplan plan")
# The most of one text of a user.
_LONGEST = 1000
# A section with more rows is folded.
_OPEN = 20


def review_markdown(review: Review, most: int = GITHUB, objects_alone: bool = False) -> str:
    """Return the review in at most `most` bytes of UTF-8, and so in as many characters."""
    room = most
    while (text := _within(review, room, objects_alone)) and (size := len(text.encode("utf-8"))) > most:
        if room <= 0:
            return f"{REVIEW_MARKER}\n"
        room -= size - most
    return text


def _within(review: Review, room: int, objects_alone: bool) -> str:
    """Return the review with sections of at most `room` bytes; the line that says what is missing is not
    counted."""
    name = "diff" if objects_alone else "plan"
    lines = [
        REVIEW_MARKER.replace("plan -->", f"{name} -->"),
        f"### gangplan {name}: {_text(headline(review))}",
        "",
    ]
    lines += [f"Compared with {_text(review.revision.words)}.", ""]
    lines += [f"- {_text(one)}" for one in review.notes] + ([""] if review.notes else [])
    room -= sum(map(_size, lines))
    left = []
    for section in sections(review, objects_alone):
        block, missing = _section(section, room)
        lines += block
        room -= sum(map(_size, block))
        if missing:
            left.append(f"{missing} {section.unit}{'' if missing == 1 else 's'} of “{section.title}”")
    if left:
        lines += [
            f"**Left out, because a comment holds no more:** {', '.join(left)}. `--format json` has all.",
            "",
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(section: Section, room: int) -> tuple[list[str], int]:
    """Return a section in at most `room` bytes, and how many rows are missing."""
    if not section.rows:
        line = f"**{section.title}.** {_text(section.below)}"
        return ([line, ""], 0) if _size(line) < room else ([], 1)
    kept = [number for number in range(len(section.columns)) if any(row[number] for row in section.rows)]
    columns = [section.columns[number] for number in kept]
    is_open = len(section.rows) <= _OPEN
    title = f"<details{' open' if is_open else ''}><summary>{section.title}: {len(section.rows)}</summary>"
    head = [title, "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    below = ["", _text(section.below)] if section.below else []
    tail = [*below, "", "</details>", ""]
    size = sum(map(_size, [*head, *tail]))
    if size > room:
        return [], len(section.rows)
    rows = []
    for row in section.rows:
        line = _row(row, kept)
        if size + _size(line) > room:
            break
        rows.append(line)
        size += _size(line)
    missing = len(section.rows) - len(rows)
    if not rows:
        return [], missing
    return [*head, *rows, *tail], missing


def _row(row: Row, kept: Sequence[int]) -> str:
    return f"| {' | '.join(_text(row[number]) for number in kept)} |"


def _text(text: str) -> str:
    return markdown(short(text, _LONGEST))


def _size(line: str) -> int:
    return len(line.encode("utf-8")) + 1
