"""Adapt a JSON Schema to editors: without null, with an `$id`, and with an error message for each pattern.

`patternErrorMessage` is a keyword of VS Code's JSON language service, which yaml-language-server shares;
other readers ignore it.
"""

from __future__ import annotations

from typing import Any

from gangplan.spec.base import API_VERSION
from gangplan.spec.words import FORMS

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# Maps from names to schemas.
_NAMED = ("properties", "patternProperties", "$defs")


def identity(kind: str, *parts: str) -> str:
    """Return the `$id` of a schema; two schemas have the same one only if they are the same."""
    return f"https://{'/'.join((API_VERSION, *parts, kind))}.schema.json"


def readable(schema: Schema) -> Schema:
    """Return the schema without null and titles, with a message for each pattern.

    An optional field is simply omitted: no file writes null, and an editor that sees null as a type would
    offer it.
    """
    out = {key: _inner(key, value) for key, value in schema.items() if key != "title"}
    if "default" in out and out["default"] is None:
        del out["default"]
    if "pattern" in out:
        out["patternErrorMessage"] = f"Expected {FORMS[out['pattern']]}."
    others: list[Schema] = [one for one in out.get("anyOf", ()) if one != {"type": "null"}]
    if len(others) == 1:
        del out["anyOf"]
        return others[0] | out
    if others:
        out["anyOf"] = others
    return out


def _inner(key: str, value: Any) -> Any:
    if key in _NAMED:
        return {name: readable(one) for name, one in value.items()}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [readable(one) for one in value]
    if key in ("items", "additionalProperties", "propertyNames") and isinstance(value, dict):
        return readable(value)
    return value
