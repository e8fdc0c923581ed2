"""Compiling rules, and evaluating them at each place of an object that their path leads to.

Source: apiextensions-apiserver v0.34, pkg/apiserver/schema/cel/{compilation,validation}.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from gangplan.cel import types
from gangplan.cel.admission import find_expressions_minor
from gangplan.cel.ast import Ident, walk_nodes
from gangplan.cel.environment import Environment
from gangplan.cel.errors import BudgetError, EvalError
from gangplan.cel.kept import KeptPrograms
from gangplan.cel.program import CelProgram
from gangplan.cel.types import Type
from gangplan.cel.values import OPTIONAL_NONE, Optional
from gangplan.findings import FieldPath
from gangplan.records import dataclass
from gangplan.validate.apiserver.crdrules.structural import (
    StructuralSchema,
    align_old_crd_value,
    convert_crd_value_to_cel,
    has_same_list_map_keys,
)
from gangplan.validate.memo import digest_memo_key

# How many values one rule remembers that satisfy it; and after how many more misses than hits it stops
# looking them up: a whole spec hardly ever comes again.
_MOST, _PATIENCE = 256, 32
# apiserver v0.34, pkg/apis/cel/config.go
PER_CALL, PER_OBJECT, LONGEST_MESSAGE = 1_000_000, 10_000_000, 5 * 1024
_TOO_DEAR = (
    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call"
    " cost exceeds limit for rule:"
)


@dataclass(frozen=True, slots=True)
class CrdRule:
    """One rule as written.

    `path` leads to its place: fields, `[]` or `[key,key]` for the entries of a list, `{}` for the values of a
    map. `field` is a path below that, as in fieldPath (`.name`).
    """

    path: tuple[str, ...]
    text: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field: str = ""
    optional_old: bool = False


@dataclass(slots=True)
class Kept:
    """Values that satisfy a rule, as bytes, with its cost on them. The rule must read nothing else."""

    costs: dict[bytes, int] = field(default_factory=dict)
    luck: int = _PATIENCE

    def cost(self, key: bytes) -> int | None:
        """Return the cost of the rule on a value that is known to satisfy it, or None."""
        found = self.costs.get(key)
        self.luck += -1 if found is None else self.luck < _MOST
        return found

    def add(self, key: bytes, cost: int) -> None:
        """Remember a value that satisfies the rule."""
        if len(self.costs) < _MOST:
            self.costs[key] = cost


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """A rule with its programs; `schema` defines how rules see values (None: as they are)."""

    rule: CrdRule
    program: CelProgram
    message: CelProgram | None
    uses_old: bool
    schema: StructuralSchema | None = None
    is_root: bool = False
    kept: Kept = field(default_factory=Kept)


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that an object breaks: where, and the server's message."""

    path: FieldPath
    message: str
    rule: CrdRule
    reason: str = ""


def compile_crd_rule(
    rule: CrdRule,
    minor: int,
    self_type: Type = types.DYN,
    schema: StructuralSchema | None = None,
    is_new: bool = False,
    programs: KeptPrograms | None = None,
) -> CompiledRule:
    """Compile a rule for Kubernetes 1.`minor`.

    With `is_new`, as in a CRD that is applied now, the rule may use only what the minor before has.
    `programs` are those that earlier commands compiled. Raises CompileError if the server would refuse the
    CRD.
    """
    old = types.optional_of(self_type) if rule.optional_old else self_type
    number = find_expressions_minor(minor) if is_new else minor
    environment = Environment(minor=number, variables={"self": self_type, "oldSelf": old})
    make = partial(programs.compile, environment, composed={}) if programs else environment.compile
    program = make(rule.text)
    message = make(rule.message_expression) if rule.message_expression else None
    uses_old = "oldSelf" in rule.text and any(
        isinstance(node, Ident) and node.name == "oldSelf" for node in walk_nodes(program.node)
    )
    return CompiledRule(rule, program, message, uses_old, schema, not rule.path)


