"""Evaluate step by step with the cost, as cel-go's cost tracker counts it.

Errors are values here: cel-go evaluates the other arguments of a failed call, and continues loops. It is
slower than the closures of closures.py, which use it for what they don't cover.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.cel.attributes import check_cel_index_type, select_cel_entry, select_cel_entry_if_present
from gangplan.cel.cost import NEW_LIST_COST, NEW_MAP_COST, SELECT_COST, find_cel_cost_function
from gangplan.cel.errors import BudgetError, EvalError, UnknownError
from gangplan.cel.frame import EVALUATION_FAILURES, Frame, MissingVariable, is_member, iterate_cel_loop_range
from gangplan.cel.operators import NO_OVERLOAD, format_cel_value
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
    NewMap,
    PlanStep,
    Qualifier,
    Relative,
    Variable,
    is_cel_presence_test,
)
from gangplan.cel.values import OPTIONAL_NONE, Optional

_EXCEEDED = "operation cancelled: actual cost limit exceeded"
# The result of an optional qualifier or entry that finds nothing.
_ABSENT = object()


class _Pending:
    """The accumulator of a loop until it is first read."""

    __slots__ = ("initial",)

    def __init__(self, initial: PlanStep) -> None:
        self.initial = initial


class Meter:
    """One evaluation. `cost` grows; if it exceeds `budget`, a `BudgetError` is raised."""

    __slots__ = ("budget", "cost", "frame")

    def __init__(self, frame: Frame, budget: int | None = None) -> None:
        self.frame = frame
        self.budget = budget
        self.cost = 0

    def run(self, plan: PlanStep) -> Any:
        """Return the value of a step, or an `EvalError` or `UnknownError` if it failed."""
        return _STEPS[type(plan)](self, plan)

    def add(self, cost: int) -> None:
        """Count the cost of a finished step."""
        self.cost += cost
        if self.budget is not None and self.cost > self.budget:
            raise BudgetError(_EXCEEDED)

    # Attributes

    def attribute(self, plan: Any) -> Any:
        """Return the value of a name or selection of its own; those in branches of conditions are not counted
        again."""
        value = self.resolve(plan)
        tests = is_cel_presence_test(plan)
        if isinstance(plan, Conditional):
            # cel-go subtracts the cost of `has()`, though it counts nothing for conditions.
            self.add(-SELECT_COST if tests else 0)
        else:
            self.add(0 if tests else SELECT_COST)
        return value.present if tests and isinstance(value, Optional) else value

    def resolve(self, plan: Any) -> Any:
        """Return the value of an attribute."""
        if isinstance(plan, Conditional):
            return self._conditional(plan)
        value = self._variable(plan) if isinstance(plan, Variable) else self.run(plan.operand)
        if isinstance(value, EVALUATION_FAILURES):
            return value
        return self._qualify(value, plan.qualifiers)

    def _variable(self, plan: Variable) -> Any:
        value = self.frame[plan.slot]
        if isinstance(value, _Pending):
            value = self.frame[plan.slot] = self.run(value.initial)
        if isinstance(value, MissingVariable):
            return EvalError(f"no such attribute(s): {plan.name}")
        return value

    def _conditional(self, plan: Conditional) -> Any:
        condition = self.run(plan.condition)
        if condition is True:
            return self.resolve(plan.yes)
        if condition is False:
            return self.resolve(plan.no)
        return condition if isinstance(condition, EVALUATION_FAILURES) else EvalError(NO_OVERLOAD)

    def _qualify(self, value: Any, qualifiers: tuple[Qualifier, ...]) -> Any:
        optional = isinstance(value, Optional)
        if optional:
            if not value.present:
                return value
            value = value.value
        for qualifier in qualifiers:
            optional = optional or qualifier.optional
            try:
                value = self._step(value, qualifier, optional)
            except BudgetError:
                raise
            except EVALUATION_FAILURES as problem:
                return problem
            if value is _ABSENT:
                return OPTIONAL_NONE
        return Optional(True, value) if optional else value

    def _step(self, value: Any, qualifier: Qualifier, optional: bool) -> Any:
        """Apply one qualifier; return `_ABSENT`, at no cost, where an optional one finds nothing."""
        try:
            key = qualifier.key if isinstance(qualifier, ConstantQualifier) else self._key(qualifier)
            test = isinstance(qualifier, ConstantQualifier) and qualifier.test
            if not optional and not test:
                entry = select_cel_entry(value, key)
            else:
                present, entry = select_cel_entry_if_present(value, key)
                if optional and not present:
                    return _ABSENT
                entry = present if test and not optional else entry
        except EVALUATION_FAILURES:
            # A failed qualifier is counted unless it is optional.
            if not optional:
                self.add(SELECT_COST)
            raise
        self.add(SELECT_COST)
        return entry

    def _key(self, qualifier: Computed) -> Any:
        plan = qualifier.index
        key = self.resolve(plan) if isinstance(plan, Variable | Relative | Conditional) else self.run(plan)
        if isinstance(key, EVALUATION_FAILURES):
            raise key
        return check_cel_index_type(key)

    # Calls

    def call(self, plan: CallPlan) -> Any:
        """Evaluate a function, counting failed arguments too."""
        values: list[Any] = []
        problem: Any = None
        for argument in plan.arguments:
            value = self.run(argument)
            values.append(value)
            if problem is None and isinstance(value, EVALUATION_FAILURES):
                problem = value
                if plan.stops:
                    break
        if len(values) < len(plan.arguments):
            # Only calls whose arguments were all evaluated are counted.
            return problem
        if problem is not None:
            result = True if plan.function == "@not_strictly_false" else problem
        else:
            try:
                result = plan.call(*values)
            except EVALUATION_FAILURES as failed:
                result = failed
        self.add(find_cel_cost_function(plan.function, plan.overload)(values, result))
        return result

    def logic(self, plan: Logic) -> Any:
        """Evaluate `&&` or `||`."""
        problem: Any = None
        unknown: Any = None
        for term in plan.terms:
            value = self.run(term)
            if value is plan.absorbing:
                return value
            if isinstance(value, UnknownError):
                unknown = value
            elif not isinstance(value, bool) and problem is None:
                problem = value if isinstance(value, EvalError) else EvalError(NO_OVERLOAD)
        if unknown is not None:
            return unknown
        return not plan.absorbing if problem is None else problem

    def fallback(self, plan: Fallback) -> Any:
        """Evaluate `or` or `orValue`."""
        value = self.run(plan.optional)
        if not isinstance(value, Optional):
            return value
        if value.present:
            return value.value if plan.unwraps else value
        return self.run(plan.other)

    def membership(self, plan: Membership) -> Any:
        """Evaluate `in` with a list of constants."""
        value = self.run(plan.value)
        if isinstance(value, EVALUATION_FAILURES):
            return value
        return is_member(value, plan.members)

    # Literals and loops

    def new_list(self, plan: NewList) -> Any:
        """Evaluate `[a, ?b]`."""
        built: Any = []
        for index, element in enumerate(plan.elements):
            value = self.run(element)
            if not isinstance(value, EVALUATION_FAILURES) and index in plan.optional:
                value = _unwrap_optional_entry(value, "optional list element")
                if value is _ABSENT:
                    continue
            if isinstance(value, EVALUATION_FAILURES):
                built = value
                break
            built.append(value)
        self.add(NEW_LIST_COST)
        return built

    def new_map(self, plan: NewMap) -> Any:
        """Evaluate `{key: value}`."""
        built: Any = {}
        for key_plan, value_plan, optional in plan.entries:
            key = self.run(key_plan)
            value = key if isinstance(key, EVALUATION_FAILURES) else self.run(value_plan)
            if optional and not isinstance(value, EVALUATION_FAILURES):
                value = _unwrap_optional_entry(value, f"optional entry '{format_cel_value(key)}'")
                if value is _ABSENT:
                    built.pop(key, None)
                    continue
            if not isinstance(value, EVALUATION_FAILURES) and isinstance(key, dict | list):
                # cel-go compares such keys by identity, which values here do not have.
                value = UnknownError("a map whose key is a map or a list is not followed offline")
            if isinstance(value, EVALUATION_FAILURES):
                built = value
                break
            built[key] = value
        self.add(NEW_MAP_COST)
        return built

    def fold(self, plan: Fold) -> Any:
        """Evaluate a loop."""
        values = self.run(plan.range)
        if isinstance(values, EVALUATION_FAILURES):
            return values
        frame = self.frame
        frame[plan.accumulator] = _Pending(plan.initial)
        try:
            for one, other in iterate_cel_loop_range(values, two=plan.slot2 >= 0):
                frame[plan.slot] = one
                if plan.slot2 >= 0:
                    frame[plan.slot2] = other
                if self.run(plan.condition) is False:
                    break
                frame[plan.accumulator] = self.run(plan.step)
        except EvalError as problem:
            if isinstance(problem, BudgetError):
                raise
            return problem
        return self.run(plan.result)


def _unwrap_optional_entry(value: Any, what: str) -> Any:
    """Return what an optional entry adds: its value, or `_ABSENT`."""
    if not isinstance(value, Optional):
        return EvalError(f"cannot initialize {what} from non-optional value {format_cel_value(value)}")
    return value.value if value.present else _ABSENT


_STEPS: dict[type, Callable[[Meter, Any], Any]] = {
    Constant: lambda meter, plan: plan.value,
    Variable: Meter.attribute,
    Relative: Meter.attribute,
    Conditional: Meter.attribute,
    CallPlan: Meter.call,
    Logic: Meter.logic,
    Fallback: Meter.fallback,
    Membership: Meter.membership,
    NewList: Meter.new_list,
    NewMap: Meter.new_map,
    Fold: Meter.fold,
}
