"""The syntax tree of an expression, with macros expanded as cel-go expands them.

`offset` is the position in the text in code points. `id` numbers the nodes of one expression from 1, so that
the checker's findings (type, chosen overloads, qualified names) can be stored outside the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """The fields of every node."""

    id: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant: None, bool, int, values.Uint, float, str or bytes."""

    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Ident(Node):
    """A name, including a leading dot."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """`operand.field`, or `has(operand.field)` when `test` is set. `operand.?field` is a call of `_?._`."""

    operand: Node
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """A function or operator by cel-go's names (`_+_`, `_[_]`, `_?_:_`, `@in`, `_?._`, `_[?_]`, `size`)."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListNode(Node):
    """`[a, ?b]`; `optional` holds the indices of the entries marked `?`."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class MapEntry:
    """One `key: value` of a map, `?key: value` when `optional`."""

    id: int
    key: Node
    value: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapNode(Node):
    """`{key: value}`."""

    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Struct(Node):
    """`Name{field: value}`; admission policies cannot build messages, and the checker reports them."""

    name: str
    fields: tuple[tuple[str, Node, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(Node):
    """A loop, as cel-go's macros write it. `macro` is the name of the macro it came from (`all`, `map`...).

    `variable2` is empty in one-variable loops. While `condition` holds, `accumulator` becomes `step` for each
    element of `range`; the value is `result`.
    """

    range: Node
    variable: str
    variable2: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node
    macro: str


def children(node: Node) -> tuple[Node, ...]:
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


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    yield node
    for child in children(node):
        yield from walk(child)
