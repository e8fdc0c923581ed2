"""The text of a new file from its values, as people write it: short, in the order of the format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangplan.objects import format_scalar
from gangplan.starter.fields import NEW_FILE_FORMATS
from gangplan.starter.values import format_flow_yaml

NEW_FILE_KINDS = {
    "job": "TrainingJob",
    "sweep": "Sweep",
    "team": "Team",
    "cluster": "Cluster",
    "image": "ImageCatalog",
    "waiver": "Waiver",
}
# Folders of schemas for editors: the one that `init` writes, and the one of gangplan's own repository.
_SCHEMAS = (".vscode/schemas", "docs/schema")
# The most characters of a line, without comments.
_WIDEST = 100


def render_file_text(kind: str, values: Mapping[str, Any], root: Path | None, file: str) -> str:
    """Write the whole file: the schema for editors if the workspace has it, version, kind, and the values."""
    head = {"apiVersion": "gangplan.dev/v1", "kind": NEW_FILE_KINDS[kind]}
    return (render_new_file_modeline(kind, root, file) if root else "") + render_block_text(
        {**head, **values}
    )


def render_block_text(values: Mapping[str, Any], indent: str = "") -> str:
    """Write a mapping as block YAML; what fits on one line is written on one."""
    return "".join(_render_new_file_field_entry(name, value, indent) for name, value in values.items())


def render_new_file_modeline(kind: str, root: Path, file: str) -> str:
    """Write the first line, which names the schema for editors; empty if the workspace has none."""
    for folder in _SCHEMAS:
        schema = root / folder / f"{NEW_FILE_FORMATS.get(kind, kind)}.json"
        if schema.is_file():
            path = os.path.relpath(schema, (root / file).parent).replace(os.sep, "/")
            return f"# yaml-language-server: $schema={path}\n"
    return ""


def _render_new_file_field_entry(name: str, value: Any, indent: str) -> str:
    line = f"{indent}{format_scalar(name)}: {format_flow_yaml(value)}\n"
    if not isinstance(value, dict | list) or not value:
        return line
    inner = list(value.values()) if isinstance(value, dict) else value
    holds_blocks = any(isinstance(one, dict) for one in inner)
    if len(line) <= _WIDEST and not (holds_blocks and isinstance(value, dict) and not indent):
        return line
    if isinstance(value, dict):
        return f"{indent}{format_scalar(name)}:\n" + render_block_text(value, f"{indent}  ")
    if not holds_blocks:
        if any(_render_new_file_literal_item(one, "") for one in inner):
            return f"{indent}{format_scalar(name)}:\n" + _render_list_items(value, indent)
        return (
            line
            if len(line) <= 2 * _WIDEST
            else f"{indent}{format_scalar(name)}:\n" + _render_list_items(value, indent)
        )
    return f"{indent}{format_scalar(name)}:\n" + _render_list_items(value, indent)


def _render_list_items(values: list[Any], indent: str) -> str:
    return "".join(
        _render_new_file_literal_item(one, indent) or f"{indent}  - {format_flow_yaml(one)}\n"
        for one in values
    )


def _render_new_file_literal_item(value: Any, indent: str) -> str:
    """Write a text of several lines as an entry that keeps them; empty if that is not possible."""
    if not isinstance(value, str) or "\n" not in value.rstrip("\n") or value.endswith("\n\n"):
        return ""
    lines = value.removesuffix("\n").split("\n")
    if value[:1] in (" ", "\t", "\n") or not all(line.replace("\t", "").isprintable() for line in lines):
        return ""
    mark = "|" if value.endswith("\n") else "|-"
    return f"{indent}  - {mark}\n" + "".join(f"{indent}    {line}\n" if line else "\n" for line in lines)
