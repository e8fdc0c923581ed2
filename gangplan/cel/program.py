"""A compiled expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.ast import AstNode
from gangplan.cel.calls import build_cel_call_closure
from gangplan.cel.checked import Checked
from gangplan.cel.closures import (
    Closure,
    build_cel_attribute_closure,
    build_cel_conditional_closure,
    build_cel_fallback_closure,
    build_cel_list_closure,
    build_cel_logic_closure,
    build_cel_membership_closure,
    build_measured_cel_closure,
)
from gangplan.cel.cost import CrashError, can_crash
from gangplan.cel.errors import EvalError
from gangplan.cel.frame import EVALUATION_FAILURES, MISSING_VARIABLE, Frame
from gangplan.cel.loops import build_cel_fold_closure
from gangplan.cel.measuring import Meter
from gangplan.cel.plan import (
    CallPlan,
    Conditional,
    Constant,
    ExpressionPlan,
    Fallback,
    Fold,
    Logic,
    Membership,
    NewList,
    PlanStep,
    Relative,
    Variable,
)
from gangplan.cel.planner import plan_cel_program
from gangplan.cel.types import Type

_BUILDERS: dict[type, Callable[[Any, Callable[[PlanStep], Closure]], Closure]] = {
    Variable: build_cel_attribute_closure,
    Relative: build_cel_attribute_closure,
    Conditional: build_cel_conditional_closure,
    CallPlan: build_cel_call_closure,
    Logic: build_cel_logic_closure,
    Fallback: build_cel_fallback_closure,
    Membership: build_cel_membership_closure,
    NewList: build_cel_list_closure,
    Fold: build_cel_fold_closure,
}


class CelProgram:
    """An expression, ready to be evaluated any number of times.

    `text` is the expression, `type` its static type, and `may_crash` whether evaluation may stop half-way
    where the server continues. `checked` and `plan` are made on first use.
    """

    __slots__ = ("_checked", "_load", "_pad", "_plan", "_run", "may_crash", "text", "type")

    def __init__(self, text: str, type: Type, may_crash: bool, load: Callable[[], Checked]) -> None:
        self.text = text
        self.type = type
        self.may_crash = may_crash
        self._load = load
        self._checked: Checked | None = None
        self._plan: ExpressionPlan | None = None
        self._pad: list[Any] = []
        self._run: Closure | None = None

    @property
    def checked(self) -> Checked:
        """Its tree, with the results of the checker."""
        if self._checked is None:
            self._checked = self._load()
        return self._checked

    @property
    def node(self) -> AstNode:
        """The checked tree."""
        return self.checked.node

    @property
    def plan(self) -> ExpressionPlan:
        """Its steps."""
        if self._plan is None:
            self._plan = plan_cel_program(self.text, self.checked)
            self._pad = [None] * self._plan.size
        return self._plan

    def evaluate(self, activation: Mapping[str, Any]) -> Any:
        """Return the value for these variables, without a budget.

        Raises `EvalError` in the API server's words, or `UnknownError`.
        """
        run = self._run
        if run is None:
            run = self._run = _build_cel_step_closure(self.plan.root)
        frame: Frame = self._pad.copy()
        try:
            for slot, name in self.plan.variables:
                frame[slot] = activation[name]
        except KeyError:
            return self.measure(activation)[0]
        try:
            return run(frame)
        except CrashError as problem:
            raise EvalError(str(problem)) from problem
        except EvalError:
            if self.may_crash:
                # The server also evaluates what comes after the failed part, and may crash there.
                return self.measure(activation)[0]
            raise

    def measure(self, activation: Mapping[str, Any], budget: int | None = None) -> tuple[Any, int]:
        """Return the value and its cost.

        Raises `BudgetError` if the cost exceeds `budget`, `EvalError` (with its `cost`) or `UnknownError`.
        """
        plan = self.plan
        frame: Frame = self._pad.copy()
        for slot, name in plan.variables:
            frame[slot] = activation.get(name, MISSING_VARIABLE)
        meter = Meter(frame, budget)
        try:
            value = meter.run(plan.root)
        except CrashError as problem:
            value = EvalError(str(problem))
        except EvalError as problem:
            value = problem
        if isinstance(value, EVALUATION_FAILURES):
            if isinstance(value, EvalError):
                value.cost = meter.cost
            raise value
        return value, meter.cost


def build_cel_program(text: str, checked: Checked) -> CelProgram:
    """Return the program of a checked expression.

    Raises `CompileError` if the API server cannot make a program of it although its types agree (`int('a')`).
    """
    may_crash = any(can_crash(id) for ids in checked.overloads.values() for id in ids)
    program = CelProgram(text, checked.type, may_crash, lambda: checked)
    _ = program.plan  # planning raises any error now
    return program


def _build_cel_step_closure(plan: PlanStep) -> Closure:
    if isinstance(plan, Constant):
        value = plan.value
        return lambda frame: value
    builder = _BUILDERS.get(type(plan))
    return builder(plan, _build_cel_step_closure) if builder is not None else build_measured_cel_closure(plan)
