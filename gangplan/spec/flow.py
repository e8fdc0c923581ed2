"""Values as they can be pasted into a file: on one line, with quotes where YAML would read something else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.source.scalars import parse_plain_yaml_scalar

# Words that YAML reads as this text in a list between brackets.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_./+=^]|-(?=[^\s,]))(?:[A-Za-z0-9_./+=@%^~*$-]|:(?=[^\s,\]]))*")
_NOT_TEXT = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n", "=", "<<"})


def format_flow_list(words: Sequence[str]) -> str:
    """Return words as a list that can be pasted into a spec."""
    return f"[{', '.join(_format_flow_scalar(word) for word in words)}]"


def format_flow_style(value: Any) -> str:
    """Return any value on one line. A text remains a text, even if it looks like a number."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{format_flow_style(key)}: {format_flow_style(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(format_flow_style(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return '""'
    if isinstance(value, str):
        return _format_flow_scalar(value) if isinstance(parse_plain_yaml_scalar(value), str) else f'"{value}"'
    return str(value)


def _format_flow_scalar(word: str) -> str:
    if _PLAIN.fullmatch(word) and word.lower() not in _NOT_TEXT:
        return word
    if "\n" in word or "\t" in word or not word.isprintable():
        return json.dumps(word, ensure_ascii=False)
    return "'" + word.replace("'", "''") + "'"
