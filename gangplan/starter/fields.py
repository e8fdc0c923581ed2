"""The fields of a file format that flags set, from its JSON Schema: path, shape, and allowed values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from gangplan.records import dataclass
from gangplan.reference.schemas import build_editor_schema_of_format

#: What `gangplan new` writes, and its format. An image is an entry of the catalog.
NEW_FILE_FORMATS = {
    "job": "spec",
    "team": "team",
    "cluster": "cluster",
    "image": "catalog",
    "waiver": "waiver",
}
# Fields that every file has, or that follow from the path of the file.
_GIVEN = {
    "job": ("apiVersion", "kind", "name", "team"),
    "team": ("apiVersion", "kind", "name"),
    "cluster": ("apiVersion", "kind", "name"),
    "image": (),
    "waiver": ("apiVersion", "kind"),
}

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewField:
    """One field of a file, by its path.

    `shape` says how a flag gives it: `value` and `truth` once, `list` and `blocks` once per entry, `map` and
    `named` as NAME=VALUE; entries of `blocks` and `named` are YAML, such as {count: 4, cpu: 30}. `types` are
    the JSON types of a value or entry, `choices` the words that it may be, `parts` the fields that an entry
    needs.
    """

    path: tuple[str, ...]
    shape: str
    types: tuple[str, ...]
    choices: tuple[str, ...]
    description: str
    example: Any
    is_required: bool
    parts: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The flag, such as `--network-posture` for network.posture."""
        return "--" + "-".join(re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", part).lower() for part in self.path)


@cache
def fields_of(kind: str) -> tuple[NewField, ...]:
    """Return the fields of a kind of file, in the order of its format."""
    schema = build_editor_schema_of_format(NEW_FILE_FORMATS[kind])
    block = schema["$defs"]["Image"] if kind == "image" else schema
    return tuple(_list_schema_fields(block, (), schema, _GIVEN[kind], True))


def _list_schema_fields(
    block: Schema, path: tuple[str, ...], schema: Schema, without: tuple[str, ...], is_needed: bool
) -> Iterator[NewField]:
    """Yield the fields of a block, and those of its inner blocks one by one.

    What an optional block needs is optional.
    """
    for name, field in block["properties"].items():
        if not path and name in without:
            continue
        here, node = (*path, name), _resolve_schema_of_new_field(field, schema)
        is_required = is_needed and name in block.get("required", ())
        if "properties" in node:
            yield from _list_schema_fields(node, here, schema, (), is_required)
            continue
        shape, entry = _find_flag_shape_of_new_field(node, schema)
        yield NewField(
            here,
            shape,
            _list_json_types_of_new_field(entry),
            tuple(str(one) for one in entry.get("enum", ())),
            field.get("description", ""),
            (field.get("examples") or [None])[0],
            is_required,
            tuple(entry.get("required", ())) if shape == "named" else (),
        )


def _find_flag_shape_of_new_field(node: Schema, schema: Schema) -> tuple[str, Schema]:
    """Return how a flag gives the value, and the schema of a value or of an entry."""
    if any(one.get("type") == "array" for one in node.get("anyOf", ())):  # a command: words, or one line
        return "value", {"type": "string"}
    if node.get("type") == "array":
        entry = _resolve_schema_of_new_field(node["items"], schema)
        return ("list", entry) if _is_plain(entry) else ("blocks", entry)
    if node.get("type") == "object":
        inside = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
        entry = next(
            (_resolve_schema_of_new_field(one, schema) for one in inside if isinstance(one, dict)), {}
        )
        return ("map", entry) if _is_plain(entry) else ("named", entry)
    return ("truth" if node.get("type") == "boolean" else "value"), node


def _resolve_schema_of_new_field(field: Schema, schema: Schema) -> Schema:
    """Return a field's schema without references and without null."""
    if "$ref" in field:
        found: Schema = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]
        return _resolve_schema_of_new_field(found, schema)
    others = [one for one in field.get("anyOf", ()) if one.get("type") != "null"]
    return _resolve_schema_of_new_field(others[0], schema) if len(others) == 1 else field


def _is_plain(entry: Schema) -> bool:
    return not {"object", "array"} & set(_list_json_types_of_new_field(entry))


def _list_json_types_of_new_field(entry: Schema) -> tuple[str, ...]:
    """Return the JSON types that a schema accepts."""
    if "$ref" in entry:  # a block in one of several forms
        return ("object",)
    own = entry.get("type")
    if own is not None:
        return tuple(own) if isinstance(own, list) else (own,)
    inner = [*entry.get("anyOf", ()), *entry.get("oneOf", ())]
    return tuple(dict.fromkeys(kind for one in inner for kind in _list_json_types_of_new_field(one))) or (
        "string",
    )
