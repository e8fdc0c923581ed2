"""A JSON Schema as editors show it best: without null, with a sentence for each pattern, with an identity.

`patternErrorMessage` is a keyword of VS Code's JSON language service, which yaml-language-server shares; other
readers pass over it.
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
    """The `$id` of a schema; two schemas have the same one only if they are the same."""
    return f"https://{'/'.join((API_VERSION, *parts, kind))}.schema.json"


def readable(schema: Schema) -> Schema:
    """The schema without null and titles, with a message beside each pattern.

    A field that may be left out is left out: null stands in no file, and an editor that lists it as a type
    offers it.
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
