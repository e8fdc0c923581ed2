"""The defaults of a structural schema, filled into an object as the API server does when it reads one.

Source: apiextensions-apiserver v0.34, pkg/apiserver/schema/defaulting/{algorithm,prunenulls}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.validate.apiserver.defaulting.paths import copy_object_for_defaulting

Schema = Mapping[str, Any]
# Type and name have no defaults; the status is the controller's, and a create drops it.
_NOT_FILLED = frozenset(("apiVersion", "kind", "metadata", "status"))


def fill_structural_object_defaults(body: dict[str, Any], schema: Schema) -> None:
    """Set what is missing in a custom resource, in place; replace or remove nulls that are not allowed."""
    properties = schema.get("properties") or {}
    own = {name: field for name, field in properties.items() if name not in _NOT_FILLED}
    _fill_structural_schema_fields(body, {"properties": own})


def _fill_structural_schema_defaults(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        _fill_structural_schema_fields(value, schema)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        items = schema["items"]
        for index, entry in enumerate(value):
            if _is_replaced(entry, items):
                value[index] = copy_object_for_defaulting(items["default"])
            _fill_structural_schema_defaults(value[index], items)


def _fill_structural_schema_fields(value: dict[str, Any], schema: Schema) -> None:
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for name, field in properties.items():
        if name not in value and field.get("default") is not None:
            value[name] = copy_object_for_defaulting(field["default"])
    for name in list(value):
        field = properties.get(name, more)
        if not isinstance(field, dict):
            continue
        if _is_replaced(value[name], field):
            value[name] = copy_object_for_defaulting(field["default"])
        elif value[name] is None and not field.get("nullable"):
            del value[name]
            continue
        _fill_structural_schema_defaults(value[name], field)


def _is_replaced(value: Any, schema: Schema) -> bool:
    """Return whether a value is a null that a default replaces."""
    return value is None and not schema.get("nullable") and schema.get("default") is not None
