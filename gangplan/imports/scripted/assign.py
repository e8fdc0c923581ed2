"""Read assignments of a script: scalars and arrays, new or appended."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.imports.scripted.calculated import compute_integer
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.items import ScriptItem
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.pieces import (
    PartialText,
    ShellValue,
    append_to_shell_value,
    is_computed,
)
from gangplan.plan.launchers.shell import ShellWord

# Options with a value (bash 5.2); `-a NAME` of read names an array.
_VALUES = {"read": "dinNptu", **dict.fromkeys(("mapfile", "readarray"), "dnOsuCc")}
# Variables that Apptainer sets in its container by the rest of the name.
_IN_CONTAINER = re.compile(r"^(?:APPTAINER|SINGULARITY)ENV_(?!PREPEND_|APPEND_)(?=\w)")
SCRIPT_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=")


def record_shell_assignment(
    text: str,
    scope: ScriptScope,
    word: ShellWord,
    array: list[ShellWord] | None,
    item: ScriptItem,
    exports: bool,
) -> None:
    """Record an assignment in the variables of a script; `array` are the words of an array."""
    found = SCRIPT_ASSIGNMENT.match(text, word.begin)
    if found is None:
        return
    name, adds = found[1], bool(found[2])
    item.names.add(name)
    reads_itself = adds or re.search(rf"\$\{{?{name}\b", text[found.end() : word.end])
    if array is None and reads_itself and not isinstance(scope.values.get(name), str):
        item.extends.add(name)
    value: ShellValue
    if array is not None:
        entries = [one for inner in array for one in scope.fields(text[inner.begin : inner.end])]
        before = scope.values.get(name) if adds else ()
        value = None if not isinstance(before, tuple) else (*before, *entries)
    elif "[" in found[0]:
        value = None
    else:
        before = scope.values.get(name, "") if adds else ""
        after = scope.value(text[found.end() : word.end])
        value = append_to_shell_value(before, after)
        if name in scope.integers:
            value = compute_integer(scope, before, after)
    if isinstance(value, PartialText) and any(is_computed(one.text) for one in value.pieces if one.is_open):
        value = None  # the script computes it once
    if not isinstance(value, str | tuple):
        value = scope.given.get(name, value)
    scope.values[name] = value
    if exports or name in scope.exported:
        scope.exported.add(name)
        item.exports[_IN_CONTAINER.sub("", name) if isinstance(value, str) else name] = value


def record_shell_declaration(
    text: str, scope: ScriptScope, part: ScriptCommand, begin: int, end: int
) -> ScriptItem:
    """Record `export`, `declare` and the like in the variables of a script; return their item."""
    item = ScriptItem("set", begin, end, [part])
    exports = part.texts[0] == "export" or "-x" in part.texts or scope.exports_all
    if any(re.match(r"-\w*i", one) for one in part.texts[1:]):
        scope.integers |= {one.text.partition("=")[0].rstrip("+") for one in (*part.sets, *part.words[1:])}
    for number, word in enumerate(part.sets):
        record_shell_assignment(text, scope, word, part.arrays.get(number), item, exports)
    for word in part.words[1:]:
        if exports and word.text.isidentifier():
            scope.exported.add(word.text)
            item.exports[word.text] = scope.values.get(word.text)
            item.names.add(word.text)
    return item


def find_names_that_are_read(texts: Sequence[str]) -> set[str]:
    """Return the variables that `read` or `mapfile` sets in the shell of the script."""
    if not texts or texts[0] not in _VALUES:
        return set()
    found, at = list[str](), 1
    while at < len(texts):
        if texts[at].startswith("-") and len(texts[at]) > 1:
            at += 2 if texts[at][-1] in _VALUES[texts[0]] else 1
            continue
        found.append(texts[at])
        at += 1
    names = {one for one in found if one.isidentifier()}
    return names or {"REPLY" if texts[0] == "read" else "MAPFILE"}


def find_assigned_names(parts: Sequence[ScriptCommand]) -> set[str]:
    """Return the variables that commands assign or read."""
    words = [word.text for part in parts for word in part.sets]
    names = {found[1] for one in words if (found := SCRIPT_ASSIGNMENT.match(one))}
    return names | {word.text for part in parts if part.texts[:1] == ["read"] for word in part.words[1:]}
