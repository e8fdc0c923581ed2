"""Suggest what a workspace must gain before imported specs are valid, and change its files for it.

Changes keep every other byte of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gangplan.findings import Location
from gangplan.records import dataclass
from gangplan.source import Document, load_document
from gangplan.starter.text import render_block_text, render_file_text
from gangplan.starter.values import format_flow_yaml


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change of a file: a value for the entry at `path`, or a tuple of new entries for the list there.

    `where` is the place in the source that needs it. If it `is_open`, it contains something that a person has
    to decide: it is shown, and never written.
    """

    file: str
    path: tuple[str, ...]
    value: Any
    why: str
    where: Location
    is_open: bool = False

    @property
    def owner(self) -> str:
        """Who owns the file."""
        return "team" if self.file.startswith("specs/") else "platform"

    def text(self) -> str:
        """Return the change as YAML, from the top level of its file."""
        value: Any = list(self.value) if isinstance(self.value, tuple) else self.value
        for name in reversed(self.path[1:]):
            value = {name: value}
        return render_block_text({self.path[0]: value})


def apply_import_suggestions(
    files: Mapping[str, bytes | None], suggestions: Iterable[Suggestion]
) -> tuple[dict[str, bytes], list[Suggestion]]:
    """Return the contents of changed files by path, and the suggestions that could not be applied.

    A file that is None does not exist.
    """
    texts: dict[str, bytes] = {}
    left: list[Suggestion] = []
    for one in suggestions:
        if one.is_open:
            continue
        before = texts.get(one.file, files.get(one.file))
        after = insert_import_suggestion(before, one)
        if after is None:
            left.append(one)
        elif after != before:
            texts[one.file] = after
    return texts, left


def insert_import_suggestion(data: bytes | None, one: Suggestion) -> bytes | None:
    """Return the file with the suggestion applied; None if it cannot be inserted as the file is written.

    The result is checked: the file contains what it did before, and the suggestion, and nothing else.
    """
    if data is None:
        return _render_new_catalog_with_suggestion(one)
    document, _ = load_document(data, one.file)
    if document is None or not isinstance(document.value, dict):
        return None
    wanted = _merge_suggested_value(document.value, one.path, one.value)
    if wanted is None:
        return None
    if wanted == document.value:
        return data
    for attempt in (
        _append_suggestion_to_block_list,
        _insert_import_suggestion_as_block,
        _merge_import_suggestion_into_flow,
    ):
        after = attempt(data.decode(), document, one, wanted)
        found, _ = load_document(after.encode(), one.file) if after is not None else (None, [])
        if after is not None and found is not None and found.value == wanted:
            return after.encode()
    return None


def _render_new_catalog_with_suggestion(one: Suggestion) -> bytes | None:
    """Return a new catalog with the suggestion; None for any other file, which must already exist."""
    if one.file != "images/catalog.yaml":
        return None
    from pathlib import Path

    return render_file_text(
        "image", {"images": {one.path[1]: one.value}}, Path("/nonexistent"), one.file
    ).encode()


def _merge_suggested_value(value: dict[str, Any], path: tuple[str, ...], added: Any) -> dict[str, Any] | None:
    """Return the value that the file should have; None if another value is in the way."""
    head, *rest = path
    inner = value.get(head)
    if rest:
        if inner is not None and not isinstance(inner, dict):
            return None
        below = _merge_suggested_value(inner or {}, tuple(rest), added)
        return None if below is None else {**value, head: below}
    if isinstance(added, tuple):
        if inner is not None and not isinstance(inner, list):
            return None
        have = inner or []
        return {**value, head: [*have, *(entry for entry in added if entry not in have)]}
    if inner is not None and inner != added:
        return None
    return {**value, head: added}


