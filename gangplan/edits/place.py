"""A stretch of a YAML text replaced, added or taken out in the manner of what stands around it."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.edits.spans import Entry, entries, is_block
from gangplan.source.parser import MappingNode, Node, ScalarNode


def replaced(text: str, entry: Entry, new: str) -> str:
    """The value of an entry replaced by one on one line. A comment behind its key stays."""
    node = entry.node
    is_text = isinstance(node, ScalarNode) and node.style in ("|", ">")
    if not (is_block(node) or is_text or entry.begin == entry.end):
        return text[: entry.begin] + new + text[entry.end :]
    between = text[entry.head : entry.begin] if not is_text else ""
    first = between.splitlines()[0] if between.strip() else ""
    comment = f" {first.strip()}" if "#" in first else ""
    end = entry.end
    if "\n" in text[entry.head : end]:  # a comment behind the last word is one about it
        end = _line_end(text, end)
        end -= len(text[:end]) - len(text[:end].rstrip("\r\n"))
    return f"{text[: entry.head]} {new}{comment}{text[end:]}"


def inserted(
    text: str, node: Node, name: str | None, new: str, outer: Entry | None, order: Sequence[str] = ()
) -> str:
    """One more entry of a mapping (with its name) or a list: behind what `order` has before it, else last."""
    there = entries(text, node)
    if not there:
        written = f"[{new}]" if name is None else f"{{{name}: {new}}}"
        if outer is None:
            raise ValueError("an empty file")
        return replaced(text, outer, written)
    words = new if name is None else f"{name}: {new}"
    last = _before(there, name, order)
    if not is_block(node):
        return f"{text[: last.end]}, {words}{text[last.end :]}"
    column = there[0].start - (text.rfind("\n", 0, there[0].start) + 1)
    at = _line_end(text, last.end)
    head, tail = text[:at], text[at:]
    line_end = "\r\n" if "\r\n" in text else "\n"
    if head and not head.endswith("\n"):
        head += line_end
    return f"{head}{' ' * column}{'- ' if name is None else ''}{words}{line_end}{tail}"


def _before(there: Sequence[Entry], name: str | None, order: Sequence[str]) -> Entry:
    """The entry that a new one comes behind."""
    sooner = order[: order.index(name)] if name in order else ()
    ranks = {one: rank for rank, one in enumerate(sooner)}
    return max(
        (one for one in there if one.name in ranks), key=lambda one: ranks[str(one.name)], default=there[-1]
    )


def dropped(text: str, node: Node, name: str | int, outer: Entry | None) -> str:
    """An entry taken out, with the comment on its line. Raises ValueError where others would go along."""
    there = entries(text, node)
    index = next(at for at, one in enumerate(there) if one.name == name)
    if len(there) == 1:
        if outer is None:
            raise ValueError("nothing would be left")
        return replaced(text, outer, "{}" if isinstance(node, MappingNode) else "[]")
    one = there[index]
    behind = there[index + 1] if index + 1 < len(there) else None
    if not is_block(node):
        start, end = (one.start, behind.start) if behind else (there[index - 1].end, one.end)
        return _cut(text, start, end, one)
    start = text.rfind("\n", 0, one.start) + 1
    if not text[start : one.start].strip():
        return text[:start] + text[_line_end(text, one.end) :]
    if behind is None:
        raise ValueError("no line of its own")
    dashes, line = text[start : one.start], text.rfind("\n", 0, behind.start) + 1
    if text[line : behind.start].strip():
        return _cut(text, one.start, behind.start, one)
    return text[:start] + text[_line_end(text, one.end) : line] + dashes + text[behind.start :]


def _cut(text: str, start: int, end: int, entry: Entry) -> str:
    """The text without a stretch, if beside the entry no comment stands in it."""
    if "#" in text[start : entry.start] + text[entry.end : end]:
        raise ValueError("a comment would go along")
    return text[:start] + text[end:]


def _line_end(text: str, at: int) -> int:
    """Where the next line begins; the end of the text in its last line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
