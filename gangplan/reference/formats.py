"""Write docs/spec.md: every field of every file format, with its facts in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gangplan.reference.levels import group_format_fields_by_level
from gangplan.reference.schemas import build_editor_schema_of_format

_TITLES = {
    "spec": "TrainingJob",
    "sweep": "Sweep",
    "template": "JobTemplate",
    "team": "Team",
    "cluster": "Cluster",
    "catalog": "ImageCatalog",
    "waiver": "Waiver",
    "workspace": "Workspace",
}


def describe_format_field(
    name: str, field: dict[str, Any], block: dict[str, Any], schema: dict[str, Any]
) -> dict[str, str]:
    """Return a field's type, default, example and meaning, as its page says them."""
    return {
        "type": _describe_format_field_type(field, schema),
        "default": "required"
        if name in block.get("required", ())
        else _format_json_cell(field.get("default")),
        "example": _format_json_cell((field.get("examples") or [""])[0]),
        # pydantic omits a description that the block repeats.
        "meaning": field.get("description") or _find_referenced_block(field, schema).get("description", ""),
    }


def _find_referenced_block(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the block that a field holds; empty for a plain value."""
    found: dict[str, Any] = schema.get("$defs", {}).get(field.get("$ref", "").rsplit("/", 1)[-1], {})
    return found


def render_format_docs_page(kind: str) -> str:
    """Return the tables of a format's fields, those that everybody writes first, and of the blocks
    inside it."""
    schema, title = build_editor_schema_of_format(kind), _TITLES[kind]
    lines = [f"## {title}", "", schema["description"], ""]
    levels = group_format_fields_by_level(kind, schema["properties"])
    for level in levels:
        about = [level.about, ""] if level.about else []
        lines += [
            f"### {title}: {level.title}",
            "",
            *about,
            *render_field_docs_table(schema, schema, kind, level.fields),
        ]
    if not levels:
        lines += render_field_docs_table(schema, schema, kind)
    for name, block in _list_schema_blocks(schema):
        lines += [
            f"### {title}: {name}",
            "",
            block.get("description", ""),
            "",
            *render_field_docs_table(block, schema, kind),
        ]
    return "\n".join(lines)


def list_format_docs_contents() -> list[str]:
    """Return the contents of docs/spec.md: each format with the parts of its table."""
    lines = []
    for kind, title in _TITLES.items():
        schema = build_editor_schema_of_format(kind)
        parts = [
            f"[{one.title}](#{_build_heading_anchor(title, one.title)})"
            for one in group_format_fields_by_level(kind, schema["properties"])
        ]
        blocks = [
            f"[{name}](#{_build_heading_anchor(title, name)})" for name, _ in _list_schema_blocks(schema)
        ]
        lines += [f"- [{title}](#{title.lower()})", *(f"  - {part}" for part in parts)]
        lines += [f"  - blocks: {', '.join(blocks)}"] if blocks else []
    return [*lines, ""]


def render_field_docs_table(
    block: dict[str, Any], schema: dict[str, Any], kind: str, names: Sequence[str] | None = None
) -> list[str]:
    """Return a table of the fields of a block: all of them, or those in `names` in that order.

    `kind` is the format that the block belongs to; empty for one without a page of its own in docs/spec.md.
    """
    rows = ["| field | type | default | example | meaning |", "|---|---|---|---|---|"]
    for name in block["properties"] if names is None else names:
        facts = describe_format_field(name, block["properties"][name], block, schema)
        rows.append(
            f"| `{name}` | {_format_linked_type_for_docs(facts['type'], schema, kind)} | {facts['default']} | {facts['example']} |"
            f" {facts['meaning']} |"
        )
    return [*rows, ""]


def _list_schema_blocks(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the blocks inside a format, by name."""
    return [(name, block) for name, block in sorted(schema.get("$defs", {}).items()) if "properties" in block]


def _format_linked_type_for_docs(type: str, schema: dict[str, Any], kind: str) -> str:
    """Return a type in words; in a format with a page, the name of a block is a link to its table."""
    if kind not in _TITLES:
        return type
    names = {name for name, _ in _list_schema_blocks(schema)}
    return " ".join(
        f"[{word}](#{_build_heading_anchor(_TITLES[kind], word)})" if word in names else word
        for word in type.split(" ")
    )


def _build_heading_anchor(title: str, part: str) -> str:
    """Return the anchor of a heading, as forges generate it."""
    text = f"{title}: {part}".lower()
    return "".join(letter for letter in text if letter.isalnum() or letter in " -").replace(" ", "-")


def _format_json_cell(value: Any) -> str:
    if value in (None, "", {}, [], ()):
        return ""
    return f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")


def _describe_format_field_type(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return a field's type in a word or two."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return (
            name
            if "properties" in schema["$defs"][name]
            else _describe_format_field_type(schema["$defs"][name], schema)
        )
    forms = field.get("anyOf", field.get("oneOf"))
    if forms:
        return " or ".join(
            dict.fromkeys(
                _describe_format_field_type(item, schema) for item in forms if item.get("type") != "null"
            )
        )
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list of {_describe_format_field_type(field.get('items', {}), schema)}"
    if field.get("type") == "object":
        values = [field.get("additionalProperties"), *field.get("patternProperties", {}).values()]
        value = next((one for one in values if isinstance(one, dict)), None)
        return f"map of {_describe_format_field_type(value, schema)}" if value is not None else "map"
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
