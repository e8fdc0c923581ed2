"""The JSON Schema of `gangplan import --format json`, as `gangplan schema print import` publishes it.

Fields may be added without a new version, so the schema lets unknown ones pass: readers ignore them.
"""

from __future__ import annotations

from typing import Any

# Repeated here instead of imported from the code that makes the document, so that a change there shows.
_VERSION = 1
_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE: dict[str, Any] = {"type": ["string", "null"]}


def _build_object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _build_suggestion_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            "file": _TEXT,
            "owner": {"enum": ["team", "platform"]},
            "path": {"type": "array", "items": _TEXT},
            "value": {},
            "why": _TEXT,
            "where": _TEXT,
        }
    )


def _build_comparison_row_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            "area": _TEXT,
            "what": _TEXT,
            "source": _MAYBE,
            "run": _MAYBE,
            "isSame": {"type": "boolean"},
            "why": _TEXT,
        }
    )


def _build_account_entry_schema() -> dict[str, Any]:
    count = {"type": "integer", "minimum": 0}
    return _build_object_schema(
        {
            "path": _TEXT,
            "file": _TEXT,
            "line": count,
            "column": count,
            "value": {"type": ["string", "integer", "boolean", "null"]},
            "state": {"enum": ["mapped", "defaulted", "dropped", "asked"]},
            "to": _TEXT,
            "why": _TEXT,
        }
    )


def build_import_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `document`, without `$schema` and title. Readers ignore fields that they
    do not know."""
    percent = {"type": "integer", "minimum": 0, "maximum": 100}
    run = _build_object_schema(
        {"percent": percent, "rows": {"type": "array", "items": _build_comparison_row_schema()}}
    )
    imported = _build_object_schema(
        {
            "spec": _TEXT,
            "kind": _TEXT,
            "name": _TEXT,
            "where": _TEXT,
            "text": _TEXT,
            "isRight": {"type": "boolean"},
            "account": {"type": "array", "items": _build_account_entry_schema()},
            "commandNotes": {"type": "array", "items": _TEXT},
            "runs": {"type": "object", "additionalProperties": run},
        }
    )
    return {
        "description": "What gangplan import made of its sources: specs, an account of every field, and the runs next to the sources.",
        **_build_object_schema(
            {
                "version": {
                    "const": _VERSION,
                    "description": "Raised when a field changes its meaning or goes.",
                },
                "command": {"const": "import"},
                "imported": {"type": "array", "items": imported},
                "suggestions": {"type": "array", "items": _build_suggestion_schema()},
            }
        ),
    }
