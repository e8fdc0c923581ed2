"""Build loops as closures: each shape that a macro expands to becomes the Python loop that means the same.

A loop that fails is evaluated again by measuring.py, because cel-go continues after errors, and the last
error, or none, may count.
"""

from __future__ import annotations

from typing import Any

from gangplan.cel.closures import BuildStep, Closure, build_measured_cel_closure
from gangplan.cel.frame import EVALUATION_FAILURES, Frame, iterate_cel_loop_range
from gangplan.cel.plan import (
    CallPlan,
    Conditional,
    Constant,
    Fold,
    Logic,
    NewList,
    PlanStep,
    Relative,
    Variable,
)


def build_cel_fold_closure(plan: Fold, build: BuildStep) -> Closure:
    """Build the closure of a loop."""
    shape = (
        _build_binding_closure(plan, build)
        or _build_quantifier_loop(plan, build)
        or _build_exists_one_loop(plan, build)
        or _build_mapping_loop(plan, build)
    )
    if shape is None:
        return build_measured_cel_closure(plan)
    slow = build_measured_cel_closure(plan)
    quick = shape

    def run(frame: Frame) -> Any:
        try:
            return quick(frame)
        except EVALUATION_FAILURES:
            return slow(frame)

    return run


def _build_binding_closure(plan: Fold, build: BuildStep) -> Closure | None:
    """Build `optMap` or `sortBy`, which are not loops: the accumulator is a variable."""
    if not _is_constant(plan.range, []) or not _is_constant(plan.condition, False):
        return None
    initial, result, slot = build(plan.initial), build(plan.result), plan.accumulator

    def run(frame: Frame) -> Any:
        frame[slot] = initial(frame)
        return result(frame)

    return run


def _build_quantifier_loop(plan: Fold, build: BuildStep) -> Closure | None:
    """Build `all` or `exists`."""
    step = plan.step
    if not isinstance(step, Logic) or len(step.terms) != 2 or not _is_loop_accumulator(plan, step.terms[0]):
        return None
    if not _is_loop_accumulator(plan, plan.result) or not _is_constant(plan.initial, not step.absorbing):
        return None
    if not isinstance(plan.condition, CallPlan) or plan.condition.function != "@not_strictly_false":
        return None
    source, predicate, absorbing = build(plan.range), build(step.terms[1]), step.absorbing
    slow, slot, slot2 = build_measured_cel_closure(plan), plan.slot, plan.slot2

    def run(frame: Frame) -> Any:
        values = source(frame)
        if slot2 < 0 and type(values) is list:
            for frame[slot] in values:
                found = predicate(frame)
                if found is absorbing:
                    return absorbing
                if found is not (not absorbing):
                    return slow(frame)
            return not absorbing
        for one, other in iterate_cel_loop_range(values, two=slot2 >= 0):
            frame[slot] = one
            if slot2 >= 0:
                frame[slot2] = other
            found = predicate(frame)
            if found is absorbing:
                return absorbing
            if found is not (not absorbing):
                return slow(frame)
        return not absorbing

    return run


def _build_exists_one_loop(plan: Fold, build: BuildStep) -> Closure | None:
    """Build `exists_one`."""
    step = plan.step
    if not isinstance(step, Conditional) or not _is_constant(plan.initial, 0):
        return None
    if (
        not _is_constant(plan.condition, True)
        or not _is_loop_accumulator(plan, step.no)
        or not _is_accumulator_increment(plan, step.yes)
    ):
        return None
    source, predicate = build(plan.range), build(step.condition)
    slow, slot, slot2 = build_measured_cel_closure(plan), plan.slot, plan.slot2

    def run(frame: Frame) -> Any:
        count = 0
        for one, other in iterate_cel_loop_range(source(frame), two=slot2 >= 0):
            frame[slot] = one
            if slot2 >= 0:
                frame[slot2] = other
            found = predicate(frame)
            if found is True:
                count += 1
            elif found is not False:
                return slow(frame)
        return count == 1

    return run


def _build_mapping_loop(plan: Fold, build: BuildStep) -> Closure | None:
    """Build `map`, `filter` or `transformList`, with or without a condition."""
    step: PlanStep = plan.step
    condition: PlanStep | None = None
    if isinstance(step, Conditional):
        if (
            not _is_loop_accumulator(plan, step.no)
            or not isinstance(step.yes, Relative)
            or step.yes.qualifiers
        ):
            return None
        condition, step = step.condition, step.yes.operand
    element = _find_element_appended_to_accumulator(plan, step)
    if element is None or not _is_constant(plan.initial, []) or not _is_constant(plan.condition, True):
        return None
    if not _is_loop_accumulator(plan, plan.result):
        return None
    source, value = build(plan.range), build(element)
    predicate = build(condition) if condition is not None else None
    slow, slot, slot2 = build_measured_cel_closure(plan), plan.slot, plan.slot2

    def run(frame: Frame) -> Any:
        built: list[Any] = []
        for one, other in iterate_cel_loop_range(source(frame), two=slot2 >= 0):
            frame[slot] = one
            if slot2 >= 0:
                frame[slot2] = other
            chosen = True if predicate is None else predicate(frame)
            if chosen is True:
                built.append(value(frame))
            elif chosen is not False:
                return slow(frame)
        return built

    return run


# Shapes


def _is_constant(plan: PlanStep, value: object) -> bool:
    return isinstance(plan, Constant) and type(plan.value) is type(value) and plan.value == value


def _is_loop_accumulator(plan: Fold, step: PlanStep) -> bool:
    """Return whether a step is the accumulator."""
    return isinstance(step, Variable) and step.slot == plan.accumulator and not step.qualifiers


def _is_accumulator_increment(plan: Fold, step: PlanStep) -> bool:
    """Return whether a step is the accumulator plus 1, and the result whether it ends as 1."""
    if not isinstance(step, Relative) or step.qualifiers or not isinstance(step.operand, CallPlan):
        return False
    for call, function in ((step.operand, "_+_"), (plan.result, "_==_")):
        if not isinstance(call, CallPlan) or call.function != function:
            return False
        if not _is_loop_accumulator(plan, call.arguments[0]) or not _is_constant(call.arguments[1], 1):
            return False
    return True


def _find_element_appended_to_accumulator(plan: Fold, step: PlanStep) -> PlanStep | None:
    """Return the element that a step adds to the accumulator."""
    if (
        not isinstance(step, CallPlan)
        or step.function != "_+_"
        or not _is_loop_accumulator(plan, step.arguments[0])
    ):
        return None
    added = step.arguments[1]
    if isinstance(added, NewList) and len(added.elements) == 1 and not added.optional:
        return added.elements[0]
    if isinstance(added, Constant) and isinstance(added.value, list) and len(added.value) == 1:
        return Constant(added.id, added.value[0])
    return None
