"""Macros: calls that the parser expands to loops, exactly as cel-go does (so that costs agree).

Sources: cel-go v0.26.0 parser/macro.go, cel/library.go (optMap, optFlatMap), ext/comprehensions.go (two
variables), ext/lists.go (sortBy).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gangplan.cel.ast import (
    AstNode,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapEntry,
    MapNode,
    Select,
    Struct,
)
from gangplan.cel.errors import Issue
from gangplan.records import dataclass

ACCUMULATOR = "@result"
_UNUSED = "#unused"
_SORT_INPUT = "@__sortBy_input__"
_TAKEN = (ACCUMULATOR, "__result__")


class MacroError(Exception):
    """The arguments of a macro do not fit it."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(offset, message)


class NodeIds:
    """The source of node ids, from 1."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        """Return the next id."""
        self.last += 1
        return self.last


@dataclass(frozen=True, slots=True)
class Macro:
    """One call to expand: its position, its name, its target and its arguments."""

    numbers: NodeIds
    offset: int
    name: str
    target: AstNode | None
    arguments: Sequence[AstNode]

    def call(self, function: str, *arguments: AstNode, on: AstNode | None = None) -> Call:
        """Return a call of a function, as a member of `on` if that is given."""
        return Call(self.numbers.next(), self.offset, function, on, arguments)

    def value(self, value: object) -> Literal:
        """Return a constant."""
        return Literal(self.numbers.next(), self.offset, value)

    def ident(self, name: str) -> Ident:
        """Return a name."""
        return Ident(self.numbers.next(), self.offset, name)

    def accumulator(self) -> Ident:
        """Return the name of the loop's result so far."""
        return self.ident(ACCUMULATOR)

    def list(self, *elements: AstNode) -> ListNode:
        """Return a list of the elements."""
        return ListNode(self.numbers.next(), self.offset, elements)

    def map(self) -> MapNode:
        """Return an empty map."""
        return MapNode(self.numbers.next(), self.offset, ())

    def on(self) -> AstNode:
        """Return the target of a member macro."""
        assert self.target is not None
        return self.target

    def loop(
        self, variables: tuple[str, str], initial: AstNode, condition: AstNode, step: AstNode, result: AstNode
    ) -> AstNode:
        """Return a loop over the target."""
        number, (first, second) = self.numbers.next(), variables
        parts = (ACCUMULATOR, initial, condition, step, result)
        return Comprehension(number, self.offset, self.on(), first, second, *parts, self.name)

    def bind(self, name: str, value: AstNode, result: AstNode, unused: AstNode) -> AstNode:
        """Return a loop that never runs, which only gives a value a name."""
        number, nothing, never = self.numbers.next(), self.list(), self.value(False)
        parts = (name, value, never, unused, result, self.name)
        return Comprehension(number, self.offset, nothing, _UNUSED, "", *parts)

    def copy(self, node: AstNode) -> AstNode:
        """Return a copy of a tree with new ids."""
        return _copy_cel_ast_node(node, self.numbers)


def _copy_cel_ast_node(node: AstNode, numbers: NodeIds) -> AstNode:
    def again(child: AstNode) -> AstNode:
        return _copy_cel_ast_node(child, numbers)

    number, offset = numbers.next(), node.offset
    match node:
        case Literal(value=value):
            return Literal(number, offset, value)
        case Ident(name=name):
            return Ident(number, offset, name)
        case Select(operand=operand, field=field, test=test):
            return Select(number, offset, again(operand), field, test)
        case Call(function=function, target=target, arguments=arguments):
            on = None if target is None else again(target)
            return Call(number, offset, function, on, tuple(map(again, arguments)))
        case ListNode(elements=elements, optional=optional):
            return ListNode(number, offset, tuple(map(again, elements)), optional)
        case MapNode(entries=entries):
            copies = (MapEntry(numbers.next(), again(e.key), again(e.value), e.optional) for e in entries)
            return MapNode(number, offset, tuple(copies))
        case Struct(name=name, fields=fields):
            return Struct(number, offset, name, tuple((f, again(value), opt) for f, value, opt in fields))
        case Comprehension() as loop:
            parts = (again(loop.initial), again(loop.condition), again(loop.step), again(loop.result))
            names = (loop.variable, loop.variable2, loop.accumulator)
            return Comprehension(number, offset, again(loop.range), *names, *parts, loop.macro)
    raise TypeError(type(node).__name__)


