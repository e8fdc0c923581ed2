"""Turn a checked tree into a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gangplan.cel import ast
from gangplan.cel.checked import Checked
from gangplan.cel.declarations import LAST_MINOR, list_cel_type_names
from gangplan.cel.errors import CompileError, EvalError, Issue
from gangplan.cel.library.authorizer import is_authorizer, refuse_authorizer_call
from gangplan.cel.library.base import Implementation, build_overload_error
from gangplan.cel.library.constant_patterns import bind_constant_cel_pattern
from gangplan.cel.library.table import FUNCTIONS, OVERLOADS
from gangplan.cel.numbers import INT_MAX, INT_MIN, UINT_MAX
from gangplan.cel.plan import (
    Attribute,
    CallPlan,
    Computed,
    Conditional,
    Constant,
    ConstantQualifier,
    ExpressionPlan,
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
)
from gangplan.cel.types import Type
from gangplan.cel.values import TypeValue, Uint, go_type_of

# Functions whose calls with a constant are constants (cel-go's IsTypeConversionFunction).
_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_TYPES = frozenset(list_cel_type_names(LAST_MINOR))
_INDEXES = frozenset(("_[_]", "_[?_]", "_?._"))
_PATTERNS = frozenset(("matches", "find", "findAll"))


def plan_cel_program(text: str, checked: Checked) -> ExpressionPlan:
    """Return the plan. Raises `CompileError` if the API server cannot make a program of it, such as for
    `int('a')`."""
    planner = _Planner(text, checked)
    root = planner.plan(checked.node)
    return ExpressionPlan(root, planner.size, tuple((slot, name) for name, slot in planner.variables.items()))


class _Planner:
    def __init__(self, text: str, checked: Checked) -> None:
        self.text = text
        self.checked = checked
        self.size = 0
        self.variables: dict[str, int] = {}
        self.scopes: list[tuple[str, int]] = []

    def plan(self, node: ast.AstNode) -> PlanStep:
        """Return the step of a node."""
        match node:
            case ast.Literal(value=value):
                return Constant(node.id, value)
            case ast.Ident(name=name):
                return self._ident(node, name)
            case ast.Select():
                return self._select(node)
            case ast.Call():
                return self._call(node)
            case ast.ListNode(elements=elements, optional=optional):
                return self._list(NewList(node.id, tuple(map(self.plan, elements)), optional))
            case ast.MapNode(entries=entries):
                return self._map(node.id, entries)
            case ast.Comprehension():
                return self._fold(node)
        raise TypeError(f"no plan for {type(node).__name__}")

    def refuse(self, node: ast.AstNode, problem: object) -> CompileError:
        """Return the error of an expression that cannot become a program."""
        issue = Issue(node.offset, f"program instantiation failed: {problem}")
        return CompileError(self.text, (issue,))

    # Names and selections

    def _ident(self, node: ast.AstNode, name: str) -> PlanStep:
        static = self.checked.types[node.id].name
        if static.startswith("kubernetes.authorization."):
            # Every call of the authorizer is unknown, so an activation need not contain it.
            return Constant(node.id, None)
        if static == "type":
            # cel-go takes every name of such a type, even a loop's variable, for the name of a type.
            if name not in _TYPES:
                raise self.refuse(node, f"reference to undefined type: {name}")
            return Constant(node.id, TypeValue(Type(name)))
        for scoped, slot in reversed(self.scopes):
            if scoped == name:
                return Variable(node.id, slot, name)
        if name not in self.variables:
            self.variables[name] = self._slot()
        return Variable(node.id, self.variables[name], name)

    def _slot(self) -> int:
        self.size += 1
        return self.size - 1

    def _select(self, node: ast.Select) -> PlanStep:
        return qualify_cel_step(
            self.plan(node.operand), node.id, ConstantQualifier(node.field, test=node.test)
        )

    def _index(self, node: ast.Call, optional: bool) -> PlanStep:
        operand, index = (self.plan(argument) for argument in node.arguments)
        if not isinstance(index, Constant):
            return qualify_cel_step(operand, node.id, Computed(index, optional))
        if type(index.value) not in (str, int, Uint, bool, float):
            raise self.refuse(node, f"invalid qualifier type: {go_type_of(index.value)}")
        return qualify_cel_step(operand, node.id, ConstantQualifier(index.value, optional))

    # Calls

    def _call(self, node: ast.Call) -> PlanStep:
        function = node.function
        if function in _INDEXES:
            return self._index(node, optional=function != "_[_]")
        written = node.arguments if node.target is None else (node.target, *node.arguments)
        arguments = tuple(map(self.plan, written))
        if function in ("_&&_", "_||_"):
            return Logic(node.id, function == "_||_", arguments)
        if function == "_?_:_":
            return Conditional(
                node.id,
                arguments[0],
                _convert_branch_to_attribute(arguments[1]),
                _convert_branch_to_attribute(arguments[2]),
            )
        if function in ("or", "orValue"):
            return Fallback(node.id, arguments[0], arguments[1], function == "orValue")
        call = self._resolved(node, arguments)
        if call.overload == "in_list" and isinstance(arguments[1], Constant):
            return _build_membership_step(call, arguments[0], arguments[1])
        if function in _CONVERSIONS and len(arguments) == 1 and isinstance(arguments[0], Constant):
            return self._converted(node, call, arguments[0])
        return call

    def _converted(self, node: ast.Call, call: CallPlan, argument: Constant) -> Constant:
        try:
            return Constant(node.id, call.call(argument.value))
        except EvalError as problem:
            raise self.refuse(node, problem) from problem

    def _resolved(self, node: ast.Call, arguments: tuple[PlanStep, ...]) -> CallPlan:
        """Return the call with its implementation."""
        ids = self.checked.overloads.get(node.id, ())
        overload = ids[0] if len(ids) == 1 else ""
        stops = (
            len(arguments) > 2 or node.function in _VARIADIC or (not overload and is_chosen(node.function))
        )
        if any(map(is_authorizer, ids)):
            return CallPlan(node.id, node.function, overload, refuse_authorizer_call, arguments, stops)
        if node.function in _PATTERNS and isinstance(arguments[1], Constant):
            try:
                call = bind_constant_cel_pattern(node.function, arguments[1].value)
            except EvalError as problem:
                raise self.refuse(node, problem) from problem
            if call is not None:
                return CallPlan(node.id, node.function, overload, call, arguments, stops=True)
        return CallPlan(
            node.id, node.function, overload, choose_cel_overload(node.function, overload), arguments, stops
        )

    # Literals and loops

    def _list(self, plan: NewList) -> PlanStep:
        elements = plan.elements
        if plan.optional or not all(isinstance(element, Constant) for element in elements):
            return plan
        return Constant(plan.id, [element.value for element in elements if isinstance(element, Constant)])

    def _map(self, id: int, written: tuple[ast.MapEntry, ...]) -> PlanStep:
        entries = tuple((self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in written)
        values: dict[object, object] = {}
        for key, value, optional in entries:
            if optional or not isinstance(key, Constant) or not isinstance(value, Constant):
                return NewMap(id, entries)
            if isinstance(key.value, dict | list):
                return NewMap(id, entries)
            values[key.value] = value.value
        return Constant(id, values)

    def _fold(self, node: ast.Comprehension) -> Fold:
        initial, range_ = self.plan(node.initial), self.plan(node.range)
        slot, accumulator = self._slot(), self._slot()
        slot2 = self._slot() if node.variable2 else -1
        outer = len(self.scopes)
        # The result sees only the accumulator; cel-go looks it up first in either case.
        self.scopes.append((node.accumulator, accumulator))
        result = self.plan(node.result)
        self.scopes[outer:] = [(node.variable2, slot2)] if node.variable2 else []
        self.scopes += [(node.variable, slot), (node.accumulator, accumulator)]
        condition, step = self.plan(node.condition), self.plan(node.step)
        del self.scopes[outer:]
        return Fold(node.id, range_, slot, slot2, accumulator, initial, condition, step, result)


# Functions that cel-go calls with a list of arguments although they have two or fewer.
_VARIADIC = frozenset(("format", "optional.none"))


def is_chosen(function: str) -> bool:
    """Return whether the values choose among overloads, each with its own implementation."""
    return any(choice.guarded for choice in FUNCTIONS.get(function, ()))


def choose_cel_overload(function: str, overload: str) -> Callable[..., Any]:
    """Return the function that evaluates a call: one overload, or whichever fits the values."""
    if overload in OVERLOADS:
        return _guard_overload_call(OVERLOADS[overload])
    choices = FUNCTIONS[function]
    if not is_chosen(function):
        return choices[0].call

    def dispatch(*values: object) -> object:
        for choice in choices:
            if choice.takes(values):
                return choice.call(*values)
        raise build_overload_error(function, values)

    return dispatch


def _guard_overload_call(overload: Implementation) -> Callable[..., Any]:
    if not overload.guarded or not overload.arguments:
        return overload.call
    call, takes = overload.call, overload.takes

    def guarded(*values: object) -> object:
        if takes(values):
            return call(*values)
        raise build_overload_error(overload.function, values)

    return guarded


def _convert_branch_to_attribute(plan: PlanStep) -> Attribute:
    if isinstance(plan, Variable | Relative | Conditional):
        return plan
    return Relative(plan.id, plan)


def qualify_cel_step(plan: PlanStep, id: int, qualifier: Qualifier) -> Attribute:
    """Return a step with one more qualifier."""
    if isinstance(plan, Conditional):
        yes, no = (qualify_cel_step(branch, id, qualifier) for branch in (plan.yes, plan.no))
        return replace(plan, id=id, yes=yes, no=no)
    if isinstance(plan, Variable | Relative):
        return replace(plan, id=id, qualifiers=(*plan.qualifiers, qualifier))
    return Relative(id, plan, (qualifier,))


def _build_membership_step(call: CallPlan, value: PlanStep, constant: Constant) -> PlanStep:
    """Return the step of `value in [constants]`: a lookup if all constants are simple, else the call."""
    elements = constant.value
    if not isinstance(elements, list) or not elements:
        return Constant(call.id, False) if elements == [] else call
    members: set[tuple[type, object]] = set()
    for element in elements:
        if type(element) not in (str, bool, int, Uint, float):
            return call
        members.add((type(element), element))
        members.update(_list_equal_cel_numbers(element))
    return Membership(call.id, value, frozenset(members))


def _list_equal_cel_numbers(element: object) -> list[tuple[type, object]]:
    """Return the same number in the other types."""
    if type(element) not in (int, Uint, float):
        return []
    assert isinstance(element, int | float)
    if type(element) is float:
        if not element.is_integer() or abs(element) >= 2.0**64:
            return []
        whole = int(element)
    else:
        whole = int(element)
    found: list[tuple[type, object]] = [(float, float(whole))]
    if INT_MIN <= whole <= INT_MAX:
        found.append((int, whole))
    if 0 <= whole <= UINT_MAX:
        found.append((Uint, Uint(whole)))
    return found
