"""The fields that are on a line of a YAML text, and the line of each field."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.source.parser import MappingNode, Node, ScalarNode, SequenceNode, compose_single_node


def find_yaml_paths_at_line(text: str, line: int) -> list[FieldPath]:
    """Return the fields of one document that begin or continue on a line (from 1); none for a blank line.

    If parts of a field begin on the same line, only the parts are returned.
    """
    entries = list(_list_yaml_node_fields_with_lines(compose_single_node(text)))
    begin = [path for path, start, _, _ in entries if start == line]
    if begin:
        return [
            path for path in begin if not any(other[: len(path)] == path for other in begin if other != path)
        ]
    return [path for path, start, end, is_text in entries if is_text and start < line <= end][-1:]


def lines_of(text: str) -> dict[FieldPath, int]:
    """Return the line (from 1) where each field of one document begins."""
    return {path: start for path, start, _, _ in _list_yaml_node_fields_with_lines(compose_single_node(text))}


def _list_yaml_node_fields_with_lines(
    node: Node | None, path: FieldPath = ()
) -> Iterator[tuple[FieldPath, int, int, bool]]:
    """Yield every field: its path, its first and last line, and whether it is a scalar."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode):
                inner = (*path, key.value)
                yield (
                    inner,
                    key.start_mark.line + 1,
                    _find_last_value_line(value),
                    isinstance(value, ScalarNode),
                )
                yield from _list_yaml_node_fields_with_lines(value, inner)
    elif isinstance(node, SequenceNode):
        for index, value in enumerate(node.value):
            inner = (*path, index)
            yield (
                inner,
                value.start_mark.line + 1,
                _find_last_value_line(value),
                isinstance(value, ScalarNode),
            )
            yield from _list_yaml_node_fields_with_lines(value, inner)


def _find_last_value_line(node: Node) -> int:
    """Return the last line of a value; the end mark of a block is where the next token begins."""
    end = node.end_mark
    return int(end.line + (1 if end.column else 0))