# Names of loop variables


def _read_macro_loop_variable(node: AstNode, complaint: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, complaint)
    if node.name in _TAKEN:
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return node.name


def _read_macro_loop_variables(macro: Macro, count: int, complaint: str) -> tuple[str, str]:
    """Return the names of one or two loop variables; the second is empty for one."""
    if count == 1:
        return _read_macro_loop_variable(macro.arguments[0], complaint), ""
    for argument in macro.arguments[:2]:
        if not isinstance(argument, Ident):
            raise MacroError(argument.offset, "argument must be a simple name")
    first, second = (str(getattr(argument, "name", "")) for argument in macro.arguments[:2])
    if first == second:
        raise MacroError(macro.arguments[1].offset, f"duplicate variable name: {first}")
    return _read_macro_loop_variable(macro.arguments[0], complaint), _read_macro_loop_variable(
        macro.arguments[1], complaint
    )


# The macros


def _expand_has_macro(macro: Macro) -> AstNode:
    (chosen,) = macro.arguments
    if not isinstance(chosen, Select):
        raise MacroError(chosen.offset, "invalid argument to has() macro")
    return Select(macro.numbers.next(), macro.offset, chosen.operand, chosen.field, True)


def _expand_all_macro(macro: Macro) -> AstNode:
    variables = _read_macro_loop_variables(macro, len(macro.arguments) - 1, "argument must be a simple name")
    condition = macro.call("@not_strictly_false", macro.accumulator())
    step = macro.call("_&&_", macro.accumulator(), macro.arguments[-1])
    return macro.loop(variables, macro.value(True), condition, step, macro.accumulator())


def _expand_exists_macro(macro: Macro) -> AstNode:
    variables = _read_macro_loop_variables(macro, len(macro.arguments) - 1, "argument must be a simple name")
    condition = macro.call("@not_strictly_false", macro.call("!_", macro.accumulator()))
    step = macro.call("_||_", macro.accumulator(), macro.arguments[-1])
    return macro.loop(variables, macro.value(False), condition, step, macro.accumulator())


def _expand_exists_one_macro(macro: Macro) -> AstNode:
    variables = _read_macro_loop_variables(macro, len(macro.arguments) - 1, "argument must be a simple name")
    more = macro.call("_+_", macro.accumulator(), macro.value(1))
    step = macro.call("_?_:_", macro.arguments[-1], more, macro.accumulator())
    result = macro.call("_==_", macro.accumulator(), macro.value(1))
    return macro.loop(variables, macro.value(0), macro.value(True), step, result)


def _expand_filter_macro(macro: Macro) -> AstNode:
    variables = _read_macro_loop_variables(macro, 1, "argument is not an identifier")
    more = macro.call("_+_", macro.accumulator(), macro.list(macro.arguments[0]))
    step = macro.call("_?_:_", macro.arguments[1], more, macro.accumulator())
    return macro.loop(variables, macro.list(), macro.value(True), step, macro.accumulator())


def _build_list_macro_loop(macro: Macro, count: int) -> AstNode:
    """Return a loop that lists the last argument's values where the argument before it, if any, holds."""
    variables = _read_macro_loop_variables(macro, count, "argument is not an identifier")
    step: AstNode = macro.call("_+_", macro.accumulator(), macro.list(macro.arguments[-1]))
    if len(macro.arguments) == count + 2:
        step = macro.call("_?_:_", macro.arguments[count], step, macro.accumulator())
    return macro.loop(variables, macro.list(), macro.value(True), step, macro.accumulator())


def _expand_map_macro(macro: Macro) -> AstNode:
    return _build_list_macro_loop(macro, 1)


def _transform_list(macro: Macro) -> AstNode:
    return _build_list_macro_loop(macro, 2)


def _transform_map(macro: Macro) -> AstNode:
    return _build_map_macro_loop(macro, has_key=True)


