"""The JSON Schema of a review (`plan --base REF --format json`), published by `gangplan schema print plan`.

Fields may be added without a new version, so the schema lets unknown ones pass: readers ignore them.
"""

from __future__ import annotations

from typing import Any

from gangplan.report.review_json import SHAPE

# Repeated here instead of imported from the code that makes the document, so that a change there shows.
_EDITS = [
    "new",
    "changed",
    "retrained",
    "resumed",
    "scheduled",
    "waits",
    "released",
    "stopped",
    "retired",
    "removed",
    "archived",
    "broken",
]
_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_HOURS: dict[str, Any] = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]{1,3})?$",
    "description": "Hours at most, exact to a thousandth.",
}


def review_schema() -> dict[str, Any]:
    """Return the schema, without `$schema` and title."""
    totals = _object({"before": _total(), "after": _total()})
    return {
        "description": "What a change does, from a Git revision to the workspace as it stands.",
        **_object(
            {
                "version": {
                    "const": SHAPE,
                    "description": "Raised when a field changes its meaning or goes.",
                },
                "command": {"const": "plan"},
                "base": _object({"asked": _TEXT, "commit": _TEXT, "isMergeBase": {"type": "boolean"}}),
                "notes": {**_TEXTS, "description": "Sentences about the comparison itself."},
                "specs": _object(
                    {
                        **dict.fromkeys(("new", "changed", "removed"), _TEXTS),
                        "renamed": _list(_object({"from": _TEXT, "to": _TEXT})),
                        "descriptions": {
                            "type": "object",
                            "additionalProperties": _TEXT,
                            "description": "Of new and changed specs that have one, by file.",
                        },
                    },
                    optional=("descriptions",),
                ),
                "runs": _list(_edit()),
                "totals": _object(
                    {
                        "all": totals,
                        "teams": _list(_object({"team": _TEXT, "cluster": _TEXT, **totals["properties"]})),
                    }
                ),
                "quotas": _list(_quota()),
                "budgets": _list(_budget()),
                **{name: _findings() for name in ("newFindings", "goneFindings")},
                "sameFindings": {"type": "object", "additionalProperties": _COUNT},
                "policies": {**_TEXTS, "description": "Policies that are newly violated."},
                "waivers": _list(_waiver()),
                "reach": _list(_reach()),
                "objects": _list(_changed_object()),
                "meanings": _list(_meaning()),
                "kinds": _list(_object({"change": _TEXT, "kind": _TEXT, "objects": _TEXTS})),
            },
            optional=("budgets",),
        ),
    }


def _edit() -> dict[str, Any]:
    return _object(
        {
            "edit": {"enum": _EDITS},
            **dict.fromkeys(("spec", "cluster", "team", "job", "run"), _TEXT),
            "waitsFor": {
                **_TEXTS,
                "description": "The runs that must be complete before it is created; of a sweep, its name.",
            },
            "goesOn": {
                **_TEXT,
                "description": "The run that continues beside the new one, if it is not over.",
            },
            "before": {"anyOf": [_run(), {"type": "null"}]},
            "after": {"anyOf": [_run(), {"type": "null"}]},
        }
    )


def _run() -> dict[str, Any]:
    return _object(
        {
            "name": _TEXT,
            "state": {"enum": ["active", "stopped", "archived"]},
            **dict.fromkeys(("workers", "ranks", "gpus", "seconds"), _COUNT),
            **dict.fromkeys(("gpuHours", "cpuHours"), _HOURS),
            "cost": {"anyOf": [_object({"most": _TEXT, "currency": _TEXT}), {"type": "null"}]},
            **dict.fromkeys(("pool", "queue", "priority", "image"), _TEXT),
            "admission": _object({"outcome": {"enum": ["admit", "queue", "never", ""]}, "words": _TEXT}),
        }
    )


def _total() -> dict[str, Any]:
    return _object(
        {
            "runs": _COUNT,
            "gpus": _COUNT,
            "gpuHours": _HOURS,
            "cpuHours": _HOURS,
            "cost": {"type": "object", "additionalProperties": _TEXT, "description": "By currency."},
        }
    )


def _quota() -> dict[str, Any]:
    side = _object(dict.fromkeys(("quota", "most", "wanted"), _TEXT))
    names = dict.fromkeys(("team", "cluster", "pool", "resource"), _TEXT)
    return _object({**names, "before": side, "after": side})


def _budget() -> dict[str, Any]:
    side = _object({"amount": {**_TEXT, "description": "Empty: no budget."}, "spent": _TEXT})
    names = dict.fromkeys(("team", "cluster", "currency"), _TEXT)
    return _object({**names, "before": side, "after": side, "added": _TEXT, "left": _TEXT})


def _findings() -> dict[str, Any]:
    return {
        **_object(
            {"counts": {"type": "object"}, "changes": {"type": "array"}, "findings": {"type": "array"}}
        ),
        "description": "As in the findings document: gangplan schema print findings.",
    }


def _waiver() -> dict[str, Any]:
    change = {"enum": ["added", "changed", "removed", "expired"]}
    return _object(
        {"change": change, **dict.fromkeys(("name", "rule", "until", "approver", "reason"), _TEXT)}
    )


def _reach() -> dict[str, Any]:
    counts = dict.fromkeys(("updatedRuns", "standingObjects", "newFindings"), _COUNT)
    changed = _list(_object({"field": _TEXT, "line": _COUNT, "column": _COUNT}))
    names = {"file": _TEXT, "changed": changed, "clusters": _TEXTS, "teams": _TEXTS}
    return _object({**names, "retrained": _total(), **counts}, ("changed",))


def _changed_object() -> dict[str, Any]:
    field = _object({"path": _TEXTS, "meaning": _TEXT, "before": {}, "after": {}}, ("before", "after"))
    names = ("cluster", "kind", "namespace", "name", "team", "job", "file", "source")
    change = {"enum": ["added", "removed", "changed"]}
    return _object({"change": change, **dict.fromkeys(names, _TEXT), "fields": _list(field)})


def _meaning() -> dict[str, Any]:
    return _object(
        {
            **dict.fromkeys(("meaning", "field", "before", "after"), _TEXT),
            **dict.fromkeys(("kinds", "teams", "clusters"), _TEXTS),
            **dict.fromkeys(("objects", "runs"), _COUNT),
        }
    )


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}
