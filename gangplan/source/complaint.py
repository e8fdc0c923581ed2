"""An error of the YAML parser with the lines around it, and its explanation."""

from __future__ import annotations

import re
from typing import NamedTuple

from gangplan.records import dataclass
from gangplan.rules.core import YAML_SYNTAX
from gangplan.rules.model import Rule

INDENT_PATTERN = re.compile(r"[ \t]*(?:-[ \t]+)*")


class TextPlace(NamedTuple):
    """A place; line and column start at 0."""

    line: int
    column: int


class Explanation(NamedTuple):
    """What is wrong at a place of a text, and what to do."""

    spot: TextPlace
    message: str
    help: str
    rule: Rule = YAML_SYNTAX


@dataclass(frozen=True, slots=True)
class Complaint:
    """A parser's error, and the lines of the text. `begin` is where the construct began that failed at
    `at`."""

    problem: str
    lines: list[str]
    at: TextPlace
    begin: TextPlace

    def line(self, spot: TextPlace) -> str:
        """Return the line of a place; empty after the last one."""
        return self.lines[spot.line] if spot.line < len(self.lines) else ""

    def rest(self, spot: TextPlace) -> str:
        """Return the text from the spot to the end of its line, without a comment."""
        return re.split(r"\s#", self.line(spot)[spot.column :], maxsplit=1)[0].strip()

    def depth(self, number: int) -> int:
        """Return the column where the text of a line begins, after the dash of a list entry."""
        indent = INDENT_PATTERN.match(self.lines[number]) if number < len(self.lines) else None
        return len(indent[0]) if indent else 0

    def above(self) -> int | None:
        """Return the nearest line above the error that is neither blank nor a comment."""
        for number in range(self.at.line - 1, -1, -1):
            if self.lines[number].strip() and not self.lines[number].lstrip().startswith("#"):
                return number
        return None
