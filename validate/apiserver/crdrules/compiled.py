"""What a server refuses in a CRD when it compiles its rules and validates its defaults against their schemas.

Source: apiextensions-apiserver v0.34, pkg/apis/apiextensions/validation/validation.go (rules) and
pkg/apiserver/schema/defaulting/validation.go. Not covered: the maximum cost of rules, which a server
estimates from the lengths that a schema allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gangplan.cel import types
from gangplan.cel.errors import CompileError
from gangplan.validate.apiserver.crdrules.imported import compile_placed_crd_rules
from gangplan.validate.apiserver.crdrules.rules import (
    CompiledRule,
    find_crd_rule_breaches,
    parse_rule_field_path,
)
from gangplan.validate.apiserver.crdrules.schema_gate import ValueEngine
from gangplan.validate.apiserver.crdrules.structural import LIST_TYPE_KEY, VALIDATIONS_KEY, StructuralSchema

Place = tuple[str | int, ...]
Found = Iterator[tuple[Place, str]]
_FIELD_PATH = re.compile(r"(\.[^.\[\]]+|\['([^'\\]|\\.)*'\])+")


def check_schema_rules(schema: StructuralSchema, minor: int) -> Found:
    """Yield the path in the schema and the mistake there. Raises CompileError if a rule does not compile."""
    for rule, node, place in compile_placed_crd_rules(schema, minor):
        yield from _check_compiled_crd_rule(rule, node, place, schema)
    yield from _check_crd_schema_defaults(schema, (), minor)


def _check_compiled_crd_rule(
    rule: CompiledRule, node: StructuralSchema, place: Place, schema: StructuralSchema
) -> Found:
    if rule.program.type != types.BOOL:
        yield (*place, "rule"), "the rule is not true or false"
    if rule.message is not None and rule.message.type != types.STRING:
        yield (*place, "messageExpression"), "the message is not a text"
    if rule.uses_old and _is_crd_path_below_keyless_list(schema, place):
        told = "what was there before is not known below lists without keys"
        yield (*place, "rule"), f"oldSelf cannot be asked here: {told}"
    if rule.rule.optional_old and not rule.uses_old:
        yield (*place, "optionalOldSelf"), "the rule does not ask oldSelf"
    if rule.rule.field and not _has_crd_schema_field(rule.rule.field, node):
        yield (*place, "fieldPath"), f"fieldPath {rule.rule.field} leads to no field"


def _is_crd_path_below_keyless_list(schema: StructuralSchema, place: Place) -> bool:
    """Return whether a path in the schema is below a list without keys."""
    node: Any = schema
    for step in place:
        if step == VALIDATIONS_KEY:
            return False
        if step == "items" and isinstance(node, dict) and node.get(LIST_TYPE_KEY) != "map":
            return True
        node = node[step]
    return False


def _has_crd_schema_field(path: str, node: StructuralSchema) -> bool:
    if not _FIELD_PATH.fullmatch(path):
        return False
    for step in parse_rule_field_path(path):
        more = node.get("additionalProperties")
        inner = (node.get("properties") or {}).get(step, more)
        if not isinstance(inner, dict):
            return False
        node = inner
    return True


def _check_crd_schema_defaults(schema: StructuralSchema, at: Place, minor: int) -> Found:
    value = schema.get("default")
    if value is not None:
        place = (*at, "default")
        wrong = ValueEngine(schema, minor).wrong(value)
        if wrong:
            yield place, f"the default is not what the field holds: {wrong}"
        else:
            try:
                rules = [rule for rule, _, _ in compile_placed_crd_rules(schema, minor)]
            except CompileError:
                return
            for breach in find_crd_rule_breaches(rules, value, value)[:1]:
                yield place, f"the default breaks a rule: {breach.message}"
    for name, inner in (schema.get("properties") or {}).items():
        yield from _check_crd_schema_defaults(inner, (*at, "properties", name), minor)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _check_crd_schema_defaults(schema[name], (*at, name), minor)
