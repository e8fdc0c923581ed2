"""Build the closures of calls of functions and operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.cel.closures import BuildStep, Closure, build_measured_cel_closure
from gangplan.cel.cost import can_crash
from gangplan.cel.frame import EVALUATION_FAILURES, Frame
from gangplan.cel.operators import (
    is_equal_cel_value,
    is_greater,
    is_greater_or_equal,
    is_less,
    is_less_or_equal,
)
from gangplan.cel.plan import CallPlan, Constant

_ORDER: dict[str, tuple[Callable[[Any, Any], bool], Callable[[object, object], bool]]] = {
    "_<_": (lambda one, other: one < other, is_less),
    "_<=_": (lambda one, other: one <= other, is_less_or_equal),
    "_>_": (lambda one, other: one > other, is_greater),
    "_>=_": (lambda one, other: one >= other, is_greater_or_equal),
}


def build_cel_call_closure(plan: CallPlan, build: BuildStep) -> Closure:
    """Build the closure of a call."""
    arguments = [build(argument) for argument in plan.arguments]
    if can_crash(plan.overload):
        return _build_crashing_call(plan, build)
    if plan.function == "@not_strictly_false":
        return build_measured_cel_closure(plan)
    if plan.function in ("_==_", "_!=_"):
        return _build_equality_closure(plan, arguments[0], arguments[1])
    if plan.function in _ORDER:
        return _build_comparison_closure(plan.function, arguments[0], arguments[1])
    call = plan.call
    if len(arguments) == 1:
        one = arguments[0]
        return lambda frame: call(one(frame))
    if len(arguments) == 2:
        one, two = arguments
        return lambda frame: call(one(frame), two(frame))
    return lambda frame: call(*[argument(frame) for argument in arguments])


def _build_equality_closure(plan: CallPlan, left: Closure, right: Closure) -> Closure:
    wanted = plan.function == "_==_"
    constant = plan.arguments[1]
    if isinstance(constant, Constant) and type(constant.value) is str:
        text = constant.value

        def with_text(frame: Frame) -> bool:
            value = left(frame)
            return (value == text if type(value) is str else is_equal_cel_value(value, text)) is wanted

        return with_text
    return lambda frame: is_equal_cel_value(left(frame), right(frame)) is wanted


def _build_comparison_closure(function: str, left: Closure, right: Closure) -> Closure:
    quick, careful = _ORDER[function]

    def run(frame: Frame) -> bool:
        one, other = left(frame), right(frame)
        if type(one) is int and type(other) is int:
            return quick(one, other)
        return careful(one, other)

    return run


def _build_crashing_call(plan: CallPlan, build: BuildStep) -> Closure:
    """Build a call in which a failed argument may end all evaluation; the measured step decides whether it
    does."""
    arguments = [build(argument) for argument in plan.arguments]
    call, slow = plan.call, build_measured_cel_closure(plan)

    def run(frame: Frame) -> Any:
        try:
            values = [argument(frame) for argument in arguments]
        except EVALUATION_FAILURES:
            return slow(frame)
        return call(*values)

    return run
