"""The generated reference: JSON Schemas for editors, and pages for fields and commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gangplan.commands.schema import models, schema_of
from gangplan.errors import Exit

_TITLES = {"spec": "TrainingJob", "team": "Team", "cluster": "Cluster", "catalog": "ImageCatalog"}


def write_docs(folder: Path, check: bool) -> Exit:
    """Write all pages below `folder`, or with `check` tell which are not fresh."""
    stale = []
    for name, text in pages().items():
        path = folder / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        sys.stdout.write(f"{'stale' if check else 'wrote'}: {folder / name}\n")
    return Exit.FINDINGS if check and stale else Exit.CLEAN


def pages() -> dict[str, str]:
    """Every generated page by its path."""
    found = {
        f"schema/{kind}.json": json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in models()
    }
    found["spec.md"] = "\n".join(
        [
            "# File formats",
            "",
            "Generated from the models by `make docs`.",
            "",
            *(_format_page(kind) for kind in models()),
        ]
    )
    return found


def _format_page(kind: str) -> str:
    """The fields of one format and of every block inside it, as tables."""
    schema = schema_of(kind)
    lines = [f"## {_TITLES[kind]}", "", schema["description"], "", *_table(schema, schema)]
    for name in sorted(schema.get("$defs", {})):
        block = schema["$defs"][name]
        if "properties" in block:
            lines += [
                f"### {_TITLES[kind]}: {name}",
                "",
                block.get("description", ""),
                "",
                *_table(block, schema),
            ]
    return "\n".join(lines)


def _table(block: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    rows = ["| field | type | default | example | meaning |", "|---|---|---|---|---|"]
    for name, field in block["properties"].items():
        default = "required" if name in block.get("required", ()) else _shown(field.get("default"))
        example = _shown((field.get("examples") or [""])[0])
        rows.append(
            f"| `{name}` | {_type(field, schema)} | {default} | {example} | {field.get('description', '')} |"
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
    if "anyOf" in field:
        return " or ".join(
            dict.fromkeys(_type(item, schema) for item in field["anyOf"] if item.get("type") != "null")
        )
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), schema)}"
    if field.get("type") == "object":
        return (
            f"map of {_type(field.get('additionalProperties', {}), schema)}"
            if isinstance(field.get("additionalProperties"), dict)
            else "map"
        )
    if isinstance(field.get("type"), list):
        return "text or number"
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(
        field.get("type", ""), "value"
    )
