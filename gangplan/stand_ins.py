"""Stand-ins for the values of a template: they answer its questions, record them, and print markers.

A template learns nothing about a value that is not recorded. An unsupported operation on a stand-in raises,
and the template is then rendered with the values themselves (mould.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple

from gangplan.records import dataclass

# The text that is printed in place of a value, with its number in the study: `v` for the value as it is, `s`
# for its text, `m` for the output of a macro.
_MARKER = "zq7mould{}{}x"
STAND_IN_MARKER = r"zq7mould([vsm])([0-9]+)x"


class UnforeseenUseError(Exception):
    """A template used a value in a way that stand-ins do not support."""


class ValueStep(NamedTuple):
    """How a value is found: `find` is called with the value numbered `start`; 0 is the list of all values."""

    number: int
    start: int
    find: Callable[[Any], Any]
    others: tuple[int, ...] = ()  # values that must be known too


class TemplateQuestion(NamedTuple):
    """A question of a template about the value with a number: in words, and as a function."""

    number: int
    words: Hashable
    answer: Callable[[Any], Hashable]
    others: tuple[int, ...] = ()


def _reject_given_value(_: Any) -> Any:
    raise UnforeseenUseError("the first values are given")


@dataclass(slots=True)
class Study:
    """The values that a template has used so far, each with its number and the step that finds it.

    Number 0 is the list of all values of one run, 1 the mapping that the template is given.
    """

    steps: list[ValueStep] = field(
        default_factory=lambda: [ValueStep(0, 0, _reject_given_value), ValueStep(1, 0, _reject_given_value)]
    )
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def number(
        self, start: int, words: Hashable, find: Callable[[Any], Any], others: tuple[int, ...] = ()
    ) -> int:
        """Return the number of the value that a step finds; the same step always has the same number."""
        key = start, words
        if key not in self._numbers:
            self._numbers[key] = len(self.steps)
            self.steps.append(ValueStep(len(self.steps), start, find, others))
        return self._numbers[key]


@dataclass(slots=True, eq=False)
class TemplateNotes:
    """The questions of a template in one rendering, in order and each once, with the answers.

    Of nested renderings (of macros on their own), only the innermost is open: stand-ins of another one cannot
    be used in it.
    """

    study: Study
    opened: list[TemplateNotes]
    questions: dict[tuple[int, Hashable], tuple[TemplateQuestion, Hashable]] = field(default_factory=dict)

    def note(self, question: TemplateQuestion, answer: Hashable) -> None:
        """Record an answer. Raises UnforeseenError if another rendering is open."""
        self.check()
        self.questions.setdefault((question.number, question.words), (question, answer))

    def check(self) -> None:
        """Raise UnforeseenError if another rendering is open."""
        if self.opened[-1] is not self:
            raise UnforeseenUseError("a macro used more than its arguments")

    def given(self, name: str, value: Any) -> StandIn:
        """Return the stand-in for a value that the template is given under a name."""
        return StandIn(self, self.study.number(1, ("name", name), operator.itemgetter(name)), value)


class StandIn:
    """A numbered value of a template, with its actual value in this rendering."""

    __slots__ = ("_notes", "_number", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, notes: TemplateNotes, number: int, value: Any) -> None:
        self._notes, self._number, self._value = notes, number, value

    # --- ways to other values

    def _further(self, words: Hashable, find: Callable[[Any], Any]) -> StandIn:
        self._notes.check()
        return StandIn(self._notes, self._notes.study.number(self._number, words, find), find(self._value))

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._further(("attribute", name), operator.attrgetter(name))

    def __getitem__(self, key: Any) -> StandIn:
        return combine_stand_ins(self._notes, "item", operator.getitem, self, key)

    def __call__(self, *given: Any) -> StandIn:
        return combine_stand_ins(self._notes, "call", _call_template_function, self, *given)

    # --- questions

    def _asked(self, words: Hashable, answer: Callable[[Any], Any]) -> Any:
        found = answer(self._value)
        self._notes.note(TemplateQuestion(self._number, words, answer), found)
        return found

    def _compared(self, words: str, do: Callable[[Any, Any], bool], other: Any) -> bool:
        if isinstance(other, StandIn):
            numbers = self._number, other._number
            found, answer = do(self._value, other._value), partial(_apply_stand_in_operation, do, numbers)
            self._notes.note(TemplateQuestion(0, (words, *numbers), answer, numbers), found)
            return found
        return bool(
            self._asked(
                (words, *_build_template_constant_key(other)), partial(_apply_swapped_operands, do, other)
            )
        )

    def is_none(self) -> bool:
        """Answer Jinja's test `none`."""
        return bool(self._asked("none", _is_none))

    def __bool__(self) -> bool:
        return bool(self._asked("true", bool))

    def __eq__(self, other: object) -> bool:
        return self._compared("equal", operator.eq, other)

    def __ne__(self, other: object) -> bool:
        return not self._compared("equal", operator.eq, other)

    def __contains__(self, item: object) -> bool:
        return self._compared("holds", operator.contains, item)

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self._value, tuple | list):
            raise UnforeseenUseError(f"went through a {type(self._value).__name__}")
        found = self._asked("names", _find_pair_names_or_count)
        if isinstance(found, int):
            return iter(
                [self._further(("entry", index), operator.itemgetter(index)) for index in range(found)]
            )
        pairs = [(name, partial(_read_pair_value, index)) for index, name in enumerate(found)]
        return iter([(name, self._further(("pair", *find.args), find)) for name, find in pairs])

    # --- what is printed

    def marker(self, kind: str) -> str:
        """Return the text that is printed in its place."""
        self._notes.check()
        return _MARKER.format(kind, self._number)

    def __str__(self) -> str:
        return self.marker("s")


