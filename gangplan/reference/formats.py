"""docs/spec.md: every field of every file format, with its facts in words."""

from __future__ import annotations

import json
from typing import Any

from gangplan.reference.schemas import schema_of

_TITLES = {
    "spec": "TrainingJob",
    "team": "Team",
    "cluster": "Cluster",
    "catalog": "ImageCatalog",
    "waiver": "Waiver",
}


def facts_of(
    name: str, field: dict[str, Any], block: dict[str, Any], schema: dict[str, Any]
) -> dict[str, str]:
    return {
        "type": _type(field, schema),
        "default": "required" if name in block.get("required", ()) else _shown(field.get("default")),
        "example": _shown((field.get("examples") or [""])[0]),
        # pydantic leaves a description out that the block repeats.
        "meaning": field.get("description") or _block(field, schema).get("description", ""),
    }


def _block(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The block that a field holds, empty for a plain value."""
    found: dict[str, Any] = schema.get("$defs", {}).get(field.get("$ref", "").rsplit("/", 1)[-1], {})
    return found


def format_page(kind: str) -> str:
    """The fields of one format and of every block inside it, as tables."""
    schema = schema_of(kind)
    lines = [f"## {_TITLES[kind]}", "", schema["description"], "", *table_of(schema, schema)]
    for name in sorted(schema.get("$defs", {})):
        block = schema["$defs"][name]
        if "properties" in block:
            lines += [
                f"### {_TITLES[kind]}: {name}",
                "",
                block.get("description", ""),
                "",
                *table_of(block, schema),
            ]
    return "\n".join(lines)


def table_of(block: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """The fields of a block, one row each."""
    rows = ["| field | type | default | example | meaning |", "|---|---|---|---|---|"]
    for name, field in block["properties"].items():
        facts = facts_of(name, field, block, schema)
        rows.append(
            f"| `{name}` | {facts['type']} | {facts['default']} | {facts['example']} | {facts['meaning']} |"
        )
    return [*rows, ""]


def _shown(value: Any) -> str:
    if value in (None, "", {}, [], ()):
        return ""
    return f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")


def _type(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """A field's type in a word or two."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return name if "properties" in schema["$defs"][name] else _type(schema["$defs"][name], schema)
    forms = field.get("anyOf", field.get("oneOf"))
    if forms:
        return " or ".join(dict.fromkeys(_type(item, schema) for item in forms if item.get("type") != "null"))
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), schema)}"
    if field.get("type") == "object":
        values = [field.get("additionalProperties"), *field.get("patternProperties", {}).values()]
        value = next((one for one in values if isinstance(one, dict)), None)
        return f"map of {_type(value, schema)}" if value is not None else "map"
    if isinstance(field.get("type"), list):
        return "text or number"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "object": "map",
    }
    return words.get(field.get("type", ""), "value")
