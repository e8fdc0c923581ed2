"""A part of a report about a change: rows of plain words, for text and Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.records import dataclass

ARROW = "→"
SectionRow = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: its title, the names of its columns, its rows, and a sentence below them.

    `unit` names a row, for the line that says how many are left out. A comment folds the rows of a section
    that `is_detail`, and of one that has many.
    """

    title: str
    columns: SectionRow
    rows: Sequence[SectionRow]
    unit: str
    below: str = ""
    is_detail: bool = False


def shorten_name_list(names: Sequence[str], most: int = 4) -> str:
    """Return the names, or the first of many and how many more there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def format_count(number: int, word: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{number} {word}{'' if number == 1 else 's'}"