def _append_suggestion_to_block_list(
    text: str, document: Document, one: Suggestion, wanted: Any
) -> str | None:
    """Append entries to a block list, each on a separate line."""
    have: Any = document.value
    for name in one.path:
        have = have.get(name) if isinstance(have, dict) else None
    if not isinstance(one.value, tuple) or not have:
        return None
    last = document.where((*one.path, len(have) - 1))
    lines = text.splitlines(keepends=True)
    at = (last.line or 1) - 1
    lead = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    if not lines[at].lstrip().startswith("- "):
        return None
    added = [f"{lead}- {format_flow_yaml(entry)}\n" for entry in one.value if entry not in have]
    return "".join([*lines[: at + 1], *added, *lines[at + 1 :]])


def _insert_import_suggestion_as_block(
    text: str, document: Document, one: Suggestion, wanted: Any
) -> str | None:
    """Insert the entry as a block after the last one of the deepest existing mapping on its path."""
    have: Any = document.value
    depth = 0
    while depth < len(one.path) - 1 and isinstance(have.get(one.path[depth]), dict) and have[one.path[depth]]:
        have = have[one.path[depth]]
        depth += 1
    if one.path[depth] in have:
        return (
            _insert_import_suggestion_below_field(text, document, one, depth)
            if have[one.path[depth]] is None
            else None
        )
    value: Any = list(one.value) if isinstance(one.value, tuple) else one.value
    for name in reversed(one.path[depth + 1 :]):
        value = {name: value}
    way = one.path[:depth]
    first = document.where((*way, next(iter(have))), key=True)
    lines = text.splitlines(keepends=True)
    at = _find_block_end(lines, first.line or 1, (first.column or 1) - 1)
    lead = " " * ((first.column or 1) - 1)
    if lines and not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    entry = render_block_text({one.path[depth]: value}, lead)
    if any(line.endswith("\r\n") for line in lines):
        entry = entry.replace("\n", "\r\n")
    return "".join([*lines[:at], entry, *lines[at:]])


def _insert_import_suggestion_below_field(
    text: str, document: Document, one: Suggestion, depth: int
) -> str | None:
    """Insert the entry below a field that was left empty."""
    key = document.where(one.path[: depth + 1], key=True)
    lines = text.splitlines(keepends=True)
    at, lead = key.line or 1, " " * ((key.column or 1) + 1)
    value: Any = list(one.value) if isinstance(one.value, tuple) else one.value
    if not one.path[depth + 1 :]:
        return None
    for name in reversed(one.path[depth + 2 :]):
        value = {name: value}
    if not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    return "".join([*lines[:at], render_block_text({one.path[depth + 1]: value}, lead), *lines[at:]])


def _find_block_end(lines: list[str], first: int, indent: int) -> int:
    """Return the number of lines up to the end of the block that begins at a line, with its indent.

    Comments and blank lines after it belong to what follows.
    """
    at = end = first
    while at < len(lines):
        line = lines[at]
        bare = line.strip()
        if bare and not bare.startswith("#"):
            if len(line) - len(line.lstrip()) < indent:
                break
            end = at + 1
        at += 1
    return end


def _merge_import_suggestion_into_flow(
    text: str, document: Document, one: Suggestion, wanted: Any
) -> str | None:
    """Rewrite the flow value that is highest on the path and on one line, in flow style."""
    for depth in range(len(one.path), 0, -1):
        way = one.path[:depth]
        value, have = wanted, document.value
        for name in way:
            value = value[name]
            have = have.get(name) if isinstance(have, dict) else None
        if have is None:
            continue
        begin = document.where(way)
        lines = text.splitlines(keepends=True)
        line = lines[(begin.line or 1) - 1]
        start = (begin.column or 1) - 1
        end = _find_flow_value_end(line, start)
        if end is not None:
            lines[(begin.line or 1) - 1] = line[:start] + format_flow_yaml(value) + line[end:]
            return "".join(lines)
    return None


def _find_flow_value_end(line: str, start: int) -> int | None:
    """Return where a flow value on one line ends; None if this is not one, or it continues."""
    if line[start : start + 1] not in ("{", "["):
        return None
    depth, quote = 0, ""
    for at in range(start, len(line)):
        mark = line[at]
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        elif mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if not depth:
                return at + 1
    return None