def combine_stand_ins(notes: TemplateNotes, words: Hashable, do: Callable[..., Any], *given: Any) -> StandIn:
    """Return the stand-in for the result of `do` on these values, which are stand-ins or constants."""
    notes.check()
    if not all(one._notes is notes for one in given if isinstance(one, StandIn)):
        raise UnforeseenUseError("a macro used more than its arguments")
    others = tuple(one._number for one in given if isinstance(one, StandIn))
    find = _bind_stand_in_operation(
        do, tuple(one._number if isinstance(one, StandIn) else _Constant(one) for one in given)
    )
    named = tuple(
        one._number if isinstance(one, StandIn) else _build_template_constant_key(one) for one in given
    )
    number = notes.study.number(0, (words, *named), find, others)
    return StandIn(notes, number, do(*[one._value if isinstance(one, StandIn) else one for one in given]))


def merge_stand_ins(notes: TemplateNotes, given: Any) -> Any:
    """Return a list of stand-ins and constants as one stand-in, and anything else unchanged."""
    return combine_stand_ins(notes, "list", _build_value_list, *given) if type(given) is list else given


class _Constant(NamedTuple):
    value: Any


def _build_template_constant_key(constant: Any) -> tuple[type, Any]:
    """Return a constant of a template with its type, because constants of different types may be equal.

    Raises UnforeseenError for a constant of another kind than text, whole number, boolean and None.
    """
    if constant is not None and type(constant) not in (str, int, bool):
        raise UnforeseenUseError(f"used {constant!r}")
    return type(constant), constant


def _bind_stand_in_operation(
    do: Callable[..., Any], given: tuple[int | _Constant, ...]
) -> Callable[[list[Any]], Any]:
    """Return `_apply_stand_in_operation` for these values as a function of what is known of a run."""
    match given:
        case (int(one),):
            return lambda known: do(known[one])
        case (int(one), int(other)):
            return lambda known: do(known[one], known[other])
        case (int(one), _Constant(value)):
            return lambda known: do(known[one], value)
    return partial(_apply_stand_in_operation, do, given)


def _apply_stand_in_operation(
    do: Callable[..., Any], given: tuple[int | _Constant, ...], known: list[Any]
) -> Any:
    return do(*[known[one] if isinstance(one, int) else one.value for one in given])


def _apply_swapped_operands(do: Callable[[Any, Any], Any], other: Any, value: Any) -> Any:
    return do(value, other)


def _call_template_function(function: Callable[..., Any], *given: Any) -> Any:
    return function(*given)


def _build_value_list(*given: Any) -> list[Any]:
    return list(given)


def _is_none(value: Any) -> bool:
    return value is None


def _find_pair_names_or_count(values: tuple[Any, ...] | list[Any]) -> tuple[str, ...] | int:
    """Return the first parts of pairs, which become keys, or the number of entries if they are not pairs."""
    for one in values:
        if type(one) is not tuple or len(one) != 2 or type(one[0]) is not str:
            return len(values)
    return tuple([name for name, _ in values])


def _read_pair_value(index: int, pairs: Any) -> Any:
    return pairs[index][1]
