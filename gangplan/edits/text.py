"""Change a field in the text of a YAML file, and prove the result by reading it again."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from gangplan.edits.place import dropped, inserted, replaced
from gangplan.edits.spans import Entry, entries
from gangplan.errors import UserError
from gangplan.source import Path, load
from gangplan.source.parser import MappingNode, Node, ScalarNode, SequenceNode, parse_one
from gangplan.spec.near import nearest
from gangplan.spec.phrases import dotted

_BOM = "\ufeff"


def read_value(text: str) -> Any:
    """Parse one YAML value on a single line, as it would be between brackets. Raises ValueError."""
    document, _ = load(f"[{text}]\n".encode(), "value") if "\n" not in text else (None, None)
    if document is None or not isinstance(document.value, list) or len(document.value) != 1:
        raise ValueError(text)
    return document.value[0]


def edited(text: str, file: str, path: Path, new: str | None, *orders: Sequence[str]) -> str:
    """Return the text with the field at `path` set to `new`, a YAML value on one line; None removes it.

    In a list or a mapping, only entries that differ change. A new field follows the one that precedes it in
    the order of its level, else it is last; `orders` are those of the file, of the block in it, and so on.

    Raises UserError if the file cannot be read, the path leads through something else, there is nothing to
    remove, or the value cannot be set without changing something else (anchors, tags).
    """
    document, findings = load(text.encode(), file)
    if document is None or not isinstance(document.value, dict):
        where = findings[0].where if findings else file
        raise UserError(f"{where}: the file cannot be read", f"gangplan validate {file} says why.")
    wanted = copy.deepcopy(document.value)
    _put(wanted, path, new, file)
    try:
        after = _changed(text.removeprefix(_BOM), path, new, orders)
    except (IndexError, KeyError, ValueError):
        after = ""
    bom = _BOM if text.startswith(_BOM) else ""
    found, _ = load(after.encode(), file)
    if found is None or _told(found.value) != _told(wanted):
        place = document.where(path)
        message = (
            f"{place}: {dotted(path)} cannot be {'removed' if new is None else 'set'} as the file is written"
        )
        raise UserError(message, "Change it by hand.")
    return bom + after


def _told(value: Any) -> str:
    """Return a text that is equal for equal values only: 1, 1.0 and true are three values."""
    return json.dumps(value, sort_keys=True)


def _put(value: Any, path: Path, new: str | None, file: str) -> None:
    """Make the change in the value of the file. Raises UserError if it cannot be made."""
    for depth, step in enumerate(path):
        here, is_last = path[: depth + 1], depth + 1 == len(path)
        if not isinstance(value, list if isinstance(step, int) else dict):
            message = f"{file}: {dotted(path[:depth])} has no {dotted(here)}"
            raise UserError(message, _kind_help(value, path[:depth]))
        is_there = step < len(value) if isinstance(step, int) else step in value
        if not is_there and new is None:
            known = value if isinstance(value, dict) else ()
            message = f"{file}: there is no {dotted(here)} to remove"
            raise UserError(message, nearest(str(step), known) if known else "")
        if isinstance(step, int) and step > len(value):
            message = f"{file}: {dotted(path[:depth])} has {len(value)} entries"
            raise UserError(message, f"The next one is [{len(value)}].")
        if is_last and new is None:
            del value[step]  # type: ignore[arg-type]
        elif is_last:
            _assign(value, step, read_value(new or ""))
        elif not is_there or (isinstance(value[step], type(None)) and new is not None):  # type: ignore[index]
            _assign(value, step, [] if isinstance(path[depth + 1], int) else {})
        if not is_last:
            value = value[step]  # type: ignore[index]


def _assign(value: Any, step: str | int, item: Any) -> None:
    if isinstance(value, list) and step == len(value):
        value.append(item)
    else:
        value[step] = item


def _kind_help(value: Any, path: Path) -> str:
    if isinstance(value, list):
        return f"Its entries are {dotted((*path, 0))} and so on; --set {dotted(path)}=[a, b] sets all of it."
    what = "block" if isinstance(value, dict) else "value"
    return f"It is a {what}: --set {dotted(path)}=... sets all of it."


def _changed(text: str, path: Path, new: str | None, orders: Sequence[Sequence[str]] = ()) -> str:
    """Return the text with the change, unless it is written in an unusual way.

    Raises IndexError, KeyError or ValueError.
    """
    root: Node = parse_one(text)
    node, entry = root, None
    for depth, step in enumerate(path):
        below = None if not isinstance(node, MappingNode | SequenceNode) else _below(text, node, step)
        if below is None:
            assert new is not None
            order = orders[depth] if depth < len(orders) else ()
            return _added(text, node, entry, path[depth:], new, order)
        if depth + 1 == len(path) and new is None:
            return dropped(text, node, step, entry)
        node, entry = below.node, below
    assert entry is not None
    assert new is not None
    return _set(text, entry, path, new)


def _below(text: str, node: Node, step: str | int) -> Entry | None:
    return next((one for one in entries(text, node) if one.name == step), None)


def _added(
    text: str, node: Node, entry: Entry | None, rest: Path, new: str, order: Sequence[str] = ()
) -> str:
    """Add a new field or entry below a mapping, a list, or a field without a value."""
    written = new
    for step in reversed(rest[1:]):
        written = f"[{written}]" if isinstance(step, int) else f"{{{_key(step)}: {written}}}"
    name = None if isinstance(rest[0], int) else _key(rest[0])
    if isinstance(node, MappingNode | SequenceNode):
        return inserted(text, node, name, written, entry, order)
    assert entry is not None
    return replaced(text, entry, f"[{written}]" if name is None else f"{{{name}: {written}}}")


def _set(text: str, entry: Entry, path: Path, new: str) -> str:
    """Replace a value by another; in lists and mappings, only what differs."""
    flow = f"[{new}]"
    before, after = entry.node, parse_one(flow).value[0]
    if isinstance(before, ScalarNode) and isinstance(after, ScalarNode):
        return replaced(text, entry, _as_before(text[entry.begin : entry.end], before, new))
    if not (type(before) is type(after) and before.value and after.value):
        return replaced(text, entry, new)
    there = [text[one.begin : one.end] for one in entries(text, before)]
    wanted = entries(flow, after)
    kept = _kept(there, [flow[one.begin : one.end] for one in wanted])
    gone: list[str | int]
    if isinstance(after, SequenceNode):
        gone = [at for at in range(len(there)) if at >= len(wanted) - kept and at < len(there) - kept]
        wanted = wanted[: len(wanted) - kept]
    else:
        names = {one.name for one in wanted}
        gone = [one.name for one in entries(text, before) if one.name not in names]
    for one in wanted:
        text = _changed(text, (*path, one.name), flow[one.begin : one.end])
    for name in reversed(gone):
        text = _changed(text, (*path, name), None)
    return text


def _kept(there: list[str], wanted: list[str]) -> int:
    """Return how many entries at the end of a list that gets shorter stay the same."""
    count = 0
    if len(wanted) < len(there):
        while count < len(wanted) and _is_same(there[-1 - count], wanted[-1 - count]):
            count += 1
    return count


def _is_same(one: str, other: str) -> bool:
    """Return whether two values are written alike, or are the same text in different quotes."""
    if one == other:
        return True
    value = _plain(one)
    return isinstance(value, str) and value == _plain(other)


def _as_before(old: str, node: ScalarNode, new: str) -> str:
    """Return a text in the quotes of the old one; an equal text stays as it was written."""
    value = read_value(new)
    if not isinstance(value, str):
        return new
    if node.style or isinstance(_plain(old), str):
        if node.value == value and node.style not in ("|", ">"):
            return old
        if node.style == "'" and value.isprintable() and "'" not in value:
            return f"'{value}'"
        if node.style == '"' and value.isprintable() and not {'"', "\\"} & {*value}:
            return f'"{value}"'
    return new


def _plain(text: str) -> Any:
    try:
        return read_value(text)
    except ValueError:
        return None


def _key(name: str | int) -> str:
    from gangplan.objects import scalar

    return scalar(str(name))
