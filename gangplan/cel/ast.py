"""The syntax tree of an expression, with macros expanded as cel-go expands them.

`offset` is the position in the text in code points. `id` numbers the nodes of one expression from 1, so that
the checker's findings (type, chosen overloads, qualified names) can be stored outside the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class AstNode:
    """The fields of every node."""

    id: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(AstNode):
    """A constant: None, bool, int, values.Uint, float, str or bytes."""

    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Ident(AstNode):
    """A name, including a leading dot."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(AstNode):
    """`operand.field`, or `has(operand.field)` when `test` is set. `operand.?field` is a call of `_?._`."""

    operand: AstNode
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(AstNode):
    """A function or operator by cel-go's names (`_+_`, `_[_]`, `_?_:_`, `@in`, `_?._`, `_[?_]`, `size`)."""

    function: str
    target: AstNode | None
    arguments: tuple[AstNode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListNode(AstNode):
    """`[a, ?b]`; `optional` holds the indices of the entries marked `?`."""

    elements: tuple[AstNode, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class MapEntry:
    """One `key: value` of a map, `?key: value` when `optional`."""

    id: int
    key: AstNode
    value: AstNode
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapNode(AstNode):
    """`{key: value}`."""

    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Struct(AstNode):
    """`Name{field: value}`; admission policies cannot build messages, and the checker reports them."""

    name: str
    fields: tuple[tuple[str, AstNode, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(AstNode):
    """A loop, as cel-go's macros write it. `macro` is the name of the macro it came from (`all`, `map`...).

    `variable2` is empty in one-variable loops. While `condition` holds, `accumulator` becomes `step` for each
    element of `range`; the value is `result`.
    """

    range: AstNode
    variable: str
    variable2: str
    accumulator: str
    initial: AstNode
    condition: AstNode
    step: AstNode
    result: AstNode
    macro: str


def list_cel_child_nodes(node: AstNode) -> tuple[AstNode, ...]:
    """Return the nodes directly under a node, in the order in which cel-go visits them."""
    match node:
        case Select(operand=operand):
            return (operand,)
        case Call(target=target, arguments=arguments):
            return arguments if target is None else (target, *arguments)
        case ListNode(elements=elements):
            return elements
        case MapNode(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case Struct(fields=fields):
            return tuple(value for _, value, _ in fields)
        case Comprehension() as loop:
            return (loop.range, loop.initial, loop.condition, loop.step, loop.result)
    return ()


def walk_nodes(node: AstNode) -> Iterator[AstNode]:
    """Yield a node and all nodes below it."""
    yield node
    for child in list_cel_child_nodes(node):
        yield from walk_nodes(child)
