"""A scalar and the text to put in its place: a `Fix`, where the stretch of the file is certain."""

from __future__ import annotations

import re

from gangplan.findings import Fix
from gangplan.source.parser import Node, ScalarNode, is_plain
from gangplan.source.scalars import NotFiniteError, plain

# Plain text that needs no quotes, whatever stands around it: in a block, a list or between brackets.
_SAFE = re.compile(r"[A-Za-z0-9/_][A-Za-z0-9/_.@+=-]*(?::[A-Za-z0-9/_.@+=-]+)*", re.ASCII)


def scalar_fix(file: str, text: str, node: Node, replacement: str, why: str) -> Fix | None:
    """The fix that puts `replacement` (as it is to be written) in the place of a scalar of `text`.

    None for a scalar with an anchor or a tag, of several lines, or with escapes: there the stretch is
    more than the value, and what else stands in it would be lost.
    """
    if not isinstance(node, ScalarNode):
        return None
    start, end = node.start_mark, node.end_mark
    written = text[start.index : end.index]
    if written != node.value and not _is_quoted(written, node.value):
        return None
    if start.line != end.line or not written or written == replacement:
        return None
    return Fix(file, start.line + 1, start.column + 1, end.line + 1, end.column + 1, replacement, why)


def in_quotes(text: str, quote: str = '"') -> str:
    """The text as a quoted scalar on one line. The text must have no quotes, backslashes or controls."""
    return f"{quote}{text}{quote}"


def as_before(node: Node, text: str) -> str | None:
    """A new value in the manner of the old one: in the same quotes, or plain where that is read as this text.

    None for a text that could need escapes, and where a block or a tag stood before.
    """
    if not isinstance(node, ScalarNode) or not _SAFE.fullmatch(text):
        return None
    if node.style in ("'", '"'):
        return in_quotes(text, node.style)
    if not is_plain(node):
        return None
    return text if _reads_back(text) else in_quotes(text)


def _reads_back(text: str) -> bool:
    """Whether the text without quotes is read as itself, word or number: not `on`, `08` or `1e3`."""
    try:
        return str(plain(text)) == text
    except NotFiniteError:
        return False


def _is_quoted(written: str, value: str) -> bool:
    return len(written) == len(value) + 2 and written in (f"'{value}'", f'"{value}"')
