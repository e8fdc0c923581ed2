"""Parsing YAML text into PyYAML's node trees, with a depth limit that protects the stack.

libyaml does the work; PyYAML's own parser is used if the C extension is missing. Both build the same nodes.
The `tag` of a node is text only if the file has a tag there; see `is_plain_scalar` for the rest.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gangplan.findings import Location

__all__ = [
    "DepthError",
    "MappingNode",
    "Node",
    "ScalarNode",
    "SequenceNode",
    "compose_nodes",
    "compose_single_node",
    "count_expanded_nodes",
    "is_plain_scalar",
    "locate_node",
]

# PyYAML's composer recurses in C and crashes with a segmentation fault between 10 000 and 30 000 levels on a
# stack of 8 MB; the stack of a thread can be a sixteenth of that.
MAX_DEPTH = 1000
# Text within these limits cannot nest deeper: every bracket, and every two columns of a line, is one level.
_SHORT_TEXT = 1000
_SHORT_LINE = 300
_FEW_BRACKETS = 400


class DepthError(Exception):
    """The text is nested deeper than `MAX_DEPTH`; `near` is the last node before that."""

    def __init__(self, near: Node | None) -> None:
        super().__init__(f"nested more than {MAX_DEPTH} deep")
        self.near = near


class _Unwatched:
    """The hooks that PyYAML calls at every node, as C functions without effect: 40 % faster than methods.

    `slice` replaces the tag, which is not needed: the style of a scalar says whether it is plain.
    """

    resolve = slice
    descend_resolver = operator.is_
    ascend_resolver = tuple


class _Watched:
    """The same hooks, counting the depth."""

    resolve = slice
    _depth = 0

    def descend_resolver(self, parent: Node | None, _index: object) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DepthError(parent)

    def ascend_resolver(self) -> None:
        self._depth -= 1


class _Pure(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer):
    """PyYAML's parser in Python, about 30 times slower."""

    def __init__(self, text: str) -> None:
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        yaml.composer.Composer.__init__(self)


class _PureWatched(_Watched, _Pure):
    pass


if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _Fast(_Unwatched, CParser):
        pass

    class _Safe(_Watched, CParser):
        pass

    _FAST: Any = _Fast
    _SAFE: Any = _Safe
else:  # pragma: no cover
    _FAST = _SAFE = _PureWatched


def compose_nodes(text: str) -> Iterator[Any]:
    """Yield the root node of each document. Raises `DepthError` and `yaml.YAMLError`."""
    parser = (_FAST if _is_shallow_yaml(text) else _SAFE)(text)
    try:
        while parser.check_node():
            yield parser.get_node()
    finally:
        parser.dispose()


def compose_single_node(text: str) -> Any:
    """Return the root node of the only document, or None if there is none.

    Raises the errors of `compose_nodes`, and `yaml.YAMLError` for a second document.
    """
    parser = (_FAST if _is_shallow_yaml(text) else _SAFE)(text)
    try:
        return parser.get_single_node()
    finally:
        parser.dispose()


def is_plain_scalar(node: ScalarNode) -> bool:
    """Return whether a scalar has neither quotes nor a tag, so that its text decides its type."""
    return not node.style and type(node.tag) is not str


def count_expanded_nodes(root: Node) -> int:
    """Return the number of nodes after aliases are expanded. Raises `RecursionError` if one contains
    itself."""
    sizes: dict[int, int] = {}

    def size(node: Node) -> int:
        if type(node) is ScalarNode:
            return 1
        if id(node) not in sizes:
            children = node.value if type(node) is SequenceNode else [n for pair in node.value for n in pair]
            sizes[id(node)] = 1 + sum(map(size, children))
        return sizes[id(node)]

    return size(root)


def _is_shallow_yaml(text: str) -> bool:
    if len(text) <= _SHORT_TEXT:
        return True
    if text.count("[") + text.count("{") > _FEW_BRACKETS:
        return False
    return max(map(len, text.split("\n"))) <= _SHORT_LINE


def locate_node(file: str, node: Node) -> Location:
    """Return the place of a node and its end on the same line; for a block mapping, the end of its first
    key."""
    start, end = node.start_mark, node.end_mark
    if isinstance(node, MappingNode) and node.value and end.line != start.line:
        end = node.value[0][0].end_mark
    is_inside = end.line == start.line and end.column > start.column
    return Location(file, start.line + 1, start.column + 1, end.column + 1 if is_inside else 0)
