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
    MAX_TREE_NODES,
    PATH_END,
    SILENT,
    AskNode,
    NodeAnswer,
    PathValues,
    QuestionNode,
    QuestionTree,
    SpreadNode,
    TakeNode,
    answer_cel_question,
)

# The place of a value: a given value by its number, or a field, entry or key of another place.
Place = tuple[Any, ...]
Question = tuple[Any, ...]


class _Numbers:
    """The numbers of values by their places: the same that `QuestionTree.end` gives them."""

    def __init__(self, of: dict[Place, int]) -> None:
        self.of = of
        self.count = len(of)

    def add(self, question: Question, answer: NodeAnswer) -> None:
        """Number the values that an answer adds."""
        for place in _list_cel_answer_places(question, answer):
            self.of[place] = self.count
            self.count += 1


class Joined(QuestionNode):
    """The end of joined paths: the end of each tree's path, None for trees that are left out.

    `open` are the numbers of the trees whose end is not silent.
    """

    __slots__ = ("ends", "open")

    def __init__(self, ends: tuple[QuestionNode | None, ...]) -> None:
        super().__init__(PATH_END)
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
        self._places: dict[QuestionNode, Question] = {}

    def joined(self, given: Sequence[Any]) -> Joined | None:
        """Return the ends of an object's paths, or None where they are unknown."""
        found = self.end(given)
        return found if isinstance(found, Joined) else None

    def join(self, trees: Sequence[QuestionTree], given: Sequence[Any]) -> bool:
        """Add an object's paths through the trees; return False if one of them has no known end."""
        wanted: dict[Question, tuple[QuestionNode, NodeAnswer]] = {}
        ends: list[QuestionNode | None] = []
        for number, tree in enumerate(trees):
            if number in self.alone:
                ends.append(None)
                continue
            way = tree.followed(given)
            if way is None or self.count >= MAX_TREE_NODES:
                return False
            wanted |= {
                question: (node, answer)
                for question, node, answer in _list_placed_cel_questions(way[0], given)
            }
            ends.append(way[1])
        return self._add(wanted, Joined(tuple(ends)), list(given))

    def _add(
        self, wanted: dict[Question, tuple[QuestionNode, NodeAnswer]], leaf: Joined, values: PathValues
    ) -> bool:
        """Follow the existing nodes in their order, and add the questions that they did not ask."""
        numbers = _Numbers({(number,): number for number in range(len(values))})
        branches = self.first
        answer: NodeAnswer = None
        while (node := branches.get(answer)) is not None:
            if node.kind == PATH_END:
                return True
            question = self._places[node]
            branches, answer = node.branches, answer_cel_question(node, values)
            if answer is None:
                return False
            wanted.pop(question, None)
            numbers.add(question, answer)
        for question, (one, reply) in _sort_cel_path_questions(wanted):
            node = _renumber_question_node(one, question, numbers)
            self._places[node] = question
            self.add(branches, answer, node)
            branches, answer = node.branches, reply
            numbers.add(question, answer)
        self.add(branches, answer, leaf)
        return True


def find_unjoinable_trees(trees: Sequence[QuestionTree]) -> frozenset[int]:
    """Return the numbers of trees with too many paths to be joined."""
    return frozenset(number for number, tree in enumerate(trees) if tree.ways > MOST_WAYS)


def _list_placed_cel_questions(
    steps: list[tuple[QuestionNode, NodeAnswer]], given: Sequence[Any]
) -> Iterator[tuple[Question, QuestionNode, NodeAnswer]]:
    """Yield the questions of a path, with places instead of numbers."""
    places: list[Place] = [(number,) for number in range(len(given))]
    for node, answer in steps:
        if isinstance(node, AskNode):
            question: Question = ("test", node, tuple(places[source] for source in node.sources))
        elif isinstance(node, TakeNode):
            question = ("take", places[node.source], node.key)
        else:
            assert isinstance(node, SpreadNode)
            question = ("spread", places[node.source])
        yield question, node, answer
        places += _list_cel_answer_places(question, answer)


def _list_cel_answer_places(question: Question, answer: NodeAnswer) -> list[Place]:
    """Return the places of the values that an answer adds."""
    kind, place = question[0], question[1]
    if kind == "take":
        return [(place, question[2])] if answer else []
    if kind == "spread":
        return [(place, answer >= 0, index) for index in range(answer if answer >= 0 else ~answer)]
    return []


def _sort_cel_path_questions(
    wanted: dict[Question, tuple[QuestionNode, NodeAnswer]],
) -> list[tuple[Question, tuple[QuestionNode, NodeAnswer]]]:
    """Return questions in order: tests after everything that they ask about, and tests of one value
    together."""
    first = [one for one in wanted.items() if one[0][0] != "test"]
    tests = [one for one in wanted.items() if one[0][0] == "test"]
    return [*first, *sorted(tests, key=lambda one: repr(one[0][2]))]


def _renumber_question_node(node: QuestionNode, question: Question, numbers: _Numbers) -> QuestionNode:
    """Return the same question with the numbers of this tree."""
    if isinstance(node, TakeNode):
        return TakeNode(numbers.of[question[1]], node.key)
    if isinstance(node, SpreadNode):
        return SpreadNode(numbers.of[question[1]])
    assert isinstance(node, AskNode)
    own = tuple(numbers.of[place] for place in question[2])
    if own == node.sources:
        return AskNode(own, node.ask)
    ask, theirs = node.ask, node.sources
    most = max(theirs, default=-1) + 1

    def translated(values: PathValues) -> NodeAnswer:
        mine: PathValues = [None] * most
        for number, source in zip(theirs, own, strict=True):
            mine[number] = values[source]
        return ask(mine)

    return AskNode(own, translated)
