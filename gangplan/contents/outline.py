"""The top-level fields of a spec, read from its lines where that is certain, else by a YAML parser.

Ten thousand specs can be listed in a second only if hardly any of them is parsed. In a file that people
write, a line at the left edge is a field with its value on the same line. Where that is not certain (block
sequences at the left edge, values over several lines, quotes, anchors, tabs), `load_objects` reads the file;
a property in the tests compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from gangplan.source import ManifestError, load_objects
from gangplan.source.scalars import NotFiniteError, parse_plain_yaml_scalar

# A field at the left edge, and the rest of its line.
_FIELD = re.compile(r"^([A-Za-z][A-Za-z0-9]*):(?:[ ]+([^\n]*))?$", re.MULTILINE)
# A line at the left edge that is neither a field nor a comment nor empty.
_OTHER = re.compile(r"^(?![A-Za-z][A-Za-z0-9]*:(?: |$)|[ #]|$)", re.MULTILINE)
# Characters that are special in YAML wherever they are, or that some readers take for a line end.
_ODD = re.compile(r"[&*!|>%@`\t\r\"'?\\\x00-\x08\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff]")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/-]*")
_LIST = re.compile(r"\[ *(?:[A-Za-z0-9][A-Za-z0-9_.+/-]*(?: *, *[A-Za-z0-9][A-Za-z0-9_.+/-]*)*)? *,? *\]")
_COMMENT = re.compile(r"(?:^| )#.*")


def read_spec_outline(data: bytes, wanted: Collection[str]) -> dict[str, Any] | None:
    """Return the wanted fields that a spec has at its top level; None if it is not a YAML mapping."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    found = _read_spec_outline_from_lines(text, wanted)
    if found is not None:
        return found
    try:
        documents = load_objects(text)
    except ManifestError:
        return None
    return (
        {name: documents[0][name] for name in wanted if name in documents[0]} if len(documents) == 1 else None
    )


def _read_spec_outline_from_lines(text: str, wanted: Collection[str]) -> dict[str, Any] | None:
    """Read the fields from the lines; return None if that is not certain."""
    if _ODD.search(text) or _OTHER.search(text):
        return None
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for match in _FIELD.finditer(text):
        name, value = match[1], _COMMENT.sub("", match[2] or "").strip(" ")
        if name in seen or not _is_whole(value):
            return None
        seen.add(name)
        if name in wanted:
            # A value that continues on the next line, or is a block, is left to the parser.
            if not value or text[match.end() : match.end() + 2] == "\n ":
                return None
            read = _parse_spec_outline_value(value)
            if read is None:
                return None
            found[name] = read[0]
    return found if seen else None


def _is_whole(value: str) -> bool:
    """Return whether the value is not a mapping without braces, and closes its brackets on its own line."""
    if not value.startswith(("[", "{")) and (": " in value or value.endswith(":")):
        return False
    return value.count("[") == value.count("]") and value.count("{") == value.count("}")


def _parse_spec_outline_value(written: str) -> tuple[Any] | None:
    """Return a word, or a list of words on one line, in a tuple, because the value may be None."""
    try:
        if _WORD.fullmatch(written):
            return (parse_plain_yaml_scalar(written),)
        if _LIST.fullmatch(written):
            words = [word.strip() for word in written[1:-1].split(",")]
            return ([parse_plain_yaml_scalar(word) for word in words if word],)
    except NotFiniteError:
        return None
    return None
