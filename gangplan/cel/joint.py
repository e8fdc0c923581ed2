"""The ways of several trees as one: what they all ask is asked once.

Trees of many policies ask the same of an object: its pods, their containers, the image of each. Their ways
through one object are joined without evaluating anything: the same field is taken once for all, and tests of
one value stand together, so that they are answered at once. The order of questions is free: an object that
gives all answers on the path to a leaf gives all answers of each way that was joined there.
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

# Where a value stands: one of the given by its number, or a field, entry or key of another place.
Place = tuple[Any, ...]
Question = tuple[Any, ...]


class _Numbers:
    """The numbers of values by their places: those that `QuestionTree.end` gives them."""

    def __init__(self, of: dict[Place, int]) -> None:
        self.of = of
        self.count = len(of)

    def add(self, question: Question, answer: Answer) -> None:
        """Numbers for the values that an answer adds."""
        for place in _new(question, answer):
            self.of[place] = self.count
            self.count += 1


class Joined(Node):
    """The end of joined ways: the end of each, None of a tree that is alone. `open`: those not silent."""

    __slots__ = ("ends", "open")

    def __init__(self, ends: tuple[Node | None, ...]) -> None:
        super().__init__(END)
        self.ends = ends
        self.open = tuple(number for number, end in enumerate(ends) if end is not SILENT)


# Trees with more ways would give the joint one as many times more: they stay by themselves.
MOST_WAYS = 8


class JointTree(QuestionTree):
    """The joined ways of some trees, always the same in the same order, but those that stay `alone`."""

    __slots__ = ("_places", "alone")

    def __init__(self, alone: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.alone = alone
        # Of each node: its question, by places instead of numbers.
        self._places: dict[Node, Question] = {}

    def joined(self, given: Sequence[Any]) -> Joined | None:
        """The ends of the ways of an object, None where they are not known."""
        found = self.end(given)
        return found if isinstance(found, Joined) else None

    def join(self, trees: Sequence[QuestionTree], given: Sequence[Any]) -> bool:
        """Adds the ways of an object through the trees; False where one of them has no known end."""
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
        """Follows what is there, whatever it asks, and adds what was not asked on the way."""
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
    """Which trees have too many ways to be joined."""
    return frozenset(number for number, tree in enumerate(trees) if tree.ways > MOST_WAYS)


def _placed(
    steps: list[tuple[Node, Answer]], given: Sequence[Any]
) -> Iterator[tuple[Question, Node, Answer]]:
    """The questions of a way by places."""
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
    """The places of the values that an answer adds."""
    kind, place = question[0], question[1]
    if kind == "take":
        return [(place, question[2])] if answer else []
    if kind == "spread":
        return [(place, answer >= 0, index) for index in range(answer if answer >= 0 else ~answer)]
    return []


def _ordered(wanted: dict[Question, tuple[Node, Answer]]) -> list[tuple[Question, tuple[Node, Answer]]]:
    """Tests behind what they ask about, those of one value side by side."""
    first = [one for one in wanted.items() if one[0][0] != "test"]
    tests = [one for one in wanted.items() if one[0][0] == "test"]
    return [*first, *sorted(tests, key=lambda one: repr(one[0][2]))]


def _made(node: Node, question: Question, numbers: _Numbers) -> Node:
    """The same question with the numbers of this tree."""
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
