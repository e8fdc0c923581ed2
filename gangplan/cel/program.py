"""A compiled expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel.ast import Node
from gangplan.cel.calls import build_call
from gangplan.cel.checked import Checked
from gangplan.cel.closures import (
    Closure,
    build_attribute,
    build_conditional,
    build_fallback,
    build_list,
    build_logic,
    build_membership,
    measured,
)
from gangplan.cel.cost import CrashError, can_crash
from gangplan.cel.errors import EvalError
from gangplan.cel.frame import FAILED, MISSING, Frame
from gangplan.cel.loops import build_fold
from gangplan.cel.measuring import Meter
from gangplan.cel.plan import (
    CallPlan,
    Conditional,
    Constant,
    Fallback,
    Fold,
    Logic,
    Membership,
    NewList,
    Plan,
    Relative,
    Variable,
)
from gangplan.cel.planner import plan_program
from gangplan.cel.types import Type

_BUILDERS: dict[type, Callable[[Any, Callable[[Plan], Closure]], Closure]] = {
    Variable: build_attribute,
    Relative: build_attribute,
    Conditional: build_conditional,
    CallPlan: build_call,
    Logic: build_logic,
    Fallback: build_fallback,
    Membership: build_membership,
    NewList: build_list,
    Fold: build_fold,
}


class Program:
    """An expression, ready to be evaluated any number of times.

    `text` is the expression, `type` its static type, `node` the checked tree. CompileError: the API server
    makes no program of it although its types agree (`int('a')`).
    """

    __slots__ = ("_may_crash", "_pad", "_plan", "_run", "checked", "node", "text", "type")

    def __init__(self, text: str, node: Node, type: Type, checked: Checked) -> None:
        self.text = text
        self.node = node
        self.type = type
        self.checked = checked
        self._plan = plan_program(text, checked)
        self._pad = [None] * self._plan.size
        self._run: Closure | None = None
        self._may_crash = any(can_crash(id) for ids in checked.overloads.values() for id in ids)

    def evaluate(self, activation: Mapping[str, Any]) -> Any:
        """The value on these variables. EvalError in the API server's words; UnknownError; no budget."""
        run = self._run
        if run is None:
            run = self._run = _build(self._plan.root)
        frame: Frame = self._pad.copy()
        try:
            for slot, name in self._plan.variables:
                frame[slot] = activation[name]
        except KeyError:
            return self.measure(activation)[0]
        try:
            return run(frame)
        except CrashError as problem:
            raise EvalError(str(problem)) from problem
        except EvalError:
            if self._may_crash:
                # The server evaluates what comes after the failed part too, and may stumble there.
                return self.measure(activation)[0]
            raise

    def measure(self, activation: Mapping[str, Any], budget: int | None = None) -> tuple[Any, int]:
        """The value and what it cost. BudgetError beyond `budget`; the cost of errors is in their `cost`."""
        frame: Frame = self._pad.copy()
        for slot, name in self._plan.variables:
            frame[slot] = activation.get(name, MISSING)
        meter = Meter(frame, budget)
        try:
            value = meter.run(self._plan.root)
        except CrashError as problem:
            value = EvalError(str(problem))
        except EvalError as problem:
            value = problem
        if isinstance(value, FAILED):
            if isinstance(value, EvalError):
                value.cost = meter.cost
            raise value
        return value, meter.cost


def _build(plan: Plan) -> Closure:
    if isinstance(plan, Constant):
        value = plan.value
        return lambda frame: value
    builder = _BUILDERS.get(type(plan))
    return builder(plan, _build) if builder is not None else measured(plan)
