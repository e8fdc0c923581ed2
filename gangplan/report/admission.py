"""A verdict of the admission solver as data."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gangplan.kueue.units import quantity_format_of
from gangplan.model.quantity import Quantity
from gangplan.validate.kueue import AdmissionVerdict


def build_admission_verdict_json(verdict: AdmissionVerdict | None) -> dict[str, Any] | None:
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
        "borrowed": _build_borrowed_amounts(verdict.borrowed),
    }


def _build_borrowed_amounts(borrowed: Mapping[tuple[str, str], Fraction]) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for (flavor, resource), value in sorted(borrowed.items()):
        out.setdefault(flavor, {})[resource] = _format_borrowed_amount(resource, value)
    return out


def _format_borrowed_amount(resource: str, value: Fraction) -> str:
    nano = -(-value.numerator * 10**9 // value.denominator)
    return Quantity(nano, quantity_format_of(resource)).canonical()
