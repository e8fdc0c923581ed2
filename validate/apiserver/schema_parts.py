"""Narrowing a schema to the parts that can apply to some texts, given all words of those texts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gangplan.validate.apiserver.schema_messages import JsonSchema

_DEFINITIONS = "#/$defs/"
# Keywords whose value is data: `properties` within it is not a keyword.
_DATA = ("const", "default", "enum", "example", "examples", "required")


def narrow_schema_to_object_keys(schema: JsonSchema, words: Collection[str]) -> JsonSchema:
    """Return a smaller schema with the same verdicts and messages for objects whose keys are all in `words`.

    Rules about a field apply only to objects that have it, so other fields are left out, with the definitions
    that only they refer to. A kind with pods has a schema of 50 kB, and a run uses a tenth of it.
    """
    reached: dict[str, Any] = {}
    todo: list[str] = []
    root = _narrow_api_schema_part(
        {name: part for name, part in schema.items() if name != "$defs"}, words, todo
    )
    while todo:
        name = todo.pop()
        if name not in reached:
            reached[name] = _narrow_api_schema_part(schema["$defs"][name], words, todo)
    return {**root, "$defs": dict(sorted(reached.items()))} if reached else dict(root)


def _narrow_api_schema_part(part: Any, words: Collection[str], todo: list[str]) -> Any:
    """Narrow a part of a schema, adding the definitions that it refers to to `todo`."""
    if isinstance(part, list):
        return [_narrow_api_schema_part(one, words, todo) for one in part]
    if not isinstance(part, dict):
        return part
    found = {}
    for keyword, value in part.items():
        if keyword == "properties":
            value = {
                name: _narrow_api_schema_part(one, words, todo)
                for name, one in value.items()
                if name in words
            }
        elif keyword == "$ref" and isinstance(value, str):
            todo.append(value.removeprefix(_DEFINITIONS))
        elif keyword not in _DATA:
            value = _narrow_api_schema_part(value, words, todo)
        found[keyword] = value
    return found
