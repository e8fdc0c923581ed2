"""Health checks for Flux, in CEL: what makes an object current, and what makes it failed.

Flux asks `inProgress`, then `failed`, then `current`, and takes an object for which none holds as in
progress (fluxcd/pkg runtime/cel, status_evaluator.go; RFC 0009). So only two expressions are written, each
a chain that ends at the first row that holds. Without `status` they cannot be evaluated, and Flux asks
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.gitops.health import CURRENT, FAILED, Condition, Field, Kind, Present, Test


def checks_of(kinds: Sequence[Kind]) -> list[dict[str, str]]:
    """Entries of `healthCheckExprs`, one per kind."""
    return [
        {
            "apiVersion": f"{kind.group}/{kind.version}",
            "kind": kind.name,
            "current": expression(kind, CURRENT),
            "failed": expression(kind, FAILED),
        }
        for kind in kinds
    ]


def expression(kind: Kind, word: str) -> str:
    """Whether the first row that holds is one that Flux calls by the word."""
    rows = list(kind.rows)
    while rows and rows[-1].flux != word:
        rows.pop()  # what remains is false
    text = "false"
    for row in reversed(rows):
        asked = " && ".join(map(_test, row.tests))
        result = "true" if row.flux == word else "false"
        text = f"{asked} ? {result} :\n{text}"
    return text


def _test(test: Test) -> str:
    if isinstance(test, Condition):
        asked = f'c.type == "{test.type}" && c.status == "{test.status}"'
        if test.reasons:
            asked += " && c.reason in [" + ", ".join(f'"{one}"' for one in test.reasons) + "]"
        return f"has(status.conditions) && status.conditions.exists(c, {asked})"
    if isinstance(test, Field):
        value = str(test.value).lower() if isinstance(test.value, bool) else f'"{test.value}"'
        return f"{_present(test.path)} && {_path(test.path)} == {value}"
    if isinstance(test, Present):
        return _present(test.path)
    return "metadata.generation > 1"


def _present(path: tuple[str, ...]) -> str:
    *outer, last = path
    if "." in last or "/" in last:
        return f'has({".".join(outer)}) && "{last}" in {".".join(outer)}'
    return f"has({'.'.join(path)})"


def _path(path: tuple[str, ...]) -> str:
    *outer, last = path
    return f'{".".join(outer)}["{last}"]' if "." in last or "/" in last else ".".join(path)
