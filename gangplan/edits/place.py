"""Replace, insert or remove parts of a YAML text in the style of the lines around them."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.edits.spans import EntrySpan, is_block_style, list_text_spans_of_yaml_entries
from gangplan.source.parser import MappingNode, Node, ScalarNode


def replace_entry_value_in_yaml_text(text: str, entry: EntrySpan, new: str) -> str:
    """Replace the value of an entry by one on a single line; a comment after its key stays."""
    node = entry.node
    is_text = isinstance(node, ScalarNode) and node.style in ("|", ">")
    if not (is_block_style(node) or is_text or entry.begin == entry.end):
        return text[: entry.begin] + new + text[entry.end :]
    between = text[entry.head : entry.begin] if not is_text else ""
    first = between.splitlines()[0] if between.strip() else ""
    comment = f" {first.strip()}" if "#" in first else ""
    end = entry.end
    if "\n" in text[entry.head : end]:  # a comment after the last word is about the value, so it goes with it
        end = _find_next_line_start(text, end)
        end -= len(text[:end]) - len(text[:end].rstrip("\r\n"))
    return f"{text[: entry.head]} {new}{comment}{text[end:]}"


def insert_entry_into_yaml_text(
    text: str, node: Node, name: str | None, new: str, outer: EntrySpan | None, order: Sequence[str] = ()
) -> str:
    """Insert an entry into a mapping (with its name) or a list: after what precedes it in `order`, else last.

    Raises ValueError for a file that is empty.
    """
    there = list_text_spans_of_yaml_entries(text, node)
    if not there:
        written = f"[{new}]" if name is None else f"{{{name}: {new}}}"
        if outer is None:
            raise ValueError("an empty file")
        return replace_entry_value_in_yaml_text(text, outer, written)
    words = new if name is None else f"{name}: {new}"
    last = _find_entry_before_insertion(there, name, order)
    if not is_block_style(node):
        return f"{text[: last.end]}, {words}{text[last.end :]}"
    column = there[0].start - (text.rfind("\n", 0, there[0].start) + 1)
    at = _find_next_line_start(text, last.end)
    head, tail = text[:at], text[at:]
    line_end = "\r\n" if "\r\n" in text else "\n"
    if head and not head.endswith("\n"):
        head += line_end
    return f"{head}{' ' * column}{'- ' if name is None else ''}{words}{line_end}{tail}"


def _find_entry_before_insertion(
    there: Sequence[EntrySpan], name: str | None, order: Sequence[str]
) -> EntrySpan:
    """Return the entry after which a new one is inserted."""
    sooner = order[: order.index(name)] if name in order else ()
    ranks = {one: rank for rank, one in enumerate(sooner)}
    return max(
        (one for one in there if one.name in ranks), key=lambda one: ranks[str(one.name)], default=there[-1]
    )


def remove_entry_from_yaml_text(text: str, node: Node, name: str | int, outer: EntrySpan | None) -> str:
    """Remove an entry with the comment on its line.

    Raises ValueError where other text would be lost, or nothing would be left.
    """
    there = list_text_spans_of_yaml_entries(text, node)
    index = next(at for at, one in enumerate(there) if one.name == name)
    if len(there) == 1:
        if outer is None:
            raise ValueError("nothing would be left")
        return replace_entry_value_in_yaml_text(text, outer, "{}" if isinstance(node, MappingNode) else "[]")
    one = there[index]
    behind = there[index + 1] if index + 1 < len(there) else None
    if not is_block_style(node):
        start, end = (one.start, behind.start) if behind else (there[index - 1].end, one.end)
        return _remove_text_stretch(text, start, end, one)
    start = text.rfind("\n", 0, one.start) + 1
    if not text[start : one.start].strip():
        return text[:start] + text[_find_next_line_start(text, one.end) :]
    if behind is None:
        raise ValueError("no line of its own")
    dashes, line = text[start : one.start], text.rfind("\n", 0, behind.start) + 1
    if text[line : behind.start].strip():
        return _remove_text_stretch(text, one.start, behind.start, one)
    return text[:start] + text[_find_next_line_start(text, one.end) : line] + dashes + text[behind.start :]


def _remove_text_stretch(text: str, start: int, end: int, entry: EntrySpan) -> str:
    """Return the text without a stretch. Raises ValueError if the stretch has a comment outside the entry."""
    if "#" in text[start : entry.start] + text[entry.end : end]:
        raise ValueError("a comment would go along")
    return text[:start] + text[end:]


def _find_next_line_start(text: str, at: int) -> int:
    """Return where the next line begins; in the last line, the end of the text."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
