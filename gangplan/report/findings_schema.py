"""The JSON Schema of the findings document (`--format json`), published by `gangplan schema print findings`.

Fields may be added without a new version, so the schema lets unknown ones pass: readers ignore them.
"""

from __future__ import annotations

from typing import Any

from gangplan.report.json import FINDINGS_FORMAT_VERSION
from gangplan.rules.model import Severity

_LEVELS = [severity.word for severity in reversed(Severity)]


def build_findings_json_schema() -> dict[str, Any]:
    """Return the schema, without `$schema` and title."""
    return {
        "description": "Findings of validate, render, plan and cluster check, worst first.",
        **_build_object_schema(
            {
                "version": {
                    "const": FINDINGS_FORMAT_VERSION,
                    "description": "Raised when a field changes its meaning or is removed.",
                },
                "command": _build_text_schema("The command that made the document."),
                "folder": _build_text_schema(
                    "Folder of the workspace in its repository; empty at the top. Paths start there."
                ),
                "failOn": {"enum": _LEVELS, "description": "Lowest severity that makes exit 1."},
                "checked": {
                    "type": "object",
                    "additionalProperties": _build_count_schema(""),
                    "description": "What was looked at, and how many: specs, runs, objects.",
                },
                "engines": {"type": "array", "items": {"type": "string"}, "description": "Who judged."},
                "files": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                    "description": "Of render: the files below rendered/ that are new, changed, same or removed.",
                },
                "shard": {
                    "type": "object",
                    "description": "Of validate --shard: what gangplan report merge needs; its shape may change.",
                },
                "counts": {
                    **_build_object_schema({word: _build_count_schema("") for word in [*_LEVELS, "waived"]}),
                    "description": "Findings by severity; waived ones count only as waived.",
                },
                "changes": {
                    "type": "array",
                    "items": _build_change_schema(),
                    "description": "Changes that resolve two findings or more, the most useful first.",
                },
                "findings": {
                    "type": "array",
                    "items": _build_finding_schema(),
                    "description": "All findings: errors, warnings, notes, then those that a waiver covers; each in the order of files and lines.",
                },
            },
            optional=("command", "folder", "failOn", "checked", "engines", "files", "shard"),
        ),
    }


def _build_finding_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            "rule": _build_text_schema("Stable id; gangplan explain RULE shows more."),
            "severity": {"enum": _LEVELS, "description": "How bad it is."},
            **_build_place_properties("Where the cause is"),
            "endColumn": _build_count_schema(
                "Column after the word or value there; 0 where it is not known."
            ),
            "cluster": _build_text_schema(
                "The cluster that it is about; empty where it is about none or several."
            ),
            "clusters": {
                "type": "array",
                "items": {"type": "string"},
                "description": "All clusters that it is about; empty where it is about none in particular.",
            },
            "object": _build_text_schema("Kind/namespace/name of the rendered object, when one is involved."),
            "path": _build_text_schema("Its field."),
            "message": _build_text_schema("What is wrong, with the value."),
            "help": _build_text_schema("What would be right."),
            "waiver": {
                "anyOf": [_build_waiver_schema(), {"type": "null"}],
                "description": "The waiver that names this finding.",
            },
            "fix": {
                "anyOf": [_build_fix_schema(), {"type": "null"}],
                "description": "What validate --fix would write.",
            },
            "fingerprint": {
                "type": "string",
                "pattern": "^[0-9a-f]{32}$",
                "description": "Stable from run to run, even when lines move; unique in one document.",
            },
        }
    )


def _build_waiver_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            **_build_place_properties("Where it is granted"),
            "until": {"type": "string", "format": "date", "description": "Its last day."},
            "reason": _build_text_schema("Why it is granted."),
            "approver": _build_text_schema("Who granted it."),
            "over": {"type": "boolean", "description": "It has expired: the finding counts."},
        }
    )


def _build_fix_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            **_build_place_properties("The first character that is replaced"),
            "endLine": _build_count_schema("Line after the last one."),
            "endColumn": _build_count_schema("Column after the last one."),
            "replacement": _build_text_schema("What takes their place."),
            "why": _build_text_schema("Why that is right."),
        }
    )


def _build_change_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            "rule": _build_text_schema("The rule that all of them break."),
            "help": _build_text_schema("The change."),
            "findings": {"type": "integer", "minimum": 2, "description": "How many it resolves."},
            "places": {
                "type": "array",
                "minItems": 1,
                "items": _build_object_schema(_build_place_properties("Where to make it")),
                "description": "Where to make it.",
            },
        }
    )


def _build_place_properties(what: str) -> dict[str, Any]:
    return {
        "file": _build_text_schema(f"{what}: a path from the workspace, with forward slashes."),
        "line": _build_count_schema("From 1; 0 for a whole file."),
        "column": _build_count_schema("From 1, in characters; 0 for a whole file or line."),
    }


def _build_object_schema(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _build_text_schema(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _build_count_schema(description: str) -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"type": "integer", "minimum": 0, **said}
