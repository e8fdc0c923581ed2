"""Build Python closures from a plan: the fast way to a value, without its cost.

A closure takes the frame and returns a value or raises. Arguments after a failed one are not evaluated, which
makes no difference without the cost. Rare cases are left to measuring.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.cel.attributes import check_cel_index_type, select_cel_entry, select_cel_entry_if_present
from gangplan.cel.errors import EvalError
from gangplan.cel.frame import EVALUATION_FAILURES, Frame, is_member
from gangplan.cel.measuring import Meter
from gangplan.cel.operators import NO_OVERLOAD
from gangplan.cel.plan import (
    Computed,
    Conditional,
    ConstantQualifier,
    Fallback,
    Logic,
    Membership,
    NewList,
    PlanStep,
    Relative,
    Variable,
)
from gangplan.cel.values import OPTIONAL_NONE, Optional

Closure = Callable[[Frame], Any]
BuildStep = Callable[[PlanStep], Closure]


def build_measured_cel_closure(plan: PlanStep) -> Closure:
    """Build a closure that evaluates one step with measuring.py."""

    def run(frame: Frame) -> Any:
        value = Meter(frame).run(plan)
        if isinstance(value, EVALUATION_FAILURES):
            raise value
        return value

    return run


def build_cel_attribute_closure(plan: Variable | Relative, build: BuildStep) -> Closure:
    """Build the closure of a name or selection."""
    if isinstance(plan, Variable):
        slot = plan.slot
        if not plan.qualifiers:
            return lambda frame: frame[slot]
        base: Closure = lambda frame: frame[slot]  # noqa: E731
    else:
        base = build(plan.operand)
        if not plan.qualifiers:
            return base
    keys = [qualifier.key for qualifier in plan.qualifiers if isinstance(qualifier, ConstantQualifier)]
    if any(qualifier.optional for qualifier in plan.qualifiers) or len(keys) < len(plan.qualifiers):
        return _build_qualifier_closure(base, plan, build)
    if not all(type(key) is str for key in keys):
        return _build_qualifier_closure(base, plan, build)
    texts = tuple(key for key in keys if isinstance(key, str))
    last = plan.qualifiers[-1]
    if isinstance(last, ConstantQualifier) and last.test:
        return _build_presence_closure(base, texts[:-1], texts[-1])
    return (
        _build_path_closure(base, texts)
        if isinstance(plan, Relative)
        else _build_slot_path_closure(plan.slot, texts)
    )


def _build_path_closure(base: Closure, keys: tuple[str, ...]) -> Closure:
    def run(frame: Frame) -> Any:
        return select_cel_field_path(base(frame), keys)

    return run


def _build_slot_path_closure(slot: int, keys: tuple[str, ...]) -> Closure:
    if len(keys) == 1:
        key = keys[0]

        def one(frame: Frame) -> Any:
            value = frame[slot]
            if type(value) is dict and key in value:
                return value[key]
            return select_cel_field_path(value, keys)

        return one

    def run(frame: Frame) -> Any:
        value = frame[slot]
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError, AttributeError):
            return select_cel_field_path(frame[slot], keys)
        return value

    return run


def select_cel_field_path(value: Any, keys: tuple[str, ...]) -> Any:
    """Return the value at a path of fields; through an optional value it stays optional."""
    if type(value) is Optional:
        if not value.present:
            return value
        value = value.value
        for key in keys:
            found, value = select_cel_entry_if_present(value, key)
            if not found:
                return OPTIONAL_NONE
        return Optional(True, value)
    for key in keys:
        value = select_cel_entry(value, key)
    return value


def _build_presence_closure(base: Closure, keys: tuple[str, ...], last: str) -> Closure:
    def run(frame: Frame) -> Any:
        value = base(frame)
        if type(value) is Optional:
            value = select_cel_field_path(value, (*keys, last))
            return value.present
        for key in keys:
            value = value[key] if type(value) is dict and key in value else select_cel_entry(value, key)
        return last in value if type(value) is dict else select_cel_entry_if_present(value, last)[0]

    return run


def _build_qualifier_closure(base: Closure, plan: Variable | Relative, build: BuildStep) -> Closure:
    """Build the closure of any qualifiers: indexes, computed ones, optional ones."""
    steps: list[tuple[Any, Closure | None, bool, bool]] = []
    for qualifier in plan.qualifiers:
        if isinstance(qualifier, Computed):
            steps.append((None, build(qualifier.index), qualifier.optional, False))
        else:
            steps.append((qualifier.key, None, qualifier.optional, qualifier.test))

    def run(frame: Frame) -> Any:
        value = base(frame)
        optional = type(value) is Optional
        if optional:
            if not value.present:
                return False if steps[-1][3] else value
            value = value.value
        for key, index, is_optional, test in steps:
            if index is not None:
                key = check_cel_index_type(index(frame))
            optional = optional or is_optional
            if optional or test:
                present, value = select_cel_entry_if_present(value, key)
                if test:
                    return present
                if not present:
                    return OPTIONAL_NONE
            else:
                value = select_cel_entry(value, key)
        return Optional(True, value) if optional else value

    return run


def build_cel_conditional_closure(plan: Conditional, build: BuildStep) -> Closure:
    """Build the closure of `condition ? yes : no`."""
    condition, yes, no = build(plan.condition), build(plan.yes), build(plan.no)

    def run(frame: Frame) -> Any:
        chosen = condition(frame)
        if chosen is True:
            return yes(frame)
        if chosen is False:
            return no(frame)
        raise EvalError(NO_OVERLOAD)

    return run


def build_cel_logic_closure(plan: Logic, build: BuildStep) -> Closure:
    """Build the closure of `&&` or `||`: an error counts only if the other side does not decide."""
    left, right = (build(term) for term in plan.terms)
    absorbing = plan.absorbing
    slow = build_measured_cel_closure(plan)

    def run(frame: Frame) -> Any:
        try:
            value = left(frame)
        except EVALUATION_FAILURES:
            return slow(frame)
        if value is absorbing:
            return value
        if value is not (not absorbing):
            return slow(frame)
        value = right(frame)
        if value is True or value is False:
            return value
        raise EvalError(NO_OVERLOAD)

    return run


def build_cel_fallback_closure(plan: Fallback, build: BuildStep) -> Closure:
    """Build the closure of `or` or `orValue`."""
    optional, other, unwraps = build(plan.optional), build(plan.other), plan.unwraps

    def run(frame: Frame) -> Any:
        value = optional(frame)
        if type(value) is not Optional:
            return value
        if value.present:
            return value.value if unwraps else value
        return other(frame)

    return run


def build_cel_membership_closure(plan: Membership, build: BuildStep) -> Closure:
    """Build the closure of `in` with a list of constants."""
    value_of, members = build(plan.value), plan.members
    texts = frozenset(value for _, value in members if isinstance(value, str))

    def run(frame: Frame) -> bool:
        value = value_of(frame)
        return value in texts if type(value) is str else is_member(value, members)

    return run


def build_cel_list_closure(plan: NewList, build: BuildStep) -> Closure:
    """Build the closure of `[a, b]`."""
    if plan.optional:
        return build_measured_cel_closure(plan)
    elements = [build(element) for element in plan.elements]
    if len(elements) == 1:
        only = elements[0]
        return lambda frame: [only(frame)]
    return lambda frame: [element(frame) for element in elements]
