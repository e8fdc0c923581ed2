"""Health checks for Flux, in CEL: when an object is current, and when it has failed.

Flux evaluates `inProgress`, then `failed`, then `current`, and treats an object for which none is true as in
progress (fluxcd/pkg runtime/cel, status_evaluator.go; RFC 0009). So only two expressions are written, each a
chain that ends at the first row that holds. Without `status` they cannot be evaluated, and Flux tries again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.gitops.health import (
    KSTATUS_CURRENT,
    KSTATUS_FAILED,
    ConditionTest,
    FieldTest,
    HealthKind,
    HealthTest,
    PresenceTest,
)


def build_flux_health_expressions(kinds: Sequence[HealthKind]) -> list[dict[str, str]]:
    """Build the entries of `healthCheckExprs`, one per kind."""
    return [
        {
            "apiVersion": f"{kind.group}/{kind.version}",
            "kind": kind.name,
            "current": build_flux_health_expression(kind, KSTATUS_CURRENT),
            "failed": build_flux_health_expression(kind, KSTATUS_FAILED),
        }
        for kind in kinds
    ]


def build_flux_health_expression(kind: HealthKind, word: str) -> str:
    """Write the expression that is true when Flux calls the first row that holds by this word."""
    rows = list(kind.rows)
    while rows and rows[-1].flux != word:
        rows.pop()  # what remains is false
    text = "false"
    for row in reversed(rows):
        asked = " && ".join(map(_write_flux_health_test, row.tests))
        result = "true" if row.flux == word else "false"
        text = f"{asked} ? {result} :\n{text}"
    return text


def _write_flux_health_test(test: HealthTest) -> str:
    if isinstance(test, ConditionTest):
        asked = f'c.type == "{test.type}" && c.status == "{test.status}"'
        if test.reasons:
            asked += " && c.reason in [" + ", ".join(f'"{one}"' for one in test.reasons) + "]"
        return f"has(status.conditions) && status.conditions.exists(c, {asked})"
    if isinstance(test, FieldTest):
        value = str(test.value).lower() if isinstance(test.value, bool) else f'"{test.value}"'
        return f"{_write_cel_presence_test(test.path)} && {_write_cel_field_path(test.path)} == {value}"
    if isinstance(test, PresenceTest):
        return _write_cel_presence_test(test.path)
    return "metadata.generation > 1"


def _write_cel_presence_test(path: tuple[str, ...]) -> str:
    *outer, last = path
    if "." in last or "/" in last:
        return f'has({".".join(outer)}) && "{last}" in {".".join(outer)}'
    return f"has({'.'.join(path)})"


def _write_cel_field_path(path: tuple[str, ...]) -> str:
    *outer, last = path
    return f'{".".join(outer)}["{last}"]' if "." in last or "/" in last else ".".join(path)
