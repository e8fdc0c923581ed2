"""Evaluate expressions on an object and record what they ask about it as a path in a `QuestionTree`.

Values from the object are `SeenValue`; everything else is plain and the same for every object of the tree. A
function of seen values is evaluated and also recorded, so that it can be evaluated for other objects.
Wherever the path depends on an answer (a field that exists, a condition, the length of a list), a question is
recorded. So the path holds for every object with the same answers: no step of it looked at anything else.

Only paths without errors are recorded: anything unusual raises `StopError`, and the tree says `EVALUATE`
there. The steps are those of closures.py and loops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.attributes import check_cel_index_type, select_cel_entry, select_cel_entry_if_present
from gangplan.cel.frame import Frame, is_member
from gangplan.cel.plan import (
    CallPlan,
    Computed,
    Conditional,
    Constant,
    ConstantQualifier,
    Fallback,
    Fold,
    Logic,
    Membership,
    NewList,
    PlanStep,
    Qualifier,
    Relative,
    Variable,
)
from gangplan.cel.program import CelProgram
from gangplan.cel.questions import EXACT_TYPES, NOT_FAILED, NodeAnswer, PathValues, UnforeseenPathError
from gangplan.cel.seen import (
    BuiltList,
    EvaluatedVariables,
    SeenValue,
    StopError,
    build_cel_call_reader,
    build_entry_reader,
    expect_bool,
    is_mixed,
    lift_cel_value,
    measure_cel_loop_range,
    merge_sources,
    tag_cel_value_with_type,
)
from gangplan.cel.values import OPTIONAL_NONE, Optional
from gangplan.cel.way import QuestionPath

# A loop over more constants than this asks which value it has, not what each constant says about it.
MOST_CONSTANTS = 32


class Asker(QuestionPath):
    """The evaluation of expressions on the values of a path."""

    _is_long = False  # inside a loop over many constants

    def evaluate(self, program: CelProgram, activation: Mapping[str, Any]) -> Any:
        """Return the value of an expression, which may contain seen values. Raises `StopError`."""
        plan = program.plan
        frame: Frame = [None] * plan.size
        for slot, name in plan.variables:
            if name not in activation:
                raise StopError
            frame[slot] = activation[name]
        return self._run(plan.root, frame)

    def truth(self, value: Any) -> bool:
        """Return the value of a condition. Raises `StopError` if it is not a boolean."""
        if isinstance(value, SeenValue):
            read = value.read
            value = self.test(
                value.sources, lambda values: expect_bool(read(values)), _require_bool_or_stop(value.value)
            )
        if value is not True and value is not False:
            raise StopError
        return value

    def _entries(self, value: Any) -> list[Any]:
        """Return the entries that a loop goes through."""
        if type(value) is dict or type(value) is list or type(value) is BuiltList:
            return list(value)
        if not isinstance(value, SeenValue) or type(value.value) not in (list, dict):
            raise StopError
        if value.number >= 0:
            return list(self.spread(value.number))
        read = value.read
        self.test(
            value.sources,
            lambda values: measure_cel_loop_range(read(values)),
            measure_cel_loop_range(value.value),
        )
        return [
            SeenValue(entry, value.sources, build_entry_reader(read, place))
            for place, entry in enumerate(value.value)
        ]

    # Steps

    def _run(self, plan: PlanStep, frame: Frame) -> Any:
        match plan:
            case Constant(value=value):
                return value
            case Variable(slot=slot, qualifiers=qualifiers):
                return self._qualified(frame[slot], qualifiers, frame)
            case Relative(operand=operand, qualifiers=qualifiers):
                return self._qualified(self._run(operand, frame), qualifiers, frame)
            case Conditional(condition=condition, yes=yes, no=no):
                return self._run(yes if self.truth(self._run(condition, frame)) else no, frame)
            case Logic(absorbing=absorbing, terms=terms):
                return any(self.truth(self._run(term, frame)) is absorbing for term in terms) is absorbing
            case CallPlan():
                return self._call(plan, [self._run(argument, frame) for argument in plan.arguments])
            case Fallback():
                return self._fallback(plan, frame)
            case Membership(value=inner, members=members):
                return self._apply(lambda value: is_member(value, members), [self._run(inner, frame)])
            case NewList(elements=elements, optional=optional) if not optional:
                return BuiltList(self._run(element, frame) for element in elements)
            case Fold():
                return self._fold(plan, frame)
        raise StopError

    def _fallback(self, plan: Fallback, frame: Frame) -> Any:
        value = self._run(plan.optional, frame)
        if type(value) is not Optional:
            if isinstance(value, SeenValue) and value.number < 0:
                raise StopError  # a function might give an optional value for another object
            return value
        if value.present:
            return value.value if plan.unwraps else value
        return self._run(plan.other, frame)

    def _fold(self, plan: Fold, frame: Frame) -> Any:
        entries = self._entries(self._run(plan.range, frame))
        if plan.slot2 >= 0:
            raise StopError
        frame[plan.accumulator] = self._run(plan.initial, frame)
        before = self._is_long
        self._is_long = before or (len(entries) > MOST_CONSTANTS and not any(map(is_mixed, entries)))
        for frame[plan.slot] in entries:
            if not self.truth(self._run(plan.condition, frame)):
                break
            frame[plan.accumulator] = self._run(plan.step, frame)
        self._is_long = before
        return self._run(plan.result, frame)

    # Selections

    def _qualified(self, value: Any, qualifiers: tuple[Qualifier, ...], frame: Frame) -> Any:
        if not qualifiers:
            return value
        last = qualifiers[-1]
        tests = isinstance(last, ConstantQualifier) and last.test
        if tests and not all(
            isinstance(one, ConstantQualifier) and type(one.key) is str and not one.optional
            for one in qualifiers
        ):
            raise StopError
        optional = type(value) is Optional
        if optional:
            if not value.present:
                return False if tests else value
            value = value.value
        for qualifier in qualifiers:
            key: Any = qualifier.key if isinstance(qualifier, ConstantQualifier) else None
            if isinstance(qualifier, Computed):
                key = self._run(qualifier.index, frame)
            optional = optional or qualifier.optional
            is_there, value = self._selected(value, key)
            if tests and qualifier is last:
                return is_there
            if not is_there:
                if not optional:
                    raise StopError  # no such key
                return False if tests else OPTIONAL_NONE
        return Optional(True, value) if optional else value

    def _selected(self, value: Any, key: Any) -> tuple[bool, Any]:
        """Return whether an entry exists, and the entry."""
        if isinstance(value, EvaluatedVariables):
            return True, value.get(key)
        if isinstance(value, SeenValue) and isinstance(key, str):
            if key in value.fixed:
                return True, value.fixed[key]
            if value.number >= 0 and type(value.value) is dict:
                taken = self.take(value.number, key)
                return taken is not None, taken
        if (
            isinstance(value, SeenValue)
            and type(value.value) is list
            and type(key) is int
            and value.number >= 0
        ):
            entries = self.spread(value.number)
            return (True, entries[key]) if 0 <= key < len(entries) else (False, None)
        if isinstance(value, SeenValue) or isinstance(key, SeenValue):
            return self._function_selected(value, key)
        if not isinstance(value, dict | list | tuple):
            raise StopError
        return select_cel_entry_if_present(value, check_cel_index_type(key))

    def _function_selected(self, value: Any, key: Any) -> tuple[bool, Any]:
        """Return whether an entry exists in a function's result or under a seen key, and the entry."""
        container, index = lift_cel_value(value), lift_cel_value(key)
        sources = merge_sources(container, index)
        read, read_key = container.read, index.read

        def ask(values: PathValues) -> bool:
            held = read(values)
            if type(held) is not dict and type(held) is not list:
                raise UnforeseenPathError
            return select_cel_entry_if_present(held, check_cel_index_type(read_key(values)))[0]

        is_there = self.test(sources, ask, ask(self.values))
        if not is_there:
            return False, None
        return True, SeenValue(
            select_cel_entry(container.value, index.value),
            sources,
            lambda values: select_cel_entry(read(values), check_cel_index_type(read_key(values))),
        )

    def _is_told(self, sources: tuple[int, ...]) -> bool:
        """Ask once which value this is, and return whether it is then known, so that nothing more need be
        asked about it."""
        value = self.values[sources[0]]
        if len(sources) > 1 or type(value) not in EXACT_TYPES:
            return False
        (number,) = sources
        if number not in self._told:
            self._told.add(number)
            self.test(
                sources,
                lambda values: tag_cel_value_with_type(values[number]),
                tag_cel_value_with_type(value),
            )
        return True

    # Functions

    def _call(self, plan: CallPlan, arguments: list[Any]) -> Any:
        function = plan.function
        if function == "@not_strictly_false":
            return self.truth(arguments[0])
        if function == "dyn":
            return arguments[0]
        if function == "size" and type(arguments[0]) is BuiltList:
            return len(arguments[0])
        if function == "_+_" and all(map(_is_list, arguments)) and any(map(is_mixed, arguments)):
            return BuiltList(entry for one in arguments for entry in self._entries(one))
        if function == "@in" and type(arguments[0]) is str and _is_mapping(arguments[1]):
            return self._selected(arguments[1], arguments[0])[0]
        return self._apply(plan.call, arguments)

    def _apply(self, call: Callable[..., Any], arguments: list[Any]) -> Any:
        """Apply a function to values, now and again for every object that takes this path."""
        if not any(map(is_mixed, arguments)):
            return call(*arguments)
        parts = [lift_cel_value(argument) for argument in arguments]
        sources = merge_sources(*parts)
        is_told = not sources or (self._is_long and self._is_told(sources))
        result = call(*(one.value for one in parts))
        if is_told:
            return result
        apply = build_cel_call_reader(call, [one.read for one in parts])

        def ask(values: PathValues) -> NodeAnswer:
            found = apply(values)
            return found if type(found) is bool else NOT_FAILED

        answer = self.test(sources, ask, result if type(result) is bool else NOT_FAILED)
        return answer if type(answer) is bool else SeenValue(result, sources, apply)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, SeenValue) and type(value.value) is list)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, SeenValue) and value.number >= 0 and type(value.value) is dict


def _require_bool_or_stop(value: Any) -> bool:
    if type(value) is not bool:
        raise StopError
    return value
