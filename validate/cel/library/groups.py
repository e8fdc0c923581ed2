"""The groups of a pattern that are still open while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Flags:
    fold: bool = False
    multi_line: bool = False
    dot_all: bool = False
    lazy: bool = False


@dataclass(slots=True)
class Group:
    """A group that is still open: its alternatives, each a list of (pattern, count of repetitions in it)."""

    flags: Flags
    opening: str = ""
    alternatives: list[list[tuple[str, int]]] = field(default_factory=lambda: [[]])

    @property
    def items(self) -> list[tuple[str, int]]:
        return self.alternatives[-1]

    def written(self) -> str:
        return "|".join("".join(text for text, _ in items) for items in self.alternatives)

    def load(self) -> int:
        return max((load for items in self.alternatives for _, load in items), default=1)
