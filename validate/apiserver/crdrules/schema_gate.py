"""The structural schema of an imported CRD as JSON Schema (draft 2020-12), and the engine that uses it.

Source: kube-openapi pkg/validation/validate, apiextensions-apiserver v0.34, pkg/apiserver/validation. Only
the structural part decides which fields are known; allOf, anyOf, oneOf and not add conditions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gangplan.findings import UNKNOWN_FIELD
from gangplan.re2 import PatternError, UnknownScriptError, compile_search
from gangplan.validate.apiserver.crdrules.formats import CRD_FORMATS, find_format_name
from gangplan.validate.apiserver.crdrules.structural import (
    EMBEDDED_KEY,
    INT_OR_STRING_KEY,
    LIST_MAP_KEYS,
    LIST_TYPE_KEY,
    StructuralSchema,
)
from gangplan.validate.apiserver.defaulting.paths import copy_object_for_defaulting
from gangplan.validate.apiserver.defaulting.structural import fill_structural_object_defaults
from gangplan.validate.apiserver.schema import CompiledSchema
from gangplan.validate.apiserver.schema_lists import find_keyed_lists_in_schema
from gangplan.validate.apiserver.schema_messages import format_options
from gangplan.validate.problems import Problem

PRESERVE = "x-kubernetes-preserve-unknown-fields"
# Keywords that mean the same in JSON Schema.
_KEPT = (
    "type",
    "enum",
    "required",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
)
# The meaning of int-or-string, written out as generators of CRDs do.
_EITHER = [{"type": "integer"}, {"type": "string"}]
_NAME = {"type": ["string", "null"]}
_TEXTS = {"type": ["object", "null"], "additionalProperties": _NAME}
_METADATA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": _NAME,
        "generateName": _NAME,
        "namespace": _NAME,
        "labels": _TEXTS,
        "annotations": _TEXTS,
    },
}
_IDENTITY: dict[str, dict[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": _METADATA,
}
# A server reads a whole number beyond these as a floating-point one, which is not of type integer.
_LEAST, _MOST = -(2**63), 2**63 - 1


class ImportedEngine(CompiledSchema):
    """The engine of a kind that the workspace imported.

    As on a server, it fills in defaults before it checks.
    """

    def __init__(self, schema: dict[str, Any], minor: int, has_status: bool = False) -> None:
        import jsonschema_rs  # 20 ms: only a command that validates pays for it

        self.schema = convert_crd_schema_to_json_schema(schema, minor)
        self._has_status = has_status
        self._structural = schema
        checks = {name: check for name, (_, check) in CRD_FORMATS.items()}
        self._validator = jsonschema_rs.Draft202012Validator(
            self.schema, formats=checks, validate_formats=True, keywords={"pattern": _Pattern}
        )
        self._keyed = find_keyed_lists_in_schema(self.schema, {}, {})

    def accepts(self, body: dict[str, Any], is_shown: bool = False) -> bool:
        """Return whether an object with its defaults has no problems.

        `is_shown` is about the object without defaults, so it is ignored.
        """
        return super().accepts(self._filled(body)) or ("status" in body and not self.problems(body))

    def problems(self, body: dict[str, Any]) -> list[Problem]:
        """Return all problems of an object with its defaults, in the order of the path."""
        found = super().problems(self._filled(body))
        return [one for one in found if not (self._has_status and _is_dropped_status_problem(one))]

    def _filled(self, body: dict[str, Any]) -> dict[str, Any]:
        filled: dict[str, Any] = copy_object_for_defaulting(body)
        fill_structural_object_defaults(filled, self._structural)
        return filled

    def _other_minor(self, problem: Problem, schema_path: list[str | int]) -> Problem:
        return problem


def _is_dropped_status_problem(problem: Problem) -> bool:
    """Return whether a problem is about a status that a server drops.

    The server still refuses unknown fields in it.
    """
    return problem.path[:1] == ("status",) and problem.clue.kind != UNKNOWN_FIELD


class ValueEngine:
    """The check of a part of a schema, for values within the schema itself: defaults. It fills in nothing."""

    def __init__(self, schema: StructuralSchema, minor: int) -> None:
        import jsonschema_rs  # 20 ms: only a command that validates pays for it

        checks = {name: check for name, (_, check) in CRD_FORMATS.items()}
        self._validator = jsonschema_rs.Draft202012Validator(
            convert_crd_schema_to_json_schema(schema, minor, False),
            formats=checks,
            validate_formats=True,
            keywords={"pattern": _Pattern},
        )

    def wrong(self, value: Any) -> str:
        """Return the first thing that is wrong with a value, or ""."""
        error = next(iter(self._validator.iter_errors(value)), None)
        return "" if error is None else str(error.message)


class _Pattern:
    """`pattern` as Go reads it. An invalid pattern refuses nothing: no server would have accepted the CRD."""

    def __init__(self, parent: Any, value: Any, path: Any) -> None:
        try:
            self._search = compile_search(str(value))
        except (PatternError, UnknownScriptError):
            self._search = compile_search("")

    def validate(self, instance: Any) -> None:
        """Check a value; raises ValueError for a text that does not match."""
        if isinstance(instance, str) and self._search(instance) is None:
            raise ValueError("the text does not match")


def convert_crd_schema_to_json_schema(
    schema: StructuralSchema, minor: int, is_root: bool = True
) -> dict[str, Any]:
    """Return a structural schema as JSON Schema that refuses unknown fields."""
    out = _convert_crd_value_constraints(schema, minor)
    properties = {
        name: convert_crd_schema_to_json_schema(inner, minor, False)
        for name, inner in (schema.get("properties") or {}).items()
    }
    is_open = schema.get(PRESERVE) or schema.get(EMBEDDED_KEY)
    if is_root or schema.get(EMBEDDED_KEY):
        properties |= _IDENTITY
    if properties:
        out["properties"] = properties
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        out["additionalProperties"] = convert_crd_schema_to_json_schema(more, minor, False)
    elif schema.get("type") == "object" and not is_open and more is not True:
        out["additionalProperties"] = False
    if isinstance(schema.get("items"), dict):
        out["items"] = convert_crd_schema_to_json_schema(schema["items"], minor, False)
    if schema.get(INT_OR_STRING_KEY):
        out["type"] = ["integer", "string"]
    if schema.get("type") == "integer" or schema.get(INT_OR_STRING_KEY):
        out["minimum"] = max(out.get("minimum", _LEAST), _LEAST)
        out["maximum"] = min(out.get("maximum", _MOST), _MOST)
    if schema.get("nullable") and "type" in out:
        out["type"] = [*([out["type"]] if isinstance(out["type"], str) else out["type"]), "null"]
    if schema.get(LIST_MAP_KEYS):
        out[LIST_MAP_KEYS] = schema[LIST_MAP_KEYS]
    if schema.get(LIST_TYPE_KEY) == "set":
        out["uniqueItems"] = True
    if is_root:
        out["required"] = sorted({*out.get("required", ()), "apiVersion", "kind", "metadata"})
    return out


def _convert_crd_value_constraints(schema: StructuralSchema, minor: int) -> dict[str, Any]:
    """Return what a schema requires of values, apart from their fields and entries."""
    out: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    for name in ("exclusiveMinimum", "exclusiveMaximum"):  # flags in OpenAPI 3.0
        flag = out.pop(name, False)
        bound = name.removeprefix("exclusive").lower()
        if flag is True and bound in out:
            out[name] = out.pop(bound)
    rules = list(_iterate_crd_schema_conditions(schema, minor))
    # A server does not check formats of numbers: it accepts 2147483648 as an int32.
    format = find_format_name(str(schema.get("format") or ""), minor)
    if format is not None and schema.get("type") in (None, "string"):
        rules.append({"x-says": CRD_FORMATS[format][0], "format": format})
    if rules and schema.get("nullable"):
        out["if"], out["else"] = {"type": "null"}, {"allOf": rules}
    elif rules:
        out["allOf"] = rules
    return out


def _iterate_crd_schema_conditions(schema: StructuralSchema, minor: int) -> Iterator[dict[str, Any]]:
    """Yield the conditions of allOf, anyOf, oneOf and not, each with its description."""
    for part in schema.get("allOf") or ():
        if part.get("anyOf") != _EITHER or len(part) > 1:
            yield _convert_nested_crd_schema(part, minor)
    for name, words in (("anyOf", "at least one"), ("oneOf", "exactly one")):
        parts = schema.get(name)
        if parts and parts != _EITHER:
            says = f"{words} of these must hold: {format_options(map(_describe_crd_schema_condition, parts))}"
            yield {"x-says": says, name: [_convert_nested_crd_schema(part, minor) for part in parts]}
    if schema.get("not"):
        says = f"this must not hold: {_describe_crd_schema_condition(schema['not'])}"
        yield {"x-says": says, "not": _convert_nested_crd_schema(schema["not"], minor)}


def _convert_nested_crd_schema(schema: StructuralSchema, minor: int) -> dict[str, Any]:
    """Return a schema within allOf, anyOf, oneOf or not: it adds conditions and makes no field unknown."""
    out = _convert_crd_value_constraints(schema, minor)
    if schema.get("properties"):
        out["properties"] = {
            name: _convert_nested_crd_schema(inner, minor) for name, inner in schema["properties"].items()
        }
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            out[name] = _convert_nested_crd_schema(schema[name], minor)
    return out


def _describe_crd_schema_condition(schema: StructuralSchema) -> str:
    """Describe a condition briefly."""
    if set(schema) == {"required"}:
        return " and ".join(schema["required"]) + (" is set" if len(schema["required"]) == 1 else " are set")
    if set(schema) == {"enum"}:
        return f"it is {' or '.join(map(str, schema['enum']))}"
    return json.dumps(schema, sort_keys=True, ensure_ascii=False)
