"""Read assignments of a script: scalars and arrays, new or appended."""

from __future__ import annotations

import re

from gangplan.imports.scripted.expand import Scope
from gangplan.imports.scripted.items import Item
from gangplan.imports.scripted.pieces import Value, joined
from gangplan.plan.launchers.shell import Word

ASSIGN = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=")


def assign(text: str, scope: Scope, word: Word, array: list[Word] | None, item: Item, exports: bool) -> None:
    """Record an assignment in the variables of a script; `array` are the words of an array."""
    found = ASSIGN.match(text, word.begin)
    if found is None:
        return
    name, adds = found[1], bool(found[2])
    item.names.add(name)
    value: Value
    if array is not None:
        entries = [one for inner in array for one in scope.fields(text[inner.begin : inner.end])]
        before = scope.values.get(name) if adds else ()
        value = None if not isinstance(before, tuple) else (*before, *entries)
    elif "[" in found[0]:
        value = None
    else:
        before = scope.values.get(name, "") if adds else ""
        value = joined(before, scope.value(text[found.end() : word.end]))
    scope.values[name] = value
    if exports or name in scope.exported:
        scope.exported.add(name)
        item.exports[name] = value
