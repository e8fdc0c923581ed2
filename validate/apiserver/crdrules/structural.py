"""Structural schemas of CRDs: the CEL types that rules see, and values as rules see them.

Source: apiserver v0.34, pkg/cel/common/{schemas,valuesunstructured,maplist}.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from gangplan.cel import types
from gangplan.cel.clock import parse_cel_timestamp, parse_go_duration
from gangplan.cel.errors import EvalError
from gangplan.cel.types import ObjectType, Type
from gangplan.validate.apiserver.crdrules.names import escape_crd_property_name, list_crd_property_spellings

StructuralSchema = Mapping[str, Any]

INT_OR_STRING_KEY = "x-kubernetes-int-or-string"
EMBEDDED_KEY = "x-kubernetes-embedded-resource"
LIST_TYPE_KEY, LIST_MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
VALIDATIONS_KEY = "x-kubernetes-validations"
_TEXT: StructuralSchema = {"type": "string"}
_METADATA: StructuralSchema = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_FORMATS = {
    "byte": types.BYTES,
    "duration": types.DURATION,
    "date": types.TIMESTAMP,
    "date-time": types.TIMESTAMP,
}
_SCALARS = {"boolean": types.BOOL, "number": types.DOUBLE, "integer": types.INT}


def build_crd_root_schema(schema: StructuralSchema) -> StructuralSchema:
    """Return the schema of a resource with the fields that every rule may use: apiVersion, kind, the name."""
    known = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
    return {**schema, "properties": {**(schema.get("properties") or {}), **known}}


def build_cel_type_of_crd_schema(
    schema: StructuralSchema, name: str = "selfType", is_root: bool = False
) -> Type | None:
    """Return the CEL type of a schema, or None if rules cannot see such values.

    `name` distinguishes object types: two with the same name are one type to the checker.
    """
    if schema.get(INT_OR_STRING_KEY):
        return types.DYN
    if is_root:
        schema = build_crd_root_schema(schema)
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        inner = (
            build_cel_type_of_crd_schema(items, f"{name}.@idx", bool(items.get(EMBEDDED_KEY)))
            if isinstance(items, dict)
            else None
        )
        return types.list_of(inner) if inner is not None else None
    if kind == "object":
        return _build_cel_type_of_crd_object(schema, name)
    if kind == "string":
        return _FORMATS.get(str(schema.get("format")), types.STRING)
    return _SCALARS.get(str(kind))


def _build_cel_type_of_crd_object(schema: StructuralSchema, name: str) -> Type | None:
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        inner = build_cel_type_of_crd_schema(more, f"{name}.@elem", bool(more.get(EMBEDDED_KEY)))
        return types.map_of(types.STRING, inner) if inner is not None else None
    fields: dict[str, Type] = {}
    for key, value in (schema.get("properties") or {}).items():
        identifier = escape_crd_property_name(key)
        found = build_cel_type_of_crd_schema(value, f"{name}.{key}", bool(value.get(EMBEDDED_KEY)))
        if identifier is not None and found is not None:
            fields |= dict.fromkeys(list_crd_property_spellings(key), found)
    return ObjectType(name, fields=fields)


def convert_crd_value_to_cel(value: Any, schema: StructuralSchema, is_root: bool = False) -> Any:
    """Return a value as rules see it: fields by identifier, formats as their types.

    Raises EvalError if it does not fit.
    """
    if value is None or schema.get(INT_OR_STRING_KEY):
        return value
    if is_root or schema.get(EMBEDDED_KEY):
        schema = build_crd_root_schema(schema)
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        if isinstance(more, dict):
            return {key: convert_crd_value_to_cel(item, more) for key, item in value.items()}
        return {
            name: inner
            for key, item in value.items()
            for inner in [convert_crd_value_to_cel(item, properties.get(key, {}))]
            for name in list_crd_property_spellings(key)
        }
    if isinstance(value, list):
        items = schema.get("items")
        return [convert_crd_value_to_cel(item, items) for item in value] if isinstance(items, dict) else value
    if isinstance(value, str):
        return _convert_crd_text_to_cel(value, str(schema.get("format")))
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _convert_crd_text_to_cel(value: str, format: str) -> Any:
    if format == "duration":
        return parse_go_duration(value)
    if format == "date-time":
        return parse_cel_timestamp(value)
    if format == "date":
        return parse_cel_timestamp(f"{value}T00:00:00Z")
    if format == "byte":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as wrong:
            raise EvalError(f"Invalid byte formatted string {value}: {wrong}") from wrong
    return value


def align_old_crd_value(old: Any, new: Any, schema: StructuralSchema) -> Any:
    """Return the old value with its sets and keyed lists in the order of the new one.

    Their order has no meaning, so `self == oldSelf` holds for them, as in the API server.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        inner = more if isinstance(more, dict) else {}
        return {
            key: align_old_crd_value(item, new.get(key), properties.get(key, inner))
            for key, item in old.items()
        }
    if not isinstance(old, list) or not isinstance(new, list):
        return old
    items: StructuralSchema = schema.get("items") or {}
    if schema.get(LIST_TYPE_KEY) not in ("set", "map") or len(old) != len(new):
        return old
    keys = schema.get(LIST_MAP_KEYS)
    left, result = list(old), []
    for item in new:
        index = next((at for at, one in enumerate(left) if has_same_list_map_keys(one, item, keys)), None)
        if index is None:
            return old
        result.append(align_old_crd_value(left.pop(index), item, items))
    return result


def has_same_list_map_keys(one: Any, other: Any, keys: Any) -> bool:
    """Return whether two entries of a keyed list have the same keys, or are equal if there are no keys."""
    if not keys:
        return bool(one == other)
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return all(key in one and key in other and one[key] == other[key] for key in keys)
