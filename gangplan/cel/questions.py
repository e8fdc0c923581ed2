"""A decision tree of what expressions ask about an object: objects with the same answers share the outcome.

The result of expressions depends on few of the values that they are given. A tree records the paths that
evaluations took (`way.py`, `asking.py`): each node asks one question about the values, its branches are the
answers, and a leaf is the outcome. Values that give all the answers of a path would lead the expressions the
same way, so they have the same outcome. Where a tree has no path, because an answer is new or a value has
another type, the expressions must be evaluated.

Questions: `Take` a field of a mapping (does it exist?), `Spread` a list or the keys of a mapping (how many
are there?), and `Test` values with a function of CEL (what does it return?). Values that are taken or spread
get a number and can be asked about. A test evaluates its function, so a new text needs no new path as long as
the answers are the same. Consecutive tests of one value are answered together, once per value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gangplan.cel.cost import CrashError
from gangplan.cel.errors import EvalError, UnknownError

Values = list[Any]
Answer = Any
# Most nodes of one tree; a policy has about ten paths of about twenty questions.
MOST_NODES = 4_000
# Most answers that one tree remembers by value; then it forgets them all.
MOST_KEPT = 8_192
# Types whose equal values no function of CEL can distinguish; 0.0 and -0.0 are equal but distinguishable.
EXACT = frozenset((str, int, bool, type(None)))
TAKE, SPREAD, TEST, END = range(4)
# The answer of a test whose result is not a boolean: it did not fail.
FINE = "fine"


class UnforeseenError(Exception):
    """A recorded path does not apply to these values: evaluate the expressions."""


# The errors with which a test can fail.
UNFORESEEN = (UnforeseenError, EvalError, UnknownError, CrashError)


class WayError(Exception):
    """Two paths with the same answers differ: a bug in gangplan."""


class Node:
    """A question. `branches` are the known answers, with the node that follows each."""

    __slots__ = ("branches", "kind")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.branches: dict[Answer, Node] = {}


class Take(Node):
    """Field `key` of mapping `source`: True if it exists, and then its value gets the next number; else
    False."""

    __slots__ = ("key", "source")

    def __init__(self, source: int, key: str) -> None:
        super().__init__(TAKE)
        self.source = source
        self.key = key


class Spread(Node):
    """The entries of list (or keys of mapping) `source`: their count (mappings: ~count); each gets the next
    number."""

    __slots__ = ("source",)

    def __init__(self, source: int) -> None:
        super().__init__(SPREAD)
        self.source = source


class Test(Node):
    """The answer of `ask` about the values `sources`.

    For a test of a single value, `kept` is the node that follows, by the value's type and the value.
    """

    __slots__ = ("ask", "kept", "sources")

    def __init__(self, sources: tuple[int, ...], ask: Callable[[Values], Answer]) -> None:
        super().__init__(TEST)
        self.sources = sources
        self.ask = ask
        self.kept: dict[type, dict[Any, Node]] = {}


class QuestionTree:
    """The paths of one set of expressions, which end at `SILENT` or `EVALUATE`."""

    __slots__ = ("_kept", "_tests", "count", "first", "ways")

    def __init__(self) -> None:
        self.first: dict[Answer, Node] = {}
        self.count = 0
        self.ways = 0
        self._kept = 0
        self._tests: list[Test] = []

    def add(self, branches: dict[Answer, Node], answer: Answer, node: Node) -> Node:
        """Add a node below an answer, and return it."""
        branches[answer] = node
        self.count += 1
        self.ways += node.kind == END
        if isinstance(node, Test):
            self._tests.append(node)
        return node

    def end(self, given: Sequence[Any]) -> Node | None:
        """Return the end to which the values lead, or None if no path was recorded. `given` are values 0, 1,
        ..."""
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
        """Return the questions on the path with their answers, and its end; None if no path was recorded."""
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
        """Return the node after a test and all following tests of the same value."""
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
    """Answer one question, and add what it takes or spreads to the values. Return None if no path applies."""
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


# The ends of paths: the expressions report nothing about the values, or they must be evaluated.
SILENT = Node(END)
EVALUATE = Node(END)
