"""Compiling the rules in the structural schema of a CRD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.cel.errors import CompileError
from gangplan.cel.types import DYN
from gangplan.validate.apiserver.crdrules.rules import CompiledRule, CrdRule, compile_crd_rule
from gangplan.validate.apiserver.crdrules.structural import (
    LIST_MAP_KEYS,
    LIST_TYPE_KEY,
    VALIDATIONS_KEY,
    StructuralSchema,
    build_cel_type_of_crd_schema,
)

Place = tuple[str | int, ...]


def compile_crd_schema_rules(schema: StructuralSchema, minor: int) -> list[CompiledRule]:
    """Return every rule in a structural schema, compiled with its types.

    Raises CompileError if a rule does not compile; servers refuse such a CRD.
    """
    return [rule for rule, _, _ in compile_placed_crd_rules(schema, minor)]


def compile_placed_crd_rules(
    schema: StructuralSchema, minor: int, is_new: bool = False
) -> Iterator[tuple[CompiledRule, StructuralSchema, Place]]:
    """Yield the compiled rules, each with the schema that contains it and the path of the rule from the top.

    Raises CompileError, with that path.
    """
    for rule, node, place in _iterate_crd_schema_rules(schema, (), ()):
        try:
            self_type = build_cel_type_of_crd_schema(node, "self", not rule.path) or DYN
            yield compile_crd_rule(rule, minor, self_type, node, is_new), node, place
        except CompileError as wrong:
            wrong.place = (*place, "rule" if wrong.text == rule.text else "messageExpression")
            raise


def _iterate_crd_schema_rules(
    schema: StructuralSchema, path: tuple[str, ...], at: Place
) -> Iterator[tuple[CrdRule, StructuralSchema, Place]]:
    """Yield rules with the schema that contains them; `at` is the path of that schema from the top."""
    for index, one in enumerate(schema.get(VALIDATIONS_KEY) or ()):
        yield _parse_crd_rule(one, path), schema, (*at, VALIDATIONS_KEY, index)
    for number, part in enumerate(schema.get("allOf") or ()):
        for index, one in enumerate(part.get(VALIDATIONS_KEY) or ()):
            yield _parse_crd_rule(one, path), schema, (*at, "allOf", number, VALIDATIONS_KEY, index)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _iterate_crd_schema_rules(inner, (*path, name), (*at, "properties", name))
    if isinstance(schema.get("items"), dict):
        keys = schema.get(LIST_MAP_KEYS) if schema.get(LIST_TYPE_KEY) == "map" else None
        yield from _iterate_crd_schema_rules(
            schema["items"], (*path, f"[{','.join(keys or ())}]"), (*at, "items")
        )
    if isinstance(schema.get("additionalProperties"), dict):
        inner = schema["additionalProperties"]
        yield from _iterate_crd_schema_rules(inner, (*path, "{}"), (*at, "additionalProperties"))


def _parse_crd_rule(one: Mapping[str, Any], path: tuple[str, ...]) -> CrdRule:
    return CrdRule(
        path,
        one["rule"],
        one.get("message") or "",
        one.get("messageExpression") or "",
        one.get("reason") or "",
        one.get("fieldPath") or "",
        bool(one.get("optionalOldSelf")),
    )
