"""A schema and all words of some texts in, what of the schema can say anything about these texts, out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gangplan.validate.apiserver.schema_messages import Schema

_DEFINITIONS = "#/$defs/"
# Keywords whose value is data: a `properties` in it is no keyword.
_DATA = ("const", "default", "enum", "example", "examples", "required")


def narrowed(schema: Schema, words: Collection[str]) -> Schema:
    """A schema that accepts and refuses the same objects, in the same words, if all their keys are `words`.

    What a schema says of a field, it says of objects that have the field: the others are left out, with the
    definitions that only they refer to. A kind with pods has 50 kB of schema, of which a run uses a tenth.
    """
    reached: dict[str, Any] = {}
    todo: list[str] = []
    root = _narrowed({name: part for name, part in schema.items() if name != "$defs"}, words, todo)
    while todo:
        name = todo.pop()
        if name not in reached:
            reached[name] = _narrowed(schema["$defs"][name], words, todo)
    return {**root, "$defs": dict(sorted(reached.items()))} if reached else dict(root)


def _narrowed(part: Any, words: Collection[str], todo: list[str]) -> Any:
    """A part of a schema; the definitions that it refers to are added to `todo`."""
    if isinstance(part, list):
        return [_narrowed(one, words, todo) for one in part]
    if not isinstance(part, dict):
        return part
    found = {}
    for keyword, value in part.items():
        if keyword == "properties":
            value = {name: _narrowed(one, words, todo) for name, one in value.items() if name in words}
        elif keyword == "$ref" and isinstance(value, str):
            todo.append(value.removeprefix(_DEFINITIONS))
        elif keyword not in _DATA:
            value = _narrowed(value, words, todo)
        found[keyword] = value
    return found
