"""Change a field in the text of a YAML file, and prove the result by reading it again."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from gangplan.edits.place import (
    insert_entry_into_yaml_text,
    remove_entry_from_yaml_text,
    replace_entry_value_in_yaml_text,
)
from gangplan.edits.spans import EntrySpan, list_text_spans_of_yaml_entries
from gangplan.errors import UserError
from gangplan.findings import FieldPath
from gangplan.source import load_document
from gangplan.source.parser import MappingNode, Node, ScalarNode, SequenceNode, compose_single_node
from gangplan.spec.near import suggest_nearest
from gangplan.spec.phrases import format_dotted_path

_BOM = "\ufeff"


def read_value(text: str) -> Any:
    """Parse one YAML value on a single line, as it would be between brackets. Raises ValueError."""
    document, _ = load_document(f"[{text}]\n".encode(), "value") if "\n" not in text else (None, None)
    if document is None or not isinstance(document.value, list) or len(document.value) != 1:
        raise ValueError(text)
    return document.value[0]


def edit_field(text: str, file: str, path: FieldPath, new: str | None, *orders: Sequence[str]) -> str:
    """Return the text with the field at `path` set to `new`, a YAML value on one line; None removes it.

    In a list or a mapping, only entries that differ change. A new field follows the one that precedes it in
    the order of its level, else it is last; `orders` are those of the file, of the block in it, and so on.

    Raises UserError if the file cannot be read, the path leads through something else, there is nothing to
    remove, or the value cannot be set without changing something else (anchors, tags).
    """
    document, findings = load_document(text.encode(), file)
    if document is None or not isinstance(document.value, dict):
        where = findings[0].where if findings else file
        raise UserError(f"{where}: the file cannot be read", f"gangplan validate {file} says why.")
    wanted = copy.deepcopy(document.value)
    _apply_field_edit_to_value(wanted, path, new, file)
    try:
        after = _edit_yaml_text(text.removeprefix(_BOM), path, new, orders)
    except (IndexError, KeyError, ValueError):
        after = ""
    bom = _BOM if text.startswith(_BOM) else ""
    found, _ = load_document(after.encode(), file)
    if found is None or _format_comparable_value(found.value) != _format_comparable_value(wanted):
        place = document.where(path)
        done = "removed" if new is None else "set"
        message = f"{place}: {format_dotted_path(path)} cannot be {done} as the file is written"
        raise UserError(message, "Change it by hand.")
    return bom + after


def _format_comparable_value(value: Any) -> str:
    """Return a text that is equal for equal values only: 1, 1.0 and true are three values."""
    return json.dumps(value, sort_keys=True)


def _apply_field_edit_to_value(value: Any, path: FieldPath, new: str | None, file: str) -> None:
    """Make the change in the value of the file. Raises UserError if it cannot be made."""
    for depth, step in enumerate(path):
        here, is_last = path[: depth + 1], depth + 1 == len(path)
        if not isinstance(value, list if isinstance(step, int) else dict):
            message = f"{file}: {format_dotted_path(path[:depth])} has no {format_dotted_path(here)}"
            raise UserError(message, _describe_kind_of_edited_value(value, path[:depth]))
        is_there = step < len(value) if isinstance(step, int) else step in value
        if not is_there and new is None:
            known = value if isinstance(value, dict) else ()
            message = f"{file}: there is no {format_dotted_path(here)} to remove"
            raise UserError(message, suggest_nearest(str(step), known) if known else "")
        if isinstance(step, int) and step > len(value):
            message = f"{file}: {format_dotted_path(path[:depth])} has {len(value)} entries"
            raise UserError(message, f"The next one is [{len(value)}].")
        if is_last and new is None:
            del value[step]  # type: ignore[arg-type]
        elif is_last:
            _assign_container_item(value, step, read_value(new or ""))
        elif not is_there or (isinstance(value[step], type(None)) and new is not None):  # type: ignore[index]
            _assign_container_item(value, step, [] if isinstance(path[depth + 1], int) else {})
        if not is_last:
            value = value[step]  # type: ignore[index]


def _assign_container_item(value: Any, step: str | int, item: Any) -> None:
    if isinstance(value, list) and step == len(value):
        value.append(item)
    else:
        value[step] = item


def _describe_kind_of_edited_value(value: Any, path: FieldPath) -> str:
    if isinstance(value, list):
        first = format_dotted_path((*path, 0))
        return f"Its entries are {first} and so on; --set {format_dotted_path(path)}=[a, b] sets all of it."
    what = "block" if isinstance(value, dict) else "value"
    return f"It is a {what}: --set {format_dotted_path(path)}=... sets all of it."


def _edit_yaml_text(text: str, path: FieldPath, new: str | None, orders: Sequence[Sequence[str]] = ()) -> str:
    """Return the text with the change, unless it is written in an unusual way.

    Raises IndexError, KeyError or ValueError.
    """
    root: Node = compose_single_node(text)
    node, entry = root, None
    for depth, step in enumerate(path):
        below = (
            None if not isinstance(node, MappingNode | SequenceNode) else _find_entry_span(text, node, step)
        )
        if below is None:
            assert new is not None
            order = orders[depth] if depth < len(orders) else ()
            return _add_entry_to_yaml_text(text, node, entry, path[depth:], new, order)
        if depth + 1 == len(path) and new is None:
            return remove_entry_from_yaml_text(text, node, step, entry)
        node, entry = below.node, below
    assert entry is not None
    assert new is not None
    return _replace_value_in_yaml_text(text, entry, path, new)


def _find_entry_span(text: str, node: Node, step: str | int) -> EntrySpan | None:
    return next((one for one in list_text_spans_of_yaml_entries(text, node) if one.name == step), None)


def _add_entry_to_yaml_text(
    text: str, node: Node, entry: EntrySpan | None, rest: FieldPath, new: str, order: Sequence[str] = ()
) -> str:
    """Add a new field or entry below a mapping, a list, or a field without a value."""
    written = new
    for step in reversed(rest[1:]):
        written = f"[{written}]" if isinstance(step, int) else f"{{{_format_yaml_key(step)}: {written}}}"
    name = None if isinstance(rest[0], int) else _format_yaml_key(rest[0])
    if isinstance(node, MappingNode | SequenceNode):
        return insert_entry_into_yaml_text(text, node, name, written, entry, order)
    assert entry is not None
    return replace_entry_value_in_yaml_text(
        text, entry, f"[{written}]" if name is None else f"{{{name}: {written}}}"
    )


def _replace_value_in_yaml_text(text: str, entry: EntrySpan, path: FieldPath, new: str) -> str:
    """Replace a value by another; in lists and mappings, only what differs."""
    flow = f"[{new}]"
    before, after = entry.node, compose_single_node(flow).value[0]
    if isinstance(before, ScalarNode) and isinstance(after, ScalarNode):
        return replace_entry_value_in_yaml_text(
            text, entry, _quote_edited_scalar_as_before(text[entry.begin : entry.end], before, new)
        )
    if not (type(before) is type(after) and before.value and after.value):
        return replace_entry_value_in_yaml_text(text, entry, new)
    there = [text[one.begin : one.end] for one in list_text_spans_of_yaml_entries(text, before)]
    wanted = list_text_spans_of_yaml_entries(flow, after)
    kept = _count_unedited_tail_entries(there, [flow[one.begin : one.end] for one in wanted])
    gone: list[str | int]
    if isinstance(after, SequenceNode):
        gone = [at for at in range(len(there)) if at >= len(wanted) - kept and at < len(there) - kept]
        wanted = wanted[: len(wanted) - kept]
    else:
        names = {one.name for one in wanted}
        gone = [one.name for one in list_text_spans_of_yaml_entries(text, before) if one.name not in names]
    for one in wanted:
        text = _edit_yaml_text(text, (*path, one.name), flow[one.begin : one.end])
    for name in reversed(gone):
        text = _edit_yaml_text(text, (*path, name), None)
    return text


def _count_unedited_tail_entries(there: list[str], wanted: list[str]) -> int:
    """Return how many entries at the end of a list that gets shorter stay the same."""
    count = 0
    if len(wanted) < len(there):
        while count < len(wanted) and _is_value_unchanged_by_edit(there[-1 - count], wanted[-1 - count]):
            count += 1
    return count


def _is_value_unchanged_by_edit(one: str, other: str) -> bool:
    """Return whether two values are written alike, or are the same text in different quotes."""
    if one == other:
        return True
    value = _read_yaml_value_or_none(one)
    return isinstance(value, str) and value == _read_yaml_value_or_none(other)


def _quote_edited_scalar_as_before(old: str, node: ScalarNode, new: str) -> str:
    """Return a text in the quotes of the old one; an equal text stays as it was written."""
    value = read_value(new)
    if not isinstance(value, str):
        return new
    if node.style or isinstance(_read_yaml_value_or_none(old), str):
        if node.value == value and node.style not in ("|", ">"):
            return old
        if node.style == "'" and value.isprintable() and "'" not in value:
            return f"'{value}'"
        if node.style == '"' and value.isprintable() and not {'"', "\\"} & {*value}:
            return f'"{value}"'
    return new


def _read_yaml_value_or_none(text: str) -> Any:
    try:
        return read_value(text)
    except ValueError:
        return None


def _format_yaml_key(name: str | int) -> str:
    from gangplan.objects import format_scalar

    return format_scalar(str(name))
