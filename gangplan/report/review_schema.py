"""The JSON Schema of a review (`plan --base REF --format json`), published by `gangplan schema print plan`.

Fields may be added without a new version, so the schema lets unknown ones pass: readers ignore them.
"""

from __future__ import annotations

from typing import Any

from gangplan.report.review_json import REVIEW_FORMAT_VERSION

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


def build_review_json_schema() -> dict[str, Any]:
    """Return the schema, without `$schema` and title."""
    totals = _build_object_schema({"before": _build_total_schema(), "after": _build_total_schema()})
    return {
        "description": "What a change does, from a Git revision to the workspace as it stands.",
        **_build_object_schema(
            {
                "version": {
                    "const": REVIEW_FORMAT_VERSION,
                    "description": "Raised when a field changes its meaning or goes.",
                },
                "command": {"const": "plan"},
                "base": _build_object_schema(
                    {"asked": _TEXT, "commit": _TEXT, "isMergeBase": {"type": "boolean"}}
                ),
                "notes": {**_TEXTS, "description": "Sentences about the comparison itself."},
                "specs": _build_object_schema(
                    {
                        **dict.fromkeys(("new", "changed", "removed"), _TEXTS),
                        "renamed": _build_array_schema(_build_object_schema({"from": _TEXT, "to": _TEXT})),
                        "descriptions": {
                            "type": "object",
                            "additionalProperties": _TEXT,
                            "description": "Of these specs that have one, by file.",
                        },
                    },
                    optional=("descriptions",),
                ),
                "runs": _build_array_schema(_build_run_edit_schema()),
                "totals": _build_object_schema(
                    {
                        "all": totals,
                        "teams": _build_array_schema(
                            _build_object_schema({"team": _TEXT, "cluster": _TEXT, **totals["properties"]})
                        ),
                    }
                ),
                "quotas": _build_array_schema(_build_quota_schema()),
                "budgets": _build_array_schema(_build_budget_schema()),
                **{name: _build_findings_schema() for name in ("newFindings", "goneFindings")},
                "sameFindings": {"type": "object", "additionalProperties": _COUNT},
                "policies": {**_TEXTS, "description": "Policies that are newly violated."},
                "waivers": _build_array_schema(_build_waiver_schema()),
                "reach": _build_array_schema(_build_reach_schema()),
                "objects": _build_array_schema(_build_changed_object_schema()),
                "meanings": _build_array_schema(_build_meaning_schema()),
                "kinds": _build_array_schema(
                    _build_object_schema({"change": _TEXT, "kind": _TEXT, "objects": _TEXTS})
                ),
            },
            optional=("budgets",),
        ),
    }


def _build_run_edit_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            "edit": {"enum": _EDITS},
            **dict.fromkeys(("spec", "cluster", "team", "job", "run"), _TEXT),
            "waitsFor": {
                **_TEXTS,
                "description": "The runs that must be complete before it is created; of a sweep, its name.",
            },
            "goesOn": {
                **_TEXT,
                "description": "The run that continues next to the new one, if it is not over.",
            },
            "causes": {
                **_build_array_schema(
                    _build_object_schema({"file": _TEXT, "line": _COUNT, "column": _COUNT, "field": _TEXT})
                ),
                "description": "The fields of shared files that retrain a run.",
            },
            "why": {**_TEXT, "description": "The cause of a retrained run in words."},
            "keep": {**_TEXT, "description": "The steps that keep the run before instead of retraining it."},
            "before": {"anyOf": [_build_run_facts_schema(), {"type": "null"}]},
            "after": {"anyOf": [_build_run_facts_schema(), {"type": "null"}]},
        }
    )


def _build_run_facts_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            "name": _TEXT,
            "state": {"enum": ["active", "stopped", "archived"]},
            **dict.fromkeys(("workers", "ranks", "gpus", "seconds"), _COUNT),
            **dict.fromkeys(("gpuHours", "cpuHours"), _HOURS),
            "cost": {"anyOf": [_build_object_schema({"most": _TEXT, "currency": _TEXT}), {"type": "null"}]},
            **dict.fromkeys(("pool", "queue", "priority", "image"), _TEXT),
            "admission": _build_object_schema(
                {"outcome": {"enum": ["admit", "queue", "never", ""]}, "words": _TEXT}
            ),
        }
    )


def _build_total_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            "runs": _COUNT,
            "gpus": _COUNT,
            "gpuHours": _HOURS,
            "cpuHours": _HOURS,
            "cost": {"type": "object", "additionalProperties": _TEXT, "description": "By currency."},
        }
    )


def _build_quota_schema() -> dict[str, Any]:
    side = _build_object_schema(dict.fromkeys(("quota", "most", "wanted"), _TEXT))
    names = dict.fromkeys(("team", "cluster", "pool", "resource"), _TEXT)
    return _build_object_schema({**names, "before": side, "after": side})


def _build_budget_schema() -> dict[str, Any]:
    side = _build_object_schema({"amount": {**_TEXT, "description": "Empty: no budget."}, "spent": _TEXT})
    names = dict.fromkeys(("team", "cluster", "currency"), _TEXT)
    return _build_object_schema({**names, "before": side, "after": side, "added": _TEXT, "left": _TEXT})


def _build_findings_schema() -> dict[str, Any]:
    return {
        **_build_object_schema(
            {"counts": {"type": "object"}, "changes": {"type": "array"}, "findings": {"type": "array"}}
        ),
        "description": "As in the findings document: gangplan schema print findings.",
    }


def _build_waiver_schema() -> dict[str, Any]:
    change = {"enum": ["added", "changed", "removed", "expired"]}
    return _build_object_schema(
        {"change": change, **dict.fromkeys(("name", "rule", "until", "approver", "reason"), _TEXT)}
    )


def _build_reach_schema() -> dict[str, Any]:
    counts = dict.fromkeys(("updatedRuns", "standingObjects", "newFindings"), _COUNT)
    changed = _build_array_schema(_build_object_schema({"field": _TEXT, "line": _COUNT, "column": _COUNT}))
    names = {"file": _TEXT, "changed": changed, "clusters": _TEXTS, "teams": _TEXTS}
    return _build_object_schema({**names, "retrained": _build_total_schema(), **counts}, ("changed",))


def _build_changed_object_schema() -> dict[str, Any]:
    field = _build_object_schema(
        {"path": _TEXTS, "meaning": _TEXT, "before": {}, "after": {}}, ("before", "after")
    )
    names = ("cluster", "kind", "namespace", "name", "team", "job", "file", "source")
    change = {"enum": ["added", "removed", "changed"]}
    return _build_object_schema(
        {"change": change, **dict.fromkeys(names, _TEXT), "fields": _build_array_schema(field)}
    )


def _build_meaning_schema() -> dict[str, Any]:
    return _build_object_schema(
        {
            **dict.fromkeys(("meaning", "field", "before", "after"), _TEXT),
            **dict.fromkeys(("kinds", "teams", "clusters"), _TEXTS),
            **dict.fromkeys(("objects", "runs"), _COUNT),
        }
    )


def _build_object_schema(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _build_array_schema(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}
