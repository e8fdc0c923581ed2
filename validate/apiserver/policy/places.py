"""Finding where in the object a value of an expression comes from.

Values do not know their origin, so the tree is walked in parallel with the evaluation: a select goes one
field down, a `map` keeps the origin of each element, and a `filter` also remembers what its condition read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gangplan.cel.ast import AstNode, Call, Comprehension, Ident, ListNode, Literal, Select
from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.values import Optional
from gangplan.findings import FieldPath
from gangplan.records import dataclass

# Functions whose value is their argument, or a part of it at the same place, in another type or form.
SAME = frozenset(
    (
        *("orValue", "or", "value", "dyn", "optional.of", "optional.ofNonZeroValue"),
        *("int", "uint", "double", "string", "quantity", "trim", "lowerAscii", "upperAscii"),
    )
)
# First step of paths that lead into the parameters instead of the object.
PARAMS_PREFIX = "params:"


@dataclass(frozen=True, slots=True)
class ExpressionOrigin:
    """The origin of a value: a path of the object, or the origins of a list's elements.

    `why` are the paths that a condition read when it kept this element.
    """

    path: FieldPath | None = None
    items: tuple[ExpressionOrigin, ...] | None = None
    why: tuple[FieldPath, ...] = ()

    def down(self, step: str | int) -> ExpressionOrigin | None:
        """Return the origin of a part."""
        if self.path is not None:
            return ExpressionOrigin((*self.path, step))
        if self.items is not None and isinstance(step, int) and 0 <= step < len(self.items):
            return self.items[step]
        return None

    def paths(self) -> Iterator[FieldPath]:
        """Yield every path in the origin; a condition's paths replace those of the element that it kept."""
        if self.why:
            yield from self.why
        elif self.items is not None:
            for item in self.items:
                yield from item.paths()
        elif self.path is not None:
            yield self.path


VariableOrigins = Mapping[str, ExpressionOrigin]
NOWHERE = ExpressionOrigin()
_ROOTS = {"object": ExpressionOrigin(()), "params": ExpressionOrigin((PARAMS_PREFIX,))}


