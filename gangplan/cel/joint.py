"""Join the paths of several question trees, so that a question that they share is asked once.

Trees of many policies ask the same about an object: its pods, their containers, the image of each. Their
paths for one object are joined without evaluating anything: a field is taken once for all trees, and tests of
one value follow each other, so that they are answered together. The order of questions is free: an object
that gives all answers on the path to a leaf gives all answers of each path that was joined there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gangplan.cel.questions import (
    END,
    MOST_NODES,
    SILENT,
    Answer,
    Node,
    QuestionTree,
    Spread,
    Take,
    Test,
    Values,
    answered,
)

# The place of a value: a given value by its number, or a field, entry or key of another place.
Place = tuple[Any, ...]
Question = tuple[Any, ...]


class _Numbers:
    """The numbers of values by their places: the same that `QuestionTree.end` gives them."""

    def __init__(self, of: dict[Place, int]) -> None:
        self.of = of
        self.count = len(of)

    def add(self, question: Question, answer: Answer) -> None:
        """Number the values that an answer adds."""
        for place in _new(question, answer):
            self.of[place] = self.count
            self.count += 1


class Joined(Node):
    """The end of joined paths: the end of each tree's path, None for trees that are left out.

    `open` are the numbers of the trees whose end is not silent.
    """

    __slots__ = ("ends", "open")

    def __init__(self, ends: tuple[Node | None, ...]) -> None:
        super().__init__(END)
        self.ends = ends
        self.open = tuple(number for number, end in enumerate(ends) if end is not SILENT)


# A tree with more paths would multiply the paths of the joint tree, so it is left out.
MOST_WAYS = 8


class JointTree(QuestionTree):
    """The joined paths of some trees, which are always the same in the same order, except those in
    `alone`."""

    __slots__ = ("_places", "alone")

    def __init__(self, alone: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.alone = alone
        # The question of each node, with places instead of numbers.
        self._places: dict[Node, Question] = {}

    def joined(self, given: Sequence[Any]) -> Joined | None:
        """Return the ends of an object's paths, or None where they are unknown."""
        found = self.end(given)
        return found if isinstance(found, Joined) else None

    def join(self, trees: Sequence[QuestionTree], given: Sequence[Any]) -> bool:
        """Add an object's paths through the trees; return False if one of them has no known end."""
        wanted: dict[Question, tuple[Node, Answer]] = {}
        ends: list[Node | None] = []
        for number, tree in enumerate(trees):
            if number in self.alone:
                ends.append(None)
                continue
            way = tree.followed(given)
            if way is None or self.count >= MOST_NODES:
                return False
            wanted |= {question: (node, answer) for question, node, answer in _placed(way[0], given)}
            ends.append(way[1])
        return self._add(wanted, Joined(tuple(ends)), list(given))

    def _add(self, wanted: dict[Question, tuple[Node, Answer]], leaf: Joined, values: Values) -> bool:
        """Follow the existing nodes in their order, and add the questions that they did not ask."""
        numbers = _Numbers({(number,): number for number in range(len(values))})
        branches = self.first
        answer: Answer = None
        while (node := branches.get(answer)) is not None:
            if node.kind == END:
                return True
            question = self._places[node]
            branches, answer = node.branches, answered(node, values)
            if answer is None:
                return False
            wanted.pop(question, None)
            numbers.add(question, answer)
        for question, (one, reply) in _ordered(wanted):
            node = _made(one, question, numbers)
            self._places[node] = question
            self.add(branches, answer, node)
            branches, answer = node.branches, reply
            numbers.add(question, answer)
        self.add(branches, answer, leaf)
        return True


def restless(trees: Sequence[QuestionTree]) -> frozenset[int]:
    """Return the numbers of trees with too many paths to be joined."""
    return frozenset(number for number, tree in enumerate(trees) if tree.ways > MOST_WAYS)


def _placed(
    steps: list[tuple[Node, Answer]], given: Sequence[Any]
) -> Iterator[tuple[Question, Node, Answer]]:
    """Yield the questions of a path, with places instead of numbers."""
    places: list[Place] = [(number,) for number in range(len(given))]
    for node, answer in steps:
        if isinstance(node, Test):
            question: Question = ("test", node, tuple(places[source] for source in node.sources))
        elif isinstance(node, Take):
            question = ("take", places[node.source], node.key)
        else:
            assert isinstance(node, Spread)
            question = ("spread", places[node.source])
        yield question, node, answer
        places += _new(question, answer)


def _new(question: Question, answer: Answer) -> list[Place]:
    """Return the places of the values that an answer adds."""
    kind, place = question[0], question[1]
    if kind == "take":
        return [(place, question[2])] if answer else []
    if kind == "spread":
        return [(place, answer >= 0, index) for index in range(answer if answer >= 0 else ~answer)]
    return []


def _ordered(wanted: dict[Question, tuple[Node, Answer]]) -> list[tuple[Question, tuple[Node, Answer]]]:
    """Return questions in order: tests after everything that they ask about, and tests of one value
    together."""
    first = [one for one in wanted.items() if one[0][0] != "test"]
    tests = [one for one in wanted.items() if one[0][0] == "test"]
    return [*first, *sorted(tests, key=lambda one: repr(one[0][2]))]


def _made(node: Node, question: Question, numbers: _Numbers) -> Node:
    """Return the same question with the numbers of this tree."""
    if isinstance(node, Take):
        return Take(numbers.of[question[1]], node.key)
    if isinstance(node, Spread):
        return Spread(numbers.of[question[1]])
    assert isinstance(node, Test)
    own = tuple(numbers.of[place] for place in question[2])
    if own == node.sources:
        return Test(own, node.ask)
    ask, theirs = node.ask, node.sources
    most = max(theirs, default=-1) + 1

    def translated(values: Values) -> Answer:
        mine: Values = [None] * most
        for number, source in zip(theirs, own, strict=True):
            mine[number] = values[source]
        return ask(mine)

    return Test(own, translated)
