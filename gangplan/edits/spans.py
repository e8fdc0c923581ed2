"""Find where the parts of a YAML text begin and end, without comments and line ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.records import dataclass
from gangplan.source.parser import MappingNode, Node, ScalarNode, SequenceNode

_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")


@dataclass(frozen=True, slots=True)
class EntrySpan:
    """A pair of a mapping or an item of a list, by character offsets in the text.

    `start` is where its key or dash begins and `head` where that ends, after the colon or dash; `begin` and
    `end` are those of the value.
    """

    name: str | int
    node: Node
    start: int
    head: int
    begin: int
    end: int


def list_text_spans_of_yaml_entries(text: str, node: Node) -> list[EntrySpan]:
    """Return the entries of a mapping or a list, in order."""
    return list(
        _find_text_spans_of_mapping_entries(text, node)
        if isinstance(node, MappingNode)
        else _find_text_spans_of_list_items(text, node)
    )


def is_block_style(node: Node) -> bool:
    """Return whether a node is a mapping or a list written without brackets."""
    return isinstance(node, MappingNode | SequenceNode) and not node.flow_style


def find_end_of_yaml_value(text: str, node: Node) -> int:
    """Return where a value ends; without brackets, after its last word and before any comments."""
    if is_block_style(node):
        found = list_text_spans_of_yaml_entries(text, node)
        return found[-1].end if found else node.start_mark.index
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        return start + len(text[start:end].rstrip())
    return int(end)


def _find_text_spans_of_mapping_entries(text: str, node: Node) -> Iterator[EntrySpan]:
    for key, value in node.value:
        start = key.start_mark.index
        behind = key.end_mark.index
        colon = text.find(":", behind)
        head = colon + 1 if colon >= 0 and not text[behind:colon].strip() else behind
        yield EntrySpan(key.value, value, start, head, *_locate_text_span_of_value(text, value, head))


def _find_text_spans_of_list_items(text: str, node: Node) -> Iterator[EntrySpan]:
    after = node.start_mark.index
    for index, value in enumerate(node.value):
        begin, end = _locate_text_span_of_value(text, value, after)
        dash = text.rfind("-", after, begin) if is_block_style(node) else -1
        if is_block_style(node) and dash < 0:  # an empty item, or one whose dash is the first character
            dash = text.find("-", after)
        start = dash if dash >= 0 else begin
        yield EntrySpan(index, value, start, dash + 1 if dash >= 0 else begin, begin, end)
        after = end


def _locate_text_span_of_value(text: str, node: Node, after: int) -> tuple[int, int]:
    """Return where a value begins and ends.

    The node of an alias is that of its anchor, which is earlier in the text.
    """
    if node.start_mark.index < after:
        match = _ALIAS.search(text, after)
        return match.span() if match else (after, after)
    return int(node.start_mark.index), max(find_end_of_yaml_value(text, node), int(node.start_mark.index))
