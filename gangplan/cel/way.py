"""Record a path through a `QuestionTree`: follow the questions that exist, and add the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.questions import (
    EVALUATE,
    MAX_TREE_NODES,
    AskNode,
    NodeAnswer,
    PathValues,
    QuestionNode,
    QuestionTree,
    SpreadNode,
    TakeNode,
    WayError,
)
from gangplan.cel.seen import SeenValue, StopError, ValueReader


class QuestionPath:
    """One path from the root of a tree. `given` are the values with which every path begins."""

    def __init__(self, tree: QuestionTree, given: list[Any]) -> None:
        self.tree = tree
        self.values: PathValues = list(given)
        self._branches: dict[NodeAnswer, QuestionNode] = tree.first
        self._answer: NodeAnswer = None
        self._taken: dict[tuple[int, str], SeenValue | None] = {}
        self._spread: dict[int, list[SeenValue]] = {}
        self._told: set[int] = set()  # values whose exact value was asked

    def seen(self, number: int, fixed: Mapping[str, Any] | None = None) -> SeenValue:
        """Return one of the values by its number."""
        return SeenValue(
            self.values[number], (number,), lambda values: values[number], number=number, fixed=fixed
        )

    def finish(self, end: QuestionNode) -> None:
        """End the path. Raises `WayError` if another path with the same answers ended differently.

        `EVALUATE` leaves the existing questions in place, because other objects may get further.
        """
        known = self._branches.get(self._answer)
        if known is None:
            self.tree.add(self._branches, self._answer, end)
        elif known is not end and end is not EVALUATE:
            raise WayError("two ends of one way")

    def _node(
        self, wanted: type[QuestionNode], same: Callable[[Any], bool], make: Callable[[], QuestionNode]
    ) -> QuestionNode:
        """Return the next question: the existing one, or a new one.

        Raises `StopError` if the tree is full, and `WayError` if another question was asked after the same
        answers.
        """
        node = self._branches.get(self._answer)
        if node is None:
            if self.tree.count >= MAX_TREE_NODES:
                raise StopError
            return self.tree.add(self._branches, self._answer, make())
        if not isinstance(node, wanted) or not same(node):
            raise WayError("another question after the same answers")
        return node

    def take(self, source: int, key: str) -> SeenValue | None:
        """Return a field of a mapping, or None if it does not exist."""
        if (source, key) in self._taken:
            return self._taken[source, key]
        node = self._node(
            TakeNode, lambda node: node.source == source and node.key == key, lambda: TakeNode(source, key)
        )
        is_there = key in self.values[source]
        self._branches, self._answer = node.branches, is_there
        found = self._next(self.values[source][key]) if is_there else None
        self._taken[source, key] = found
        return found

    def _next(self, value: Any) -> SeenValue:
        self.values.append(value)
        return self.seen(len(self.values) - 1)

    def spread(self, source: int) -> list[SeenValue]:
        """Return the entries of a list, or the keys of a mapping."""
        if source not in self._spread:
            node = self._node(SpreadNode, lambda node: node.source == source, lambda: SpreadNode(source))
            entries = self.values[source]
            count = len(entries)
            self._branches, self._answer = node.branches, count if type(entries) is list else ~count
            self._spread[source] = [self._next(entry) for entry in entries]
        return self._spread[source]

    def test(self, sources: tuple[int, ...], ask: ValueReader, answer: NodeAnswer) -> NodeAnswer:
        """Ask `ask` about the values with these numbers, where `answer` is its answer now, and return the
        answer."""
        node = self._node(AskNode, lambda node: node.sources == sources, lambda: AskNode(sources, ask))
        self._branches, self._answer = node.branches, answer
        return answer
