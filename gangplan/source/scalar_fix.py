"""A `Fix` that replaces a scalar with a text, if its extent in the file is certain."""

from __future__ import annotations

import re

from gangplan.findings import Fix
from gangplan.source.parser import Node, ScalarNode, is_plain_scalar
from gangplan.source.scalars import NotFiniteError, parse_plain_yaml_scalar

# Plain text that needs no quotes anywhere: in a block, a list or between brackets.
_SAFE = re.compile(r"[A-Za-z0-9/_][A-Za-z0-9/_.@+=-]*(?::[A-Za-z0-9/_.@+=-]+)*", re.ASCII)


def build_scalar_fix(file: str, text: str, node: Node, replacement: str, why: str) -> Fix | None:
    """Return the fix that replaces a scalar of `text` with `replacement` (as it is to be written).

    None for a scalar with an anchor or a tag, on several lines, or with escapes: its extent contains more
    than the value, which would be lost.
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


def quote_scalar(text: str, quote: str = '"') -> str:
    """Return the text as a quoted scalar on one line. It must not contain quotes, backslashes or control
    characters."""
    return f"{quote}{text}{quote}"


def restyle_scalar(node: Node, text: str) -> str | None:
    """Return a new value in the style of the old one: in the same quotes, or plain if it is read back as this
    text.

    None for a text that could need escapes, and if the old value is a block or has a tag.
    """
    if not isinstance(node, ScalarNode) or not _SAFE.fullmatch(text):
        return None
    if node.style in ("'", '"'):
        return quote_scalar(text, node.style)
    if not is_plain_scalar(node):
        return None
    return text if _is_plain_scalar_read_back_unchanged(text) else quote_scalar(text)


def _is_plain_scalar_read_back_unchanged(text: str) -> bool:
    """Return whether the text without quotes is read back unchanged, as text or number: not `on`, `08` or
    `1e3`."""
    try:
        return str(parse_plain_yaml_scalar(text)) == text
    except NotFiniteError:
        return False


def _is_quoted(written: str, value: str) -> bool:
    return len(written) == len(value) + 2 and written in (f"'{value}'", f'"{value}"')