@dataclass(slots=True)
class OriginFinder:
    """Finder of origins.

    `evaluate` returns the value of a node with loop variables bound; `trees` are the trees of the policy's
    variables; `looked` returns the paths that made a condition not have the wanted value.
    """

    evaluate: Callable[[AstNode, Mapping[str, Any]], Any]
    trees: Mapping[str, AstNode]
    looked: Callable[[AstNode, Mapping[str, Any], VariableOrigins, bool], list[FieldPath]]

    def of(
        self, node: AstNode, values: Mapping[str, Any], places: VariableOrigins
    ) -> ExpressionOrigin | None:
        """Return the origin of a node's value, or None if it has none."""
        if isinstance(node, Ident):
            return _ROOTS.get(node.name) or places.get(node.name)
        if isinstance(node, Select):
            return self._select(node, values, places)
        if isinstance(node, Call):
            return self._call(node, values, places)
        if isinstance(node, ListNode):
            return ExpressionOrigin(
                items=tuple(self.of(one, values, places) or NOWHERE for one in node.elements)
            )
        if isinstance(node, Comprehension):
            return self._loop(node, values, places)
        return None

    def tree_of(self, node: AstNode) -> AstNode | None:
        """Return the tree of the variable that a node names (`variables.x`), or None."""
        if isinstance(node, Select) and isinstance(node.operand, Ident) and node.operand.name == "variables":
            return self.trees.get(node.field)
        return None

    def _select(
        self, node: Select, values: Mapping[str, Any], places: VariableOrigins
    ) -> ExpressionOrigin | None:
        tree = self.tree_of(node)
        if tree is not None:
            return self.of(tree, {}, {})
        place = self.of(node.operand, values, places)
        return place.down(node.field) if place else None

    def _call(
        self, node: Call, values: Mapping[str, Any], places: VariableOrigins
    ) -> ExpressionOrigin | None:
        name, given = node.function, node.arguments
        if name in SAME:
            return self.of(node.target or given[0], values, places)
        if name in ("_?._", "_[_]", "_[?_]"):
            place = self.of(given[0], values, places)
            step = self._step(given[1], values)
            return place.down(step) if place and step is not None else None
        if name == "split" and node.target is not None:
            place, parts = self.of(node.target, values, places), self._value(node, values)
            return (
                ExpressionOrigin(items=(place,) * len(parts))
                if place and isinstance(parts, list | tuple)
                else None
            )
        if name == "_?_:_":
            branch = given[1] if self._value(given[0], values) is True else given[2]
            return self.of(branch, values, places)
        if name == "_+_" and isinstance(self._value(node, values), list | tuple):
            lists = [self.elements(one, values, places) for one in given]
            return ExpressionOrigin(items=tuple(place for part in lists for place, _ in part))
        if name == "flatten" and node.target is not None:
            inner = self.elements(node.target, values, places)
            return ExpressionOrigin(
                items=tuple(one for place, value in inner for one in _list_element_origins(place, value))
            )
        return None

    def entry(
        self, node: Call, values: Mapping[str, Any], places: VariableOrigins
    ) -> ExpressionOrigin | None:
        """Return the origin of the entry that `key in mapping` tests, whether it exists or not."""
        place, step = self.of(node.arguments[1], values, places), self._step(node.arguments[0], values)
        is_mapping = isinstance(self._value(node.arguments[1], values), Mapping)
        return place.down(step) if place and is_mapping and step is not None else None

    def _step(self, node: AstNode, values: Mapping[str, Any]) -> str | int | None:
        step = node.value if isinstance(node, Literal) else self._value(node, values)
        return step if isinstance(step, str | int) else None

    def _loop(
        self, node: Comprehension, values: Mapping[str, Any], places: VariableOrigins
    ) -> ExpressionOrigin | None:
        if node.macro not in ("map", "filter") or node.variable2:
            return None
        kept: list[ExpressionOrigin] = []
        for place, value in self.elements(node.range, values, places):
            inner, known = {**values, node.variable: value}, {**places, node.variable: place}
            condition, result = _split_map_or_filter_macro(node)
            if condition is not None and self._value(condition, inner) is not True:
                continue
            found = (self.of(result, inner, known) or NOWHERE) if result is not None else place
            if condition is not None:
                why = tuple(self.looked(condition, inner, known, False)) or found.why
                found = ExpressionOrigin(found.path, found.items, why)
            kept.append(found)
        return ExpressionOrigin(items=tuple(kept))

    def elements(
        self, node: AstNode, values: Mapping[str, Any], places: VariableOrigins
    ) -> list[tuple[ExpressionOrigin, Any]]:
        """Return the elements of a list with their origins."""
        value = self._value(node, values)
        if isinstance(value, Optional):
            value = value.value
        if not isinstance(value, list | tuple):
            return []
        place = self.of(node, values, places)
        return list(zip(_list_element_origins(place or NOWHERE, value), value, strict=True))

    def _value(self, node: AstNode, values: Mapping[str, Any]) -> Any:
        try:
            return self.evaluate(node, values)
        except (EvalError, UnknownError):
            return None


def _list_element_origins(place: ExpressionOrigin, value: Any) -> list[ExpressionOrigin]:
    """Return an origin for each element of a value."""
    count = len(value) if isinstance(value, list | tuple) else 0
    if place.items is not None and len(place.items) == count:
        return list(place.items)
    return [place.down(index) or NOWHERE for index in range(count)]


def _split_map_or_filter_macro(node: Comprehension) -> tuple[AstNode | None, AstNode | None]:
    """Return the condition and the result of a `map` or `filter`.

    In cel-go's macros, the step is `accumulator + [result]`, or with a condition `condition ? accumulator +
    [result] : accumulator`.
    """
    step, condition = node.step, None
    if isinstance(step, Call) and step.function == "_?_:_":
        condition, step = step.arguments[0], step.arguments[1]
    result: AstNode | None = None
    if isinstance(step, Call) and step.function == "_+_" and isinstance(step.arguments[1], ListNode):
        result = step.arguments[1].elements[0]
    return condition, None if node.macro == "filter" else result
