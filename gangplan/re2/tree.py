"""What a pattern is made of, once it is read; and how much work it can make for a matcher that backtracks."""

from __future__ import annotations

from math import inf

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Letter:
    """One character. `text` is a pattern of Python's `re` for it, as it is in all nodes that carry text."""

    text: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place between two characters: the start of the text, the edge of a word."""

    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """One after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first that leads to a match."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times (-1: any number); as few as will do where it is lazy, else as many."""

    item: Node
    low: int
    high: int
    lazy: bool


Node = Letter | Anchor | Series | Choice | Repeat


def written(node: Node) -> str:
    """The pattern as Python's `re` reads it."""
    if isinstance(node, Letter | Anchor):
        return node.text
    if isinstance(node, Series):
        return "".join(written(item) for item in node.items)
    if isinstance(node, Choice):
        return f"(?:{'|'.join(written(item) for item in node.items)})"
    return f"(?:{written(node.item)}){_counts(node)}{'?' if node.lazy else ''}"


def _counts(node: Repeat) -> str:
    if node.low == node.high:
        return f"{{{node.low}}}"
    return f"{{{node.low},{node.high if node.high >= 0 else ''}}}"


@dataclass(frozen=True, slots=True)
class Work:
    """At most `branches` x (length of the text) ** `degree` ways to try, from one place in the text."""

    branches: float = 1
    degree: float = 0


def work(node: Node) -> Work:
    """How many ways through the pattern a matcher that backtracks may have to try."""
    if isinstance(node, Letter | Anchor):
        return Work()
    if isinstance(node, Series | Choice):
        parts = [work(item) for item in node.items]
        degrees = [part.degree for part in parts]
        if isinstance(node, Choice):
            return Work(sum(part.branches for part in parts), max(degrees))
        branches = 1.0
        for part in parts:
            branches *= part.branches
        return Work(branches, sum(degrees))
    return _work_again(work(node.item), node)


def _work_again(item: Work, node: Repeat) -> Work:
    if node.high == 0:
        return Work()
    if node.high == 1:
        return Work(item.branches + (node.low == 0), item.degree)
    if item == Work():
        return Work() if node.low == node.high else Work(1, 1)
    # What can be cut in several ways, several times: (a+)+ cuts aaaa in 2 ** 3 ways.
    return Work(inf, inf)
