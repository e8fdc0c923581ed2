"""The groups of a pattern that are open while it is read."""

from __future__ import annotations

from dataclasses import field

from gangplan.re2.tree import Choice, PatternNode, Series
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class GroupFlags:
    """The flags of a group: i, m, s and U."""

    fold: bool = False
    multi_line: bool = False
    dot_all: bool = False
    lazy: bool = False


@dataclass(slots=True)
class OpenGroup:
    """An open group: its alternatives, each a list of (element, number of repetitions in it)."""

    flags: GroupFlags
    alternatives: list[list[tuple[PatternNode, int]]] = field(default_factory=lambda: [[]])

    @property
    def items(self) -> list[tuple[PatternNode, int]]:
        """The elements of the alternative that is being read."""
        return self.alternatives[-1]

    def node(self) -> PatternNode:
        """Return the node of what has been read so far."""
        series = tuple(Series(tuple(node for node, _ in items)) for items in self.alternatives)
        return Choice(series) if len(series) > 1 else series[0]

    def load(self) -> int:
        """Return the most repetitions of any element, nested ones multiplied."""
        return max((load for items in self.alternatives for _, load in items), default=1)
