"""A decision tree of what expressions ask about an object: objects with the same answers share the outcome.

The result of expressions depends on few of the values that they are given. A tree records the paths that
evaluations took (`way.py`, `asking.py`): each node asks one question about the values, its branches are the
answers, and a leaf is the outcome. Values that give all the answers of a path would lead the expressions the
same way, so they have the same outcome. Where a tree has no path, because an answer is new or a value has
another type, the expressions must be evaluated.

Questions: `TakeNode` a field of a mapping (does it exist?), `SpreadNode` a list or the keys of a mapping (how
many are there?), and `AskNode` values with a function of CEL (what does it return?). Values that are taken or
spread get a number and can be asked about. A test evaluates its function, so a new text needs no new path as
long as the answers are the same. Consecutive tests of one value are answered together, once per value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gangplan.cel.cost import CrashError
from gangplan.cel.errors import EvalError, UnknownError

PathValues = list[Any]
NodeAnswer = Any
# Most nodes of one tree; a policy has about ten paths of about twenty questions.
MAX_TREE_NODES = 4_000
# Most answers that one tree remembers by value; then it forgets them all.
MOST_KEPT = 8_192
# Types whose equal values no function of CEL can distinguish; 0.0 and -0.0 are equal but distinguishable.
EXACT_TYPES = frozenset((str, int, bool, type(None)))
TAKE, SPREAD, TEST, PATH_END = range(4)
# The answer of a test whose result is not a boolean: it did not fail.
NOT_FAILED = "fine"


class UnforeseenPathError(Exception):
    """A recorded path does not apply to these values: evaluate the expressions."""


# The errors with which a test can fail.
UNFORESEEN = (UnforeseenPathError, EvalError, UnknownError, CrashError)


class WayError(Exception):
    """Two paths with the same answers differ: a bug in gangplan."""


class QuestionNode:
    """A question. `branches` are the known answers, with the node that follows each."""

    __slots__ = ("branches", "kind")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.branches: dict[NodeAnswer, QuestionNode] = {}


class TakeNode(QuestionNode):
    """Field `key` of mapping `source`: True if it exists, and then its value gets the next number; else
    False."""

    __slots__ = ("key", "source")

    def __init__(self, source: int, key: str) -> None:
        super().__init__(TAKE)
        self.source = source
        self.key = key


class SpreadNode(QuestionNode):
    """The entries of list (or keys of mapping) `source`: their count (mappings: ~count); each gets the next
    number."""

    __slots__ = ("source",)

    def __init__(self, source: int) -> None:
        super().__init__(SPREAD)
        self.source = source


class AskNode(QuestionNode):
    """The answer of `ask` about the values `sources`.

    For a test of a single value, `kept` is the node that follows, by the value's type and the value.
    """

    __slots__ = ("ask", "kept", "sources")

    def __init__(self, sources: tuple[int, ...], ask: Callable[[PathValues], NodeAnswer]) -> None:
        super().__init__(TEST)
        self.sources = sources
        self.ask = ask
        self.kept: dict[type, dict[Any, QuestionNode]] = {}


class QuestionTree:
    """The paths of one set of expressions, which end at `SILENT` or `EVALUATE`."""

    __slots__ = ("_kept", "_tests", "count", "first", "ways")

    def __init__(self) -> None:
        self.first: dict[NodeAnswer, QuestionNode] = {}
        self.count = 0
        self.ways = 0
        self._kept = 0
        self._tests: list[AskNode] = []

    def add(
        self, branches: dict[NodeAnswer, QuestionNode], answer: NodeAnswer, node: QuestionNode
    ) -> QuestionNode:
        """Add a node below an answer, and return it."""
        branches[answer] = node
        self.count += 1
        self.ways += node.kind == PATH_END
        if isinstance(node, AskNode):
            self._tests.append(node)
        return node

    def end(self, given: Sequence[Any]) -> QuestionNode | None:
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

    def followed(
        self, given: Sequence[Any]
    ) -> tuple[list[tuple[QuestionNode, NodeAnswer]], QuestionNode] | None:
        """Return the questions on the path with their answers, and its end; None if no path was recorded."""
        values, steps = list(given), []
        node = self.first.get(None)
        while node is not None and node.kind != PATH_END:
            answer = answer_cel_question(node, values)
            if answer is None:
                return None
            steps.append((node, answer))
            node = node.branches.get(answer)
        return (steps, node) if node is not None else None

    def _tested(self, node: AskNode, values: PathValues) -> QuestionNode | None:
        """Return the node after a test and all following tests of the same value."""
        sources = node.sources
        if len(sources) != 1:
            return _choose_cel_question_branch(node, values)
        value = values[sources[0]]
        kept = node.kept.get(type(value))
        if kept is not None:
            known = kept.get(value)
            if known is not None:
                return known
        found = _choose_cel_question_branch(node, values)
        while isinstance(found, AskNode) and found.sources == sources:
            found = _choose_cel_question_branch(found, values)
        if found is not None and type(value) in EXACT_TYPES:
            self._keep(node, value, found)
        return found

    def _keep(self, node: AskNode, value: Any, found: QuestionNode) -> None:
        if self._kept >= MOST_KEPT:
            for test in self._tests:
                test.kept.clear()
            self._kept = 0
        self._kept += 1
        node.kept.setdefault(type(value), {})[value] = found


def _choose_cel_question_branch(node: AskNode, values: PathValues) -> QuestionNode | None:
    try:
        answer = node.ask(values)
    except UNFORESEEN:
        return EVALUATE
    return node.branches.get(answer)


def answer_cel_question(node: QuestionNode, values: PathValues) -> NodeAnswer:
    """Answer one question, and add what it takes or spreads to the values. Return None if no path applies."""
    if isinstance(node, AskNode):
        try:
            return node.ask(values)
        except UNFORESEEN:
            return None
    assert isinstance(node, TakeNode | SpreadNode)
    value = values[node.source]
    if isinstance(node, SpreadNode):
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
SILENT = QuestionNode(PATH_END)
EVALUATE = QuestionNode(PATH_END)
