"""A way through a `QuestionTree` while it is gone: questions that are there are followed, others put down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.questions import (
    EVALUATE,
    MOST_NODES,
    Answer,
    Node,
    QuestionTree,
    Spread,
    Take,
    Test,
    Values,
    WayError,
)
from gangplan.cel.seen import Reader, Seen, StopError


class Way:
    """One way, from the root of a tree. `given` are the values that ways begin with."""

    def __init__(self, tree: QuestionTree, given: list[Any]) -> None:
        self.tree = tree
        self.values: Values = list(given)
        self._branches: dict[Answer, Node] = tree.first
        self._answer: Answer = None
        self._taken: dict[tuple[int, str], Seen | None] = {}
        self._spread: dict[int, list[Seen]] = {}
        self._told: set[int] = set()  # values that were asked for themselves

    def seen(self, number: int, fixed: Mapping[str, Any] | None = None) -> Seen:
        """One of the values by its number."""
        return Seen(self.values[number], (number,), lambda values: values[number], number=number, fixed=fixed)

    def finish(self, end: Node) -> None:
        """The end of the way; another way ended there before only if it was the same.

        One that has to be evaluated from here on need not be so for others: their questions stay.
        """
        known = self._branches.get(self._answer)
        if known is None:
            self.tree.add(self._branches, self._answer, end)
        elif known is not end and end is not EVALUATE:
            raise WayError("two ends of one way")

    def _node(self, wanted: type[Node], same: Callable[[Any], bool], make: Callable[[], Node]) -> Node:
        """The question at this place: the one that was asked here before, or a new one."""
        node = self._branches.get(self._answer)
        if node is None:
            if self.tree.count >= MOST_NODES:
                raise StopError
            return self.tree.add(self._branches, self._answer, make())
        if not isinstance(node, wanted) or not same(node):
            raise WayError("another question after the same answers")
        return node

    def take(self, source: int, key: str) -> Seen | None:
        """A field of a mapping, None where it is not there."""
        if (source, key) in self._taken:
            return self._taken[source, key]
        node = self._node(
            Take, lambda node: node.source == source and node.key == key, lambda: Take(source, key)
        )
        is_there = key in self.values[source]
        self._branches, self._answer = node.branches, is_there
        found = self._next(self.values[source][key]) if is_there else None
        self._taken[source, key] = found
        return found

    def _next(self, value: Any) -> Seen:
        self.values.append(value)
        return self.seen(len(self.values) - 1)

    def spread(self, source: int) -> list[Seen]:
        """The entries of a list, the keys of a mapping."""
        if source not in self._spread:
            node = self._node(Spread, lambda node: node.source == source, lambda: Spread(source))
            entries = self.values[source]
            count = len(entries)
            self._branches, self._answer = node.branches, count if type(entries) is list else ~count
            self._spread[source] = [self._next(entry) for entry in entries]
        return self._spread[source]

    def test(self, sources: tuple[int, ...], ask: Reader, answer: Answer) -> Answer:
        """What `ask` says of values with these numbers: `answer` now."""
        node = self._node(Test, lambda node: node.sources == sources, lambda: Test(sources, ask))
        self._branches, self._answer = node.branches, answer
        return answer
