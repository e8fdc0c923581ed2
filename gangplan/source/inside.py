"""The line and column in the file of a character inside a scalar.

A value differs from its text by quotes, escapes, indentation and folded line breaks. Both are walked
together: characters that are in both are paired, and text that YAML removes is skipped.
"""

from __future__ import annotations

import re

from gangplan.source.parser import ScalarNode

_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|\n[ \t]*|.)", re.DOTALL)


def locate_yaml_scalar_character(text: str, node: ScalarNode, offset: int) -> tuple[int, int]:
    """Return line and column, both from 1, of the character at `offset` (code points) of a scalar's value.

    For an offset at the end of the value, or beyond, it is the place after the last character.
    """
    at = _compute_text_index(text, node.start_mark.line, node.start_mark.column)
    style = node.style
    if style in ("|", ">"):
        at = text.find("\n", at) + 1
    elif style in ("'", '"'):
        at += 1
    at = _find_yaml_scalar_character_index(text, at, node.value, min(offset, len(node.value)), style)
    start = text.rfind("\n", 0, at) + 1
    return text.count("\n", 0, at) + 1, at - start + 1


def _compute_text_index(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line):
        start = text.index("\n", start) + 1
    return start + column


def _find_yaml_scalar_character_index(text: str, at: int, value: str, offset: int, style: str | None) -> int:
    """Return the index in the text of the value's character at `offset`."""
    past = at  # just after the last character that was paired
    for number in range(offset + 1):
        wanted = value[number] if number < len(value) else ""
        while at < len(text):
            step = _count_matching_scalar_characters(text, at, wanted, style)
            if step:
                break
            at += _count_skipped_characters(text, at, style)
        if number == offset:
            return past if not wanted or (wanted.isspace() and text[at : at + 1] != wanted) else at
        at += max(step, 0) if at < len(text) else 0
        past = at
    return past


def _count_matching_scalar_characters(text: str, at: int, wanted: str, style: str | None) -> int:
    """Return how many characters of the text represent the wanted one, 0 if none do; at the end of the value,
    1."""
    if not wanted:
        return 1
    here = text[at]
    if style == '"' and here == "\\":
        escape = _ESCAPE.match(text, at)
        return 0 if escape is None or escape[0][1] == "\n" else len(escape[0])
    if style == "'" and here == "'" == wanted:
        return 2
    if here == wanted:
        return 1
    # A folded line break represents one blank, or one of several breaks.
    if wanted in " \n" and here == "\n":
        return 1
    return 0


def _count_skipped_characters(text: str, at: int, style: str | None) -> int:
    if style == '"' and text[at] == "\\":
        escape = _ESCAPE.match(text, at)
        return len(escape[0]) if escape else 1
    return 1
