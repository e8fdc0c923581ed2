"""Finding the fields that made a validation fail, from the part of its expression that was false."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from gangplan.cel.ast import (
    AstNode,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Select,
    list_cel_child_nodes,
    walk_nodes,
)
from gangplan.cel.errors import BudgetError, EvalError, UnknownError
from gangplan.cel.program import CelProgram, build_cel_program
from gangplan.findings import FieldPath
from gangplan.records import dataclass
from gangplan.validate.apiserver.policy.evaluate import COST_PER_CALL, Decision, EvaluationScope
from gangplan.validate.apiserver.policy.places import (
    PARAMS_PREFIX,
    ExpressionOrigin,
    OriginFinder,
    VariableOrigins,
)

MOST_PATHS = 20
# The cost that the search for the fields may add to that of the policy.
MOST_WORK = COST_PER_CALL
Values = Mapping[str, Any]


def find_admission_refusal_fields(decision: Decision) -> list[FieldPath]:
    """Return the fields that the failing part of a decision's expression read, without repeats; at most 20.

    They are fields of the object, or of the parameters, as paths that begin with PARAMS.
    """
    if decision.check is None or decision.scope is None:
        return []
    judge = _Judge(decision.scope, decision.check.program)
    try:
        found = judge.looked(decision.check.program.node, {}, {}, True)
    except (EvalError, UnknownError, RecursionError):
        found = []
    paths = list(dict.fromkeys(path for path in found if path))
    around = {path[:length] for path in paths for length in range(len(path))}
    return [path for path in paths if path not in around][:MOST_PATHS]  # the innermost are most precise


@dataclass(slots=True)
class _Judge:
    """The walk through one expression of one evaluation."""

    scope: EvaluationScope
    program: CelProgram
    finder: OriginFinder = field(init=False)
    left: int = MOST_WORK
    _programs: dict[int, CelProgram] = field(default_factory=dict)  # of a node, by its identity
    _homes: dict[int, CelProgram] = field(default_factory=dict)  # the program that a node is part of

    def __post_init__(self) -> None:
        trees = {name: program.node for name, program in self.scope.programs.variables.items()}
        self.finder = OriginFinder(self.value, trees, self.looked)

    def value(self, node: AstNode, values: Values) -> Any:
        """Return the value of a part of the expression. Raises EvalError or UnknownError."""
        tree = self.finder.tree_of(node)
        if tree is not None and isinstance(node, Select):
            return self.scope.activation["variables"][node.field]
        if not self._homes:
            for program in (self.program, *self.scope.programs.variables.values()):
                self._homes |= {id(one): program for one in walk_nodes(program.node)}
        key = id(node)
        if key not in self._programs:
            home = self._homes[key]
            part = replace(home.checked, node=node)
            self._programs[key] = build_cel_program(home.text, part)
        return self._measured(self._programs[key], {**self.scope.activation, **values})

    def _measured(self, program: CelProgram, activation: dict[str, Any]) -> Any:
        """Return the value if the cost budget that is left allows it.

        Raises BudgetError where it does not: what a cost limit ended is not repeated here.
        """
        try:
            value, cost = program.measure(activation, self.left)
        except BudgetError:
            raise
        except EvalError as wrong:
            self.left -= wrong.cost
            raise
        self.left -= cost
        return value

    def truth(self, node: AstNode, values: Values) -> Any:
        """Return the value of a condition, or None if it fails."""
        try:
            return self.value(node, values)
        except BudgetError:
            raise
        except (EvalError, UnknownError):
            return None

    def looked(self, node: AstNode, values: Values, places: VariableOrigins, wanted: bool) -> list[FieldPath]:
        """Return the paths that made a condition not `wanted`."""
        tree = self.finder.tree_of(node)
        if tree is not None:
            return self.looked(tree, {}, {}, wanted)
        if isinstance(node, Call):
            decide = _LOGIC.get(node.function)
            if decide is not None:
                return decide(self, node, values, places, wanted)
        if isinstance(node, Comprehension) and node.macro in ("all", "exists", "exists_one"):
            return self._loop(node, values, places, wanted)
        return self.read(node, values, places)

    def junction(self, node: Call, values: Values, places: VariableOrigins, wanted: bool) -> list[FieldPath]:
        """Return the paths of the parts of `&&` or `

        ` that are not `wanted`.
        """
        guilty = [one for one in node.arguments if self.truth(one, values) is not wanted]
        return [path for one in guilty for path in self.looked(one, values, places, wanted)]

    def negation(self, node: Call, values: Values, places: VariableOrigins, wanted: bool) -> list[FieldPath]:
        """Return the paths of the operand of `!`."""
        return self.looked(node.arguments[0], values, places, not wanted)

    def choice(self, node: Call, values: Values, places: VariableOrigins, wanted: bool) -> list[FieldPath]:
        """Return the paths of the branch that `?:` took, or of the condition if the branch read nothing."""
        condition, first, second = node.arguments
        taken = self.truth(condition, values)
        branch = first if taken is True else second
        return self.looked(branch, values, places, wanted) or self.read(condition, values, places)

    def _loop(
        self, node: Comprehension, values: Values, places: VariableOrigins, wanted: bool
    ) -> list[FieldPath]:
        condition = _find_macro_condition(node)
        found: list[FieldPath] = []
        elements = self.finder.elements(node.range, values, places)
        for place, value in elements:
            inner, known = {**values, node.variable: value}, {**places, node.variable: place}
            truth = self.truth(condition, inner) if condition is not None else None
            if truth is not wanted and condition is not None and node.macro != "exists_one":
                found += self.looked(condition, inner, known, wanted)
        if found and node.macro != "exists":
            return found
        return [*found, *self.read(node.range, values, places)]  # if none matches, the list is a cause too

    def read(self, node: AstNode, values: Values, places: VariableOrigins) -> list[FieldPath]:
        """Return every path that an expression reads."""
        tree = self.finder.tree_of(node)
        if tree is not None and not isinstance(tree, Comprehension | Call | ListNode):
            return self.read(tree, {}, {})
        place = self.finder.of(node, values, places)
        if isinstance(node, Call) and node.function == "@in":
            place = self.finder.entry(node, values, places)
        paths = list(place.paths()) if isinstance(place, ExpressionOrigin) else []
        if isinstance(node, Call) and node.function in ("_[_]", "@in"):
            key = node.arguments[node.function == "_[_]"]
            paths += self.read(key, values, places) if paths else []
        of_object = any(path[0] != PARAMS_PREFIX for path in paths)
        if of_object or (place is not None and not paths and isinstance(node, Ident | Select)):
            return paths
        # In a loop, follow only its range and its initial value: the rest reads variables without places.
        below = (node.range, node.initial) if isinstance(node, Comprehension) else list_cel_child_nodes(node)
        # A parameter that is looked up by a field of the object does not hide that field.
        parts = below if tree is None else (tree,)
        known = ({}, {}) if tree is not None else (values, places)
        return [*paths, *(path for part in parts for path in self.read(part, *known))]


def _find_macro_condition(node: Comprehension) -> AstNode | None:
    """Return the condition of all, exists or exists_one.

    In cel-go's macros, it is the argument of the step that is not the accumulator.
    """
    step = node.step
    if not isinstance(step, Call):
        return None
    parts = [one for one in step.arguments if not (isinstance(one, Ident) and one.name == node.accumulator)]
    return parts[0] if parts else None


_LOGIC: dict[str, Callable[[_Judge, Call, Values, VariableOrigins, bool], list[FieldPath]]] = {
    "_&&_": _Judge.junction,
    "_||_": _Judge.junction,
    "!_": _Judge.negation,
    "_?_:_": _Judge.choice,
}
