"""Schemas that a server refuses in a CRD: those that are not structural, and keyed lists without keys.

Source: apiextensions-apiserver v0.34, pkg/apiserver/schema/{validation,complete}.go and
ValidateCustomResourceDefinitionOpenAPISchema of pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.re2 import PatternError, UnknownScriptError, compile_search
from gangplan.validate.apiserver.crdrules.structural import (
    EMBEDDED_KEY,
    INT_OR_STRING_KEY,
    LIST_MAP_KEYS,
    LIST_TYPE_KEY,
    VALIDATIONS_KEY,
    StructuralSchema,
)

Place = tuple[str | int, ...]
Found = Iterator[tuple[Place, str]]
PRESERVE, MAP_TYPE = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-map-type"
_EITHER = [{"type": "integer"}, {"type": "string"}]
_NESTED = ("allOf", "anyOf", "oneOf")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
# Keywords that a schema in allOf, anyOf, oneOf or not must not have.
_STRUCTURE = (
    *("type", "additionalProperties", "default", "title", "description", "nullable"),
    *(PRESERVE, EMBEDDED_KEY, INT_OR_STRING_KEY, LIST_MAP_KEYS, LIST_TYPE_KEY, MAP_TYPE, VALIDATIONS_KEY),
)
_NAMED = frozenset(("name", "generateName"))
_REASONS = ("FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate")


def check_structural_schema(schema: StructuralSchema) -> Found:
    """Yield what a server refuses in the schema of a version: the path in it, and the mistake there."""
    yield from _check_crd_schema_structure(schema, (), "root")
    yield from _check_crd_openapi_schema(schema, (), is_root=True)
    yield from _check_crd_condition_fields(schema, schema, ())


# --- structural ------------------------------------------------------------------------------------------


def _check_crd_schema_structure(schema: StructuralSchema, at: Place, level: str) -> Found:
    kind = schema.get("type") or ""
    is_either, is_open, is_embedded = (
        bool(schema.get(name)) for name in (INT_OR_STRING_KEY, PRESERVE, EMBEDDED_KEY)
    )
    if is_embedded and kind != "object":
        yield (*at, "type"), f"{EMBEDDED_KEY} needs type: object"
    elif not kind and not is_either and not is_open:
        yield at, "it has no type, so the schema is not structural"
    if level == "root" and kind not in ("", "object"):
        yield (*at, "type"), "the type of an object is object"
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield at, "a list has no items: what its entries are"
    if is_either and (is_open or is_embedded):
        yield (*at, INT_OR_STRING_KEY), f"it excludes {PRESERVE if is_open else EMBEDDED_KEY}"
    more = schema.get("additionalProperties")
    if more is not None and (level == "root" or is_embedded):
        yield (*at, "additionalProperties"), "it is not allowed at the top of an object"
    if is_embedded and not is_open and not schema.get("properties"):
        yield at, f"{EMBEDDED_KEY} needs properties, or {PRESERVE}: true"
    if level == "root" or is_embedded:
        yield from _check_crd_identity_fields(schema, at, level)
    yield from _check_crd_value_conditions(
        schema, at, schema.get("anyOf") == _EITHER, _begins_with_int_or_string(schema)
    )
    for name, inner in (schema.get("properties") or {}).items():
        if not (name == "metadata" and level == "root"):
            yield from _check_crd_schema_structure(inner, (*at, "properties", name), "field")
    if isinstance(schema.get("items"), dict):
        yield from _check_crd_schema_structure(schema["items"], (*at, "items"), "item")
    if isinstance(more, dict):
        yield from _check_crd_schema_structure(more, (*at, "additionalProperties"), "field")


def _begins_with_int_or_string(schema: StructuralSchema) -> bool:
    parts = schema.get("allOf") or [{}]
    return bool(parts[0].get("anyOf") == _EITHER)


def _check_crd_identity_fields(schema: StructuralSchema, at: Place, level: str) -> Found:
    """Check what a schema requires of apiVersion, kind and metadata."""
    fields: dict[str, Any] = schema.get("properties") or {}
    for name, kind in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in fields and fields[name].get("type") != kind:
            yield (*at, "properties", name, "type"), f"the type of {name} is {kind}"
    metadata = fields.get("metadata")
    if level != "root" or not isinstance(metadata, dict):
        return
    said = {key for key, value in metadata.items() if value not in (None, False, "", [], {})}
    said -= {"type", "default", "description", "title", "example", "externalDocs"}
    if said - {"properties"} or not (metadata.get("properties") or {}).keys() <= _NAMED:
        yield (*at, "properties", "metadata"), "of metadata, only name and generateName may be restricted"


def _check_crd_value_conditions(
    schema: StructuralSchema, at: Place, skips_any: bool, skips_first: bool
) -> Found:
    """Check conditions, and whether their patterns are valid."""
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_search(str(pattern))
        except (PatternError, UnknownScriptError) as wrong:
            yield (*at, "pattern"), f"the pattern cannot be read: {wrong}"
    for name in _NESTED:
        for index, part in enumerate(schema.get(name) or () if not (name == "anyOf" and skips_any) else ()):
            is_first = name == "allOf" and index == 0 and skips_first
            yield from _check_nested_crd_schema(part, (*at, name, index), is_first)
    if isinstance(schema.get("not"), dict):
        yield from _check_nested_crd_schema(schema["not"], (*at, "not"))


def _check_nested_crd_schema(part: StructuralSchema, at: Place, skips_any: bool = False) -> Found:
    yield from _check_crd_value_conditions(part, at, skips_any, False)
    for name in _STRUCTURE:
        if part.get(name) not in (None, False, "", [], {}) or (name == "default" and name in part):
            yield (
                (*at, name),
                f"{name} is not allowed in {_find_enclosing_keyword(at)}: the schema would not be structural",
            )
    for name, inner in (part.get("properties") or {}).items():
        yield from _check_nested_crd_schema(inner, (*at, "properties", name))
        if name == "metadata":
            yield (*at, "properties", name), f"metadata is not allowed in {_find_enclosing_keyword(at)}"
    if isinstance(part.get("items"), dict):
        yield from _check_nested_crd_schema(part["items"], (*at, "items"))


def _find_enclosing_keyword(at: Place) -> str:
    return str(next(step for step in reversed(at) if step in (*_NESTED, "not")))


def _check_crd_condition_fields(part: StructuralSchema, whole: StructuralSchema, at: Place) -> Found:
    """Check fields that conditions at the top name and the object does not have; servers look no deeper."""
    for name in _NESTED:
        for index, one in enumerate(part.get(name) or ()):
            yield from _check_crd_declared_fields(one, whole, (*at, name, index))
    if isinstance(part.get("not"), dict):
        yield from _check_crd_declared_fields(part["not"], whole, (*at, "not"))


def _check_crd_declared_fields(part: StructuralSchema, whole: StructuralSchema, at: Place) -> Found:
    yield from _check_crd_condition_fields(part, whole, at)
    fields = whole.get("properties") or {}
    for name, inner in (part.get("properties") or {}).items():
        if name not in fields:
            yield (
                (*at, "properties", name),
                f"no field {name} is declared outside of {_find_enclosing_keyword(at)}",
            )
        else:
            yield from _check_crd_declared_fields(inner, fields[name], (*at, "properties", name))
    if isinstance(part.get("items"), dict):
        if isinstance(whole.get("items"), dict):
            yield from _check_crd_declared_fields(part["items"], whole["items"], (*at, "items"))
        else:
            yield (*at, "items"), f"no items are declared outside of {_find_enclosing_keyword(at)}"


# --- what is more than a structure -----------------------------------------------------------------------


def _check_crd_openapi_schema(
    schema: StructuralSchema, at: Place, is_root: bool = False, no_default: bool = False
) -> Found:
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield (*at, name), f"{name} is not supported in CRDs"
    if schema.get("uniqueItems"):
        yield (*at, "uniqueItems"), f"it cannot be true; write {LIST_TYPE_KEY}: set"
    if is_root and schema.get("nullable"):
        yield (*at, "nullable"), "an object cannot be null"
    if no_default and schema.get("default") is not None:
        yield (*at, "default"), "what the server fills in itself has no default"
    more = schema.get("additionalProperties")
    if schema.get("properties") and (more is False or isinstance(more, dict)):
        yield (*at, "additionalProperties"), "a mapping has properties or additionalProperties, not both"
    if schema.get(PRESERVE) is False:
        yield (*at, PRESERVE), "it is true, or not there"
    yield from _check_crd_list_types(schema, at)
    yield from _check_crd_validation_rules(schema, at)
    for name, inner in (schema.get("properties") or {}).items():
        of_server = is_root and name in ("metadata", "apiVersion", "kind")
        yield from _check_crd_openapi_schema(inner, (*at, "properties", name), False, no_default or of_server)
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            yield from _check_crd_openapi_schema(schema[name], (*at, name), False, no_default)
    for name in _NESTED:
        for index, part in enumerate(schema.get(name) or ()):
            yield from _check_crd_openapi_schema(part, (*at, name, index), False, no_default)


def _check_crd_list_types(schema: StructuralSchema, at: Place) -> Found:
    kind, of_map, of_list = schema.get("type"), schema.get(MAP_TYPE), schema.get(LIST_TYPE_KEY)
    if of_map is not None and (kind != "object" or of_map not in ("atomic", "granular")):
        yield (*at, MAP_TYPE), "it is atomic or granular, and the type is object"
    keys = schema.get(LIST_MAP_KEYS) or []
    if keys and of_list != "map":
        yield (*at, LIST_MAP_KEYS), f"keys need {LIST_TYPE_KEY}: map"
    if of_list is None:
        return
    if kind != "array" or of_list not in ("atomic", "set", "map"):
        yield (*at, LIST_TYPE_KEY), "it is atomic, set or map, and the type is array"
    items = schema.get("items")
    if not isinstance(items, dict):
        return
    if of_list in ("set", "map") and items.get("nullable"):
        yield (*at, "items", "nullable"), f"entries of a {of_list} cannot be null"
    if of_list == "set":
        is_open = items.get("type") == "object" and items.get(MAP_TYPE) != "atomic"
        if is_open or (items.get("type") == "array" and items.get(LIST_TYPE_KEY, "atomic") != "atomic"):
            yield (*at, "items"), "entries of a set are scalars or atomic"
    if of_list == "map":
        yield from _check_crd_list_map_keys(items, keys, at)


def _check_crd_list_map_keys(items: StructuralSchema, keys: list[Any], at: Place) -> Found:
    if not keys:
        yield at, f"a list of type map needs {LIST_MAP_KEYS}"
    if items.get("type") != "object":
        yield (*at, "items"), "entries of a list of type map are objects"
        return
    fields = items.get("properties") or {}
    for key in keys:
        field = fields.get(key)
        if field is None or keys.count(key) > 1:
            yield (*at, LIST_MAP_KEYS), f"{key} is not a field of the entries, or is there twice"
        elif field.get("type") in ("array", "object") or field.get("nullable"):
            yield (*at, "items", "properties", key), f"the key {key} is a scalar and cannot be null"
        elif key not in (items.get("required") or ()) and field.get("default") is None:
            yield (*at, "items", "properties", key), f"the key {key} must be required or have a default"


def _check_crd_validation_rules(schema: StructuralSchema, at: Place) -> Found:
    for index, rule in enumerate(schema.get(VALIDATIONS_KEY) or ()):
        place = (*at, VALIDATIONS_KEY, index)
        text, message = str(rule.get("rule") or ""), str(rule.get("message") or "")
        if not text.strip():
            yield (*place, "rule"), "a rule has no expression"
        if (message and not message.strip()) or "\n" in message.strip():
            yield (*place, "message"), "a message is one line, and not empty"
        elif "\n" in text.strip() and not message:
            yield place, "a rule of several lines needs a message"
        for name in ("messageExpression", "fieldPath"):
            value = rule.get(name)
            if value and (not value.strip() or (name == "fieldPath" and "\n" in value)):
                yield (*place, name), f"{name} is not empty and one line"
        if rule.get("reason") not in (None, *_REASONS):
            yield (*place, "reason"), f"the reason is none of {', '.join(_REASONS)}"
