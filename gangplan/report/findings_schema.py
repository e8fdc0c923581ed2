"""The JSON Schema of the findings document (`--format json`), published by `gangplan schema print findings`.

Fields may be added without a new version, so the schema lets unknown ones pass: readers ignore them.
"""

from __future__ import annotations

from typing import Any

from gangplan.report.json import SHAPE
from gangplan.rules.model import Severity

_LEVELS = [severity.word for severity in reversed(Severity)]


def findings_schema() -> dict[str, Any]:
    """Return the schema, without `$schema` and title."""
    return {
        "description": "Findings of validate, render, plan and cluster check, worst first.",
        **_object(
            {
                "version": {
                    "const": SHAPE,
                    "description": "Raised when a field changes its meaning or is removed.",
                },
                "command": _text("The command that made the document."),
                "folder": _text(
                    "Folder of the workspace in its repository; empty at the top. Paths start there."
                ),
                "failOn": {"enum": _LEVELS, "description": "Lowest severity that makes exit 1."},
                "checked": {
                    "type": "object",
                    "additionalProperties": _count(""),
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
                    **_object({word: _count("") for word in [*_LEVELS, "waived"]}),
                    "description": "Findings by severity; waived ones count only as waived.",
                },
                "changes": {
                    "type": "array",
                    "items": _change(),
                    "description": "Changes that resolve two findings or more, the most useful first.",
                },
                "findings": {
                    "type": "array",
                    "items": _finding(),
                    "description": "All findings: errors, warnings, notes, then those that a waiver covers; each in the order of files and lines.",
                },
            },
            optional=("command", "folder", "failOn", "checked", "engines", "files", "shard"),
        ),
    }


def _finding() -> dict[str, Any]:
    return _object(
        {
            "rule": _text("Stable id; gangplan explain RULE shows more."),
            "severity": {"enum": _LEVELS, "description": "How bad it is."},
            **_place("Where the cause is"),
            "endColumn": _count("Column after the word or value there; 0 where it is not known."),
            "cluster": _text("The cluster that it is about; empty where it is about none or several."),
            "clusters": {
                "type": "array",
                "items": {"type": "string"},
                "description": "All clusters that it is about; empty where it is about none in particular.",
            },
            "object": _text("Kind/namespace/name of the rendered object, when one is involved."),
            "path": _text("Its field."),
            "message": _text("What is wrong, with the value."),
            "help": _text("What would be right."),
            "waiver": {
                "anyOf": [_waiver(), {"type": "null"}],
                "description": "The waiver that names this finding.",
            },
            "fix": {"anyOf": [_fix(), {"type": "null"}], "description": "What validate --fix would write."},
            "fingerprint": {
                "type": "string",
                "pattern": "^[0-9a-f]{32}$",
                "description": "Stable from run to run, even when lines move; unique in one document.",
            },
        }
    )


def _waiver() -> dict[str, Any]:
    return _object(
        {
            **_place("Where it is granted"),
            "until": {"type": "string", "format": "date", "description": "Its last day."},
            "reason": _text("Why it is granted."),
            "approver": _text("Who granted it."),
            "over": {"type": "boolean", "description": "It has expired: the finding counts."},
        }
    )


def _fix() -> dict[str, Any]:
    return _object(
        {
            **_place("The first character that is replaced"),
            "endLine": _count("Line after the last one."),
            "endColumn": _count("Column after the last one."),
            "replacement": _text("What takes their place."),
            "why": _text("Why that is right."),
        }
    )


def _change() -> dict[str, Any]:
    return _object(
        {
            "rule": _text("The rule that all of them break."),
            "help": _text("The change."),
            "findings": {"type": "integer", "minimum": 2, "description": "How many it resolves."},
            "places": {
                "type": "array",
                "minItems": 1,
                "items": _object(_place("Where to make it")),
                "description": "Where to make it.",
            },
        }
    )


def _place(what: str) -> dict[str, Any]:
    return {
        "file": _text(f"{what}: a path from the workspace, with forward slashes."),
        "line": _count("From 1; 0 for a whole file."),
        "column": _count("From 1, in characters; 0 for a whole file or line."),
    }


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _count(description: str) -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"type": "integer", "minimum": 0, **said}
