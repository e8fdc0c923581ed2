"""Lists whose entries have a key: where a schema has them, and which keys an object repeats.

JSON Schema cannot express that keys are unique; the API server requires it for custom resources and for every
server-side apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.records import dataclass
from gangplan.validate.apiserver import schema_messages as words
from gangplan.validate.apiserver.schema_messages import JsonSchema
from gangplan.validate.problems import PathStep, Problem

LIST_KEYS = "x-kubernetes-list-map-keys"
# A missing key counts as its default: two entries for port 80, one with protocol TCP and one without, are the
# same.
DEFAULT_KEYS = {"protocol": "TCP"}


@dataclass(slots=True)
class Keyed:
    """Where keyed lists are below a value: in its fields (`more` of all without a schema of their own), or in
    the items of a list."""

    keys: tuple[str, ...] = ()
    items: Keyed | None = None
    fields: dict[str, Keyed] | None = None
    more: Keyed | None = None


def find_keyed_lists_in_schema(
    schema: JsonSchema, definitions: dict[str, JsonSchema], seen: dict[str, Keyed | None]
) -> Keyed | None:
    """Return the keyed lists below a schema, or None if there are none."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix("#/$defs/")
        if name not in seen:
            seen[name] = None
            seen[name] = find_keyed_lists_in_schema(definitions[name], definitions, seen)
        return seen[name]
    if "items" in schema:
        items = find_keyed_lists_in_schema(schema["items"], definitions, seen)
        keys = tuple(schema.get(LIST_KEYS, ()))
        return Keyed(keys, items) if keys or items else None
    fields = {}
    for name, value in schema.get("properties", {}).items():
        below = find_keyed_lists_in_schema(value, definitions, seen)
        if below:
            fields[name] = below
    others = schema.get("additionalProperties")
    more = find_keyed_lists_in_schema(others, definitions, seen) if isinstance(others, dict) else None
    return Keyed(fields=fields, more=more) if fields or more else None


def has_keyed_list_with_repeated_key(value: Any, keyed: Keyed | None) -> bool:
    """Return whether a keyed list contains a key twice. Written for speed: it runs for every good object."""
    if keyed is None:
        return False
    fields = keyed.fields
    if fields is not None:
        if isinstance(value, dict):
            more = keyed.more
            for name, item in value.items():
                below = fields.get(name, more)
                if below is not None and has_keyed_list_with_repeated_key(item, below):
                    return True
        return False
    if not isinstance(value, list):
        return False
    if keyed.keys and len(value) > 1 and _has_repeated_keys_in_keyed_list(value, keyed.keys):
        return True
    items = keyed.items
    if items is not None:
        for item in value:
            if has_keyed_list_with_repeated_key(item, items):
                return True
    return False


def _has_repeated_keys_in_keyed_list(value: list[Any], keys: tuple[str, ...]) -> bool:
    """Return whether two entries have the same keys. Malformed entries or keys are left to the schema."""
    try:
        held = [tuple(item.get(name, DEFAULT_KEYS.get(name)) for name in keys) for item in value]
        return len(set(held)) < len(held)
    except (AttributeError, TypeError):  # an entry that is not a mapping, a key that cannot be hashed
        return any(count > 1 for count in _count_keys_of_keyed_list(value, keys).values())


def find_repeated_keys_in_keyed_list(
    value: Any, keyed: Keyed | None, path: tuple[PathStep, ...]
) -> Iterator[Problem]:
    """Yield a problem for each key that a keyed list contains more than once."""
    if keyed is None:
        return
    if keyed.fields is not None and isinstance(value, dict):
        for name, item in value.items():
            below = keyed.fields.get(name, keyed.more)
            yield from find_repeated_keys_in_keyed_list(item, below, (*path, name))
    elif keyed.fields is None and isinstance(value, list):
        for key, count in (_count_keys_of_keyed_list(value, keyed.keys) if keyed.keys else {}).items():
            if count > 1:
                yield words.describe_repeated_key_in_keyed_list(path, keyed.keys, key, count)
        for index, item in enumerate(value):
            yield from find_repeated_keys_in_keyed_list(item, keyed.items, (*path, index))


def _count_keys_of_keyed_list(value: list[Any], keys: tuple[str, ...]) -> dict[tuple[str, ...], int]:
    """Count how often each key occurs.

    Entries that are not mappings are skipped; keys of different types are different.
    """
    out: dict[tuple[str, ...], int] = {}
    for item in value:
        if isinstance(item, dict):
            key = tuple(repr(item.get(name, DEFAULT_KEYS.get(name))) for name in keys)
            out[key] = out.get(key, 0) + 1
    return out
