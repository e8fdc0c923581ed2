"""A node of YAML in, the place of its word or value out."""

from __future__ import annotations

from gangplan.findings import Location
from gangplan.source.parser import MappingNode, Node


def location(file: str, node: Node) -> Location:
    """The place of a node and its end on the same line; of a block, the end of the key that begins it."""
    start, end = node.start_mark, node.end_mark
    if isinstance(node, MappingNode) and node.value and end.line != start.line:
        end = node.value[0][0].end_mark
    is_inside = end.line == start.line and end.column > start.column
    return Location(file, start.line + 1, start.column + 1, end.column + 1 if is_inside else 0)
