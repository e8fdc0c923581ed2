"""What expressions asked of an object, as a tree: objects with the same answers share the outcome.

Every expression is a function of the values it is given, and its way through them is decided by few of them.
A tree holds ways that were taken (`way.py`, `asking.py`): each node asks one question of the values, its
branches are the answers, a leaf says how it ended. Whoever gives all the answers of a way would be led the
same way by the expressions themselves, so its end is theirs. What a way did not foresee - an answer that
nobody gave yet, a value of another type - has no end here: the expressions have to be evaluated.

Questions: `Take` a field of a mapping (is it there?), `Spread` a list or the keys of a mapping (how many are
there?), `Test` values with a function of CEL (what does it say?). What is taken and spread gets a number and
can be asked about. A test is evaluated, so a text that nobody has seen before is no new way as long as the
answers are the same. Tests of one value that follow each other are answered together, once per value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gangplan.cel.cost import CrashError
from gangplan.cel.errors import EvalError, UnknownError

Values = list[Any]
Answer = Any
# Nodes of one tree; a policy has some ten ways of some twenty questions.
MOST_NODES = 4_000
# Answers that one tree remembers by value, beyond which it starts anew.
MOST_KEPT = 8_192
# Types whose values are equal only where no function of CEL tells them apart; 0.0 and -0.0 are not.
EXACT = frozenset((str, int, bool, type(None)))
TAKE, SPREAD, TEST, END = range(4)
# The answer of a test that gives no truth: it did not fail.
FINE = "fine"


class UnforeseenError(Exception):
    """Values that a way cannot be taken with: evaluate."""


# Whatever a test fails with.
UNFORESEEN = (UnforeseenError, EvalError, UnknownError, CrashError)


class WayError(Exception):
    """Two ways with the same answers differ: a mistake of gangplan's own."""


class Node:
    """A question. `branches`: the answers that were given, with what came next."""

    __slots__ = ("branches", "kind")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.branches: dict[Answer, Node] = {}


class Take(Node):
    """Field `key` of mapping `source`: True where it is there, and its value is the next; else False."""

    __slots__ = ("key", "source")

    def __init__(self, source: int, key: str) -> None:
        super().__init__(TAKE)
        self.source = source
        self.key = key


class Spread(Node):
    """The entries of list (keys of mapping) `source`: how many (mappings: ~count); each is the next value."""

    __slots__ = ("source",)

    def __init__(self, source: int) -> None:
        super().__init__(SPREAD)
        self.source = source


class Test(Node):
    """What `ask` says of the values `sources`. `kept`: by type and value of a single one, where that led."""

    __slots__ = ("ask", "kept", "sources")

    def __init__(self, sources: tuple[int, ...], ask: Callable[[Values], Answer]) -> None:
        super().__init__(TEST)
        self.sources = sources
        self.ask = ask
        self.kept: dict[type, dict[Any, Node]] = {}


class QuestionTree:
    """The ways of one set of expressions. Its ends are `SILENT` and `EVALUATE`."""

    __slots__ = ("_kept", "_tests", "count", "first", "ways")

    def __init__(self) -> None:
        self.first: dict[Answer, Node] = {}
        self.count = 0
        self.ways = 0
        self._kept = 0
        self._tests: list[Test] = []

    def add(self, branches: dict[Answer, Node], answer: Answer, node: Node) -> Node:
        """A new node below an answer."""
        branches[answer] = node
        self.count += 1
        self.ways += node.kind == END
        if isinstance(node, Test):
            self._tests.append(node)
        return node

    def end(self, given: Sequence[Any]) -> Node | None:
        """Where the values lead: an end, or None where nobody went before. `given` are values 0, 1, ..."""
        values = list(given)
        node = self.first.get(None)
        while node is not None:
            kind = node.kind
            if kind == TAKE:
                mapping = values[node.source]  # type: ignore[attr-defined]
                if type(mapping) is not dict:
                    return EVALUATE
                try:
                    values.append(mapping[node.key])  # type: ignore[attr-defined]
                except KeyError:
                    node = node.branches.get(False)
                else:
                    node = node.branches.get(True)
            elif kind == TEST:
                node = self._tested(node, values)  # type: ignore[arg-type]
            elif kind == SPREAD:
                entries = values[node.source]  # type: ignore[attr-defined]
                if type(entries) is not list and type(entries) is not dict:
                    return EVALUATE
                values += entries
                node = node.branches.get(len(entries) if type(entries) is list else ~len(entries))
            else:
                return node
        return None

    def followed(self, given: Sequence[Any]) -> tuple[list[tuple[Node, Answer]], Node] | None:
        """The questions on the way to an end with their answers, and the end; None where none is known."""
        values, steps = list(given), []
        node = self.first.get(None)
        while node is not None and node.kind != END:
            answer = answered(node, values)
            if answer is None:
                return None
            steps.append((node, answer))
            node = node.branches.get(answer)
        return (steps, node) if node is not None else None

    def _tested(self, node: Test, values: Values) -> Node | None:
        """What comes after a test and all that follow on the same value."""
        sources = node.sources
        if len(sources) != 1:
            return _asked(node, values)
        value = values[sources[0]]
        kept = node.kept.get(type(value))
        if kept is not None:
            known = kept.get(value)
            if known is not None:
                return known
        found = _asked(node, values)
        while isinstance(found, Test) and found.sources == sources:
            found = _asked(found, values)
        if found is not None and type(value) in EXACT:
            self._keep(node, value, found)
        return found

    def _keep(self, node: Test, value: Any, found: Node) -> None:
        if self._kept >= MOST_KEPT:
            for test in self._tests:
                test.kept.clear()
            self._kept = 0
        self._kept += 1
        node.kept.setdefault(type(value), {})[value] = found


def _asked(node: Test, values: Values) -> Node | None:
    try:
        answer = node.ask(values)
    except UNFORESEEN:
        return EVALUATE
    return node.branches.get(answer)


def answered(node: Node, values: Values) -> Answer:
    """The answer of one question; what it takes or spreads is added to the values. None: unforeseen."""
    if isinstance(node, Test):
        try:
            return node.ask(values)
        except UNFORESEEN:
            return None
    assert isinstance(node, Take | Spread)
    value = values[node.source]
    if isinstance(node, Spread):
        if type(value) is not list and type(value) is not dict:
            return None
        values += value
        return len(value) if type(value) is list else ~len(value)
    if type(value) is not dict:
        return None
    if node.key in value:
        values.append(value[node.key])
    return node.key in value


# How a way ends: the expressions let the values through without a word, or only they can tell.
SILENT = Node(END)
EVALUATE = Node(END)