def find_crd_rule_breaches(
    rules: Sequence[CompiledRule], body: Any, old: Any = None, only_transitions: bool = False
) -> list[Breach]:
    """Return the rules that an object breaks, in their order; with `old` also those about a change.

    `only_transitions` leaves out rules that do not use the old value.
    """
    found: list[Breach] = []
    left = PER_OBJECT
    for compiled in rules:
        if only_transitions and not compiled.uses_old:
            continue
        if old is None and compiled.uses_old and not compiled.rule.optional_old:
            continue  # there is no old object
        for path, value, before in _iterate_rule_places(body, old, compiled.rule.path, ()):
            if value is None or (compiled.uses_old and before is None and not compiled.rule.optional_old):
                continue
            breach, cost = _evaluate_crd_rule(compiled, path, value, before, left)
            left -= cost
            if breach is not None:
                found.append(breach)
            if left < 0:
                return found
    return found


def _iterate_rule_places(
    value: Any, old: Any, way: tuple[str, ...], path: FieldPath
) -> Iterator[tuple[FieldPath, Any, Any]]:
    """Yield every place that a path leads to, with its value and its old value."""
    if not way:
        yield path, value, old
        return
    step, rest = way[0], way[1:]
    if step.startswith("["):
        keys = [key for key in step[1:-1].split(",") if key]
        before = old if isinstance(old, list) and keys else []
        for index, item in enumerate(value if isinstance(value, list) else ()):
            was = next((one for one in before if has_same_list_map_keys(one, item, keys)), None)
            yield from _iterate_rule_places(item, was, rest, (*path, index))
    elif isinstance(value, dict):
        names = list(value) if step == "{}" else [step] if step in value else []
        for name in names:
            was = old.get(name) if isinstance(old, dict) else None
            yield from _iterate_rule_places(value[name], was, rest, (*path, name))


def _evaluate_crd_rule(
    compiled: CompiledRule, path: FieldPath, value: Any, old: Any, left: int
) -> tuple[Breach | None, int]:
    """Return the breach of a rule at one place (None if there is none), and what the evaluation cost."""
    rule = compiled.rule
    key = digest_memo_key(value) if old is None and compiled.kept.luck > 0 else None
    known = compiled.kept.cost(key) if key is not None else None
    if known is not None and known <= left:
        return None, known
    try:
        activation = _build_crd_rule_activation(compiled, value, old)
        result, cost = compiled.program.measure(activation, PER_CALL)
    except BudgetError:
        said = f"{_TOO_DEAR} {rule.message.strip() or rule.text.strip()}"
        return Breach(path, said, rule), left + 1
    except EvalError as wrong:
        return Breach(path, f"{wrong} evaluating rule: {rule.message.strip() or rule.text.strip()}", rule), 0
    if cost > left:
        said = "validation failed due to running out of cost budget, no further validation rules will be run"
        return Breach(path, said, rule), left + 1
    if result is True:
        if key is not None:
            compiled.kept.add(key, cost)
        return None, cost
    message = _format_crd_rule_message(compiled, activation)
    return Breach((*path, *parse_rule_field_path(rule.field)), message, rule, rule.reason), cost


def _build_crd_rule_activation(compiled: CompiledRule, value: Any, old: Any) -> dict[str, Any]:
    schema = compiled.schema
    if schema is not None:
        old = align_old_crd_value(old, value, schema) if old is not None else None
        value = convert_crd_value_to_cel(value, schema, compiled.is_root)
        old = convert_crd_value_to_cel(old, schema, compiled.is_root) if old is not None else None
    if compiled.rule.optional_old:
        return {"self": value, "oldSelf": OPTIONAL_NONE if old is None else Optional(True, old)}
    return {"self": value, "oldSelf": old}


def _format_crd_rule_message(compiled: CompiledRule, activation: dict[str, Any]) -> str:
    """Return the message of a rule: its messageExpression, its message, or the rule itself."""
    if compiled.message is not None:
        try:
            said = compiled.message.evaluate(activation)
        except EvalError:
            said = ""
        text = said.strip() if isinstance(said, str) else ""
        if text and "\n" not in text and len(text.encode()) <= LONGEST_MESSAGE:
            return text
    rule = compiled.rule
    return rule.message.strip() or f"failed rule: {rule.text.strip()}"


_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


def parse_rule_field_path(field: str) -> FieldPath:
    """Return the steps of a fieldPath: `.spec.names['a.b']` -> (spec, names, a.b)."""
    return tuple(plain or re.sub(r"\\(.)", r"\1", quoted) for plain, quoted in _STEP.findall(field))
