"""A verdict of the admission solver as data."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gangplan.kueue.units import format_of
from gangplan.model.quantity import Quantity
from gangplan.validate.kueue import Verdict


def admission_document(verdict: Verdict | None) -> dict[str, Any] | None:
    """Return a verdict as data: outcome, Kueue's reason and message, flavors by pod set and resource, what
    is borrowed."""
    if verdict is None:
        return None
    return {
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "message": verdict.message,
        "clusterQueue": verdict.queue,
        "flavors": {podset: dict(of) for podset, of in verdict.assignment.items()},
        "borrowed": _borrowed(verdict.borrowed),
    }


def _borrowed(borrowed: Mapping[tuple[str, str], Fraction]) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for (flavor, resource), value in sorted(borrowed.items()):
        out.setdefault(flavor, {})[resource] = _amount(resource, value)
    return out


def _amount(resource: str, value: Fraction) -> str:
    nano = -(-value.numerator * 10**9 // value.denominator)
    return Quantity(nano, format_of(resource)).canonical()
