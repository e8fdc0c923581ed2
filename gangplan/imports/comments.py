"""Carry the comments of a source over to the fields of a spec that its values become."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gangplan.findings import FieldPath
from gangplan.imports.account import SourceNode
from gangplan.source import Document

_BEHIND = re.compile(r"\s#\s?(.*)$")
# Comments about the file rather than its content.
_FORMAL = re.compile(
    r"copyright|licen[cs]e|spdx|yaml-language-server|^[-=#\s]*$|warranties|you may not use|obtain a copy",
    re.IGNORECASE,
)
_MOST = 8


class Comments:
    """The comments of one object in a file."""

    __slots__ = ("_base", "_document", "_lines")

    def __init__(self, text: str, document: Document | None, base: FieldPath) -> None:
        self._lines = text.split("\n")
        self._document, self._base = document, base

    def below(self, path: FieldPath) -> Comments:
        """Return the comments of an object inside this one."""
        other = Comments("", self._document, (*self._base, *path))
        other._lines = self._lines
        return other

    def head(self) -> list[str]:
        """Return the comments before the first field, without those about the file."""
        if self._document is None or self._base:
            return []
        first = self._document.where((next(iter(self._document.value), ""),), key=True).line or 1
        return self._above(first - 1)

    def of(self, node: SourceNode) -> list[str]:
        """Return the comments above the line of a value's field, and after the value."""
        if self._document is None or not node.path:
            return []
        path = (*self._base, *node.path)
        key = self._document.where(path, key=True)
        value = self._document.where(path)
        found = self._above((key.line or 1) - 1)
        if value.line == key.line and value.end and key.line:
            behind = _BEHIND.search(self._lines[key.line - 1][value.end - 1 :])
            if behind and not _FORMAL.search(behind[1]):
                found.append(behind[1].strip())
        return found

    def _above(self, at: int) -> list[str]:
        """Return the comment lines directly above the line at an index."""
        begin = at
        while begin > 0 and self._lines[begin - 1].lstrip().startswith("#"):
            begin -= 1
        texts = [line.strip().lstrip("#").strip() for line in self._lines[begin:at]]
        if any(_FORMAL.search(text) for text in texts if text):
            return []
        return [text for text in texts if text][:_MOST]


def add_import_comments_to_spec(text: str, head: list[str], of_fields: Mapping[str, list[str]]) -> str:
    """Return the text of a spec with comments above its fields, each comment once."""
    told: set[str] = set()
    lines = []
    for line in text.splitlines():
        name = line.partition(":")[0]
        if name == "apiVersion":
            lines += list(_format_new_comments(head, told))
        if not line.startswith((" ", "-", "#")):
            lines += list(_format_new_comments(of_fields.get(name, []), told))
        lines.append(line)
    return "\n".join(lines) + "\n"


def _format_new_comments(texts: list[str], told: set[str]) -> Iterator[str]:
    for text in texts:
        if text not in told and text.isprintable():
            told.add(text)
            yield f"# {text}"
