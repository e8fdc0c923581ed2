"""The fields of a file format that flags set, from its JSON Schema: path, shape, and allowed values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from gangplan.records import dataclass
from gangplan.reference.schemas import schema_of

#: What `gangplan new` writes, and its format. An image is an entry of the catalog.
FORMATS = {"job": "spec", "team": "team", "cluster": "cluster", "image": "catalog", "waiver": "waiver"}
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
    schema = schema_of(FORMATS[kind])
    block = schema["$defs"]["Image"] if kind == "image" else schema
    return tuple(_walk(block, (), schema, _GIVEN[kind], True))


def _walk(
    block: Schema, path: tuple[str, ...], schema: Schema, without: tuple[str, ...], is_needed: bool
) -> Iterator[NewField]:
    """Yield the fields of a block, and those of its inner blocks one by one.

    What an optional block needs is optional.
    """
    for name, field in block["properties"].items():
        if not path and name in without:
            continue
        here, node = (*path, name), _bare(field, schema)
        is_required = is_needed and name in block.get("required", ())
        if "properties" in node:
            yield from _walk(node, here, schema, (), is_required)
            continue
        shape, entry = _shape(node, schema)
        yield NewField(
            here,
            shape,
            _types(entry),
            tuple(str(one) for one in entry.get("enum", ())),
            field.get("description", ""),
            (field.get("examples") or [None])[0],
            is_required,
            tuple(entry.get("required", ())) if shape == "named" else (),
        )


def _shape(node: Schema, schema: Schema) -> tuple[str, Schema]:
    """Return how a flag gives the value, and the schema of a value or of an entry."""
    if any(one.get("type") == "array" for one in node.get("anyOf", ())):  # a command: words, or one line
        return "value", {"type": "string"}
    if node.get("type") == "array":
        entry = _bare(node["items"], schema)
        return ("list", entry) if _is_plain(entry) else ("blocks", entry)
    if node.get("type") == "object":
        inside = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
        entry = next((_bare(one, schema) for one in inside if isinstance(one, dict)), {})
        return ("map", entry) if _is_plain(entry) else ("named", entry)
    return ("truth" if node.get("type") == "boolean" else "value"), node


def _bare(field: Schema, schema: Schema) -> Schema:
    """Return a field's schema without references and without null."""
    if "$ref" in field:
        found: Schema = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]
        return _bare(found, schema)
    others = [one for one in field.get("anyOf", ()) if one.get("type") != "null"]
    return _bare(others[0], schema) if len(others) == 1 else field


def _is_plain(entry: Schema) -> bool:
    return not {"object", "array"} & set(_types(entry))


def _types(entry: Schema) -> tuple[str, ...]:
    """Return the JSON types that a schema accepts."""
    if "$ref" in entry:  # a block in one of several forms
        return ("object",)
    own = entry.get("type")
    if own is not None:
        return tuple(own) if isinstance(own, list) else (own,)
    inner = [*entry.get("anyOf", ()), *entry.get("oneOf", ())]
    return tuple(dict.fromkeys(kind for one in inner for kind in _types(one))) or ("string",)
