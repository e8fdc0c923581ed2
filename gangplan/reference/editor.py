"""Adapt a JSON Schema to editors: without null, with an `$id`, and with an error message for each pattern.

`patternErrorMessage` is a keyword of VS Code's JSON language service, which yaml-language-server shares;
other readers ignore it.
"""

from __future__ import annotations

from typing import Any

from gangplan.spec.base import GANGPLAN_API_VERSION
from gangplan.spec.words import PATTERN_DESCRIPTIONS

Schema = dict[str, Any]
SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"
# Maps from names to schemas.
_NAMED = ("properties", "patternProperties", "$defs")


def build_schema_id(kind: str, *parts: str) -> str:
    """Return the `$id` of a schema; two schemas have the same one only if they are the same."""
    return f"https://{'/'.join((GANGPLAN_API_VERSION, *parts, kind))}.schema.json"


def simplify_schema_for_editor(schema: Schema) -> Schema:
    """Return the schema without null and titles, with a message for each pattern.

    An optional field is simply omitted: no file writes null, and an editor that sees null as a type would
    offer it.
    """
    out = {
        key: _simplify_nested_schema_for_editor(key, value) for key, value in schema.items() if key != "title"
    }
    if "default" in out and out["default"] is None:
        del out["default"]
    if "pattern" in out:
        out["patternErrorMessage"] = f"Expected {PATTERN_DESCRIPTIONS[out['pattern']]}."
    others: list[Schema] = [one for one in out.get("anyOf", ()) if one != {"type": "null"}]
    if len(others) == 1:
        del out["anyOf"]
        return others[0] | out
    if others:
        out["anyOf"] = others
    return out


def _simplify_nested_schema_for_editor(key: str, value: Any) -> Any:
    if key in _NAMED:
        return {name: simplify_schema_for_editor(one) for name, one in value.items()}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [simplify_schema_for_editor(one) for one in value]
    if key in ("items", "additionalProperties", "propertyNames") and isinstance(value, dict):
        return simplify_schema_for_editor(value)
    return value
