"""A table of defaults compiled for speed: every mapping is visited once, however many rows there are.

`fill_fields_from_defaults_table` of paths.py defines what a table means; a `Filling` gives the same result,
and copies only what it changes.
"""

from __future__ import annotations

from typing import Any

from gangplan.objects import Body
from gangplan.validate.apiserver.defaulting.paths import DefaultsTable, copy_object_for_defaulting


class Filling:
    """The defaults of one mapping, and of those below it: in its fields, and in the entries of its lists."""

    __slots__ = ("defaults", "entries", "fields")

    def __init__(self, table: DefaultsTable) -> None:
        self.defaults: list[tuple[str, Any]] = []
        self.fields: dict[str, Filling] = {}
        self.entries: dict[str, Filling] = {}
        for path, value in table:
            self._add(path.split("."), value)

    def _add(self, steps: list[str], value: Any) -> None:
        name, *rest = steps
        if not rest:
            self.defaults.append((name, value))
            return
        below = self.entries if name.endswith("[]") else self.fields
        below.setdefault(name.removesuffix("[]"), Filling(()))._add(rest, value)

    def of(self, mapping: Body) -> Body:
        """Return the mapping with its defaults.

        Parts that are complete are shared with `mapping`, not copied.
        """
        result = mapping
        for name, value in self.defaults:
            if result.get(name) is None:
                result = dict(mapping) if result is mapping else result
                result[name] = copy_object_for_defaulting(value)
        for name in self.fields.keys() & result.keys():
            inner = result[name]
            if isinstance(inner, dict):
                full = self.fields[name].of(inner)
                if full is not inner:
                    result = dict(mapping) if result is mapping else result
                    result[name] = full
        for name in self.entries.keys() & result.keys():
            listed = result[name]
            if isinstance(listed, list):
                each = self.entries[name].of
                filled = [each(entry) if isinstance(entry, dict) else entry for entry in listed]
                if any(one is not other for one, other in zip(filled, listed, strict=True)):
                    result = dict(mapping) if result is mapping else result
                    result[name] = filled
        return result