def _transform_map_entry(macro: Macro) -> AstNode:
    return _build_map_macro_loop(macro, has_key=False)


def _build_map_macro_loop(macro: Macro, *, has_key: bool) -> AstNode:
    variables = _read_macro_loop_variables(macro, 2, "argument must be a simple name")
    added = (macro.ident(variables[0]),) if has_key else ()
    step: AstNode = macro.call("cel.@mapInsert", macro.accumulator(), *added, macro.arguments[-1])
    if len(macro.arguments) == 4:
        step = macro.call("_?_:_", macro.arguments[2], step, macro.accumulator())
    return macro.loop(variables, macro.map(), macro.value(True), step, macro.accumulator())


def _build_optional_binding(macro: Macro, *, wraps: bool) -> AstNode:
    name = macro.arguments[0]
    if not isinstance(name, Ident):
        raise MacroError(name.offset, f"{macro.name}() variable name must be a simple identifier")
    has_value = macro.call("hasValue", on=macro.on())
    value = macro.call("value", on=macro.copy(macro.on()))
    result = macro.bind(name.name, value, macro.arguments[1], macro.ident(name.name))
    if wraps:
        result = macro.call("optional.of", result)
    return macro.call("_?_:_", has_value, result, macro.call("optional.none"))


def _expand_opt_map_macro(macro: Macro) -> AstNode:
    return _build_optional_binding(macro, wraps=True)


def _expand_opt_flat_map_macro(macro: Macro) -> AstNode:
    return _build_optional_binding(macro, wraps=False)


def _expand_sort_by_macro(macro: Macro) -> AstNode:
    target = macro.on()
    if not isinstance(target, ListNode | Select | Ident | Comprehension | Call):
        nouns = "a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, f"sortBy can only be applied to {nouns}")
    keys = _expand_map_macro(
        Macro(macro.numbers, macro.offset, "map", macro.ident(_SORT_INPUT), macro.arguments)
    )
    result = macro.call("@sortByAssociatedKeys", keys, on=macro.ident(_SORT_INPUT))
    return macro.bind(_SORT_INPUT, target, result, macro.ident(_SORT_INPUT))


_Expander = Callable[[Macro], AstNode]
# The first minor and the expansion of each macro, by name, number of arguments and whether it is a member.
_TABLE: dict[tuple[str, int, bool], tuple[int, _Expander]] = {
    ("has", 1, False): (0, _expand_has_macro),
    ("all", 2, True): (0, _expand_all_macro),
    ("exists", 2, True): (0, _expand_exists_macro),
    ("exists_one", 2, True): (0, _expand_exists_one_macro),
    ("map", 2, True): (0, _expand_map_macro),
    ("map", 3, True): (0, _expand_map_macro),
    ("filter", 2, True): (0, _expand_filter_macro),
    ("optMap", 2, True): (28, _expand_opt_map_macro),
    ("optFlatMap", 2, True): (28, _expand_opt_flat_map_macro),
    ("all", 3, True): (32, _expand_all_macro),
    ("exists", 3, True): (32, _expand_exists_macro),
    ("existsOne", 3, True): (32, _expand_exists_one_macro),
    ("exists_one", 3, True): (32, _expand_exists_one_macro),
    ("transformList", 3, True): (32, _transform_list),
    ("transformList", 4, True): (32, _transform_list),
    ("transformMap", 3, True): (32, _transform_map),
    ("transformMap", 4, True): (32, _transform_map),
    ("transformMapEntry", 3, True): (32, _transform_map_entry),
    ("transformMapEntry", 4, True): (32, _transform_map_entry),
    ("sortBy", 2, True): (34, _expand_sort_by_macro),
}


def expand_macro(minor: int, macro: Macro) -> AstNode | None:
    """Return the expansion of a macro call, or None for an ordinary call.

    Raises `MacroError` if the arguments do not fit.
    """
    key = (macro.name, len(macro.arguments), macro.target is not None)
    since, expander = _TABLE.get(key, (None, None))
    if expander is None or since is None or minor < since:
        return None
    return expander(macro)
