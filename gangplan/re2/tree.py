"""The syntax tree of a pattern, and the work that it can cause in a backtracking matcher."""

from __future__ import annotations

from math import inf

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Letter:
    """One character. In all nodes, `text` is a pattern in the syntax of Python's `re`."""

    text: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """A position between two characters, such as the start of the text or a word boundary."""

    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """Nodes that match one after another."""

    items: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives: the first one that leads to a match."""

    items: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A node `low` to `high` times (-1: any number), as few as possible if it is lazy, else as many."""

    item: PatternNode
    low: int
    high: int
    lazy: bool


PatternNode = Letter | Anchor | Series | Choice | Repeat


def format_re2_pattern(node: PatternNode) -> str:
    """Format a node in the syntax of Python's `re`."""
    if isinstance(node, Letter | Anchor):
        return node.text
    if isinstance(node, Series):
        return "".join(format_re2_pattern(item) for item in node.items)
    if isinstance(node, Choice):
        return f"(?:{'|'.join(format_re2_pattern(item) for item in node.items)})"
    return f"(?:{format_re2_pattern(node.item)}){_format_repeat_counts(node)}{'?' if node.lazy else ''}"


def _format_repeat_counts(node: Repeat) -> str:
    if node.low == node.high:
        return f"{{{node.low}}}"
    return f"{{{node.low},{node.high if node.high >= 0 else ''}}}"


@dataclass(frozen=True, slots=True)
class Work:
    """An upper bound of the paths to try from one position: `branches` x (length of the text) ** `degree`."""

    branches: float = 1
    degree: float = 0


def estimate_re2_match_work(node: PatternNode) -> Work:
    """Return how many paths through the pattern a backtracking matcher may have to try."""
    if isinstance(node, Letter | Anchor):
        return Work()
    if isinstance(node, Series | Choice):
        parts = [estimate_re2_match_work(item) for item in node.items]
        degrees = [part.degree for part in parts]
        if isinstance(node, Choice):
            return Work(sum(part.branches for part in parts), max(degrees))
        branches = 1.0
        for part in parts:
            branches *= part.branches
        return Work(branches, sum(degrees))
    return _estimate_re2_repeat_work(estimate_re2_match_work(node.item), node)


def _estimate_re2_repeat_work(item: Work, node: Repeat) -> Work:
    if node.high == 0:
        return Work()
    if node.high == 1:
        return Work(item.branches + (node.low == 0), item.degree)
    if item == Work():
        return Work() if node.low == node.high else Work(1, 1)
    # A body with several matches, repeated: (a+)+ splits aaaa in 2 ** 3 ways.
    return Work(inf, inf)
