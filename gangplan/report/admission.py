"""A verdict of the admission solver as one line of the plan, and as data."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gangplan.model.amounts import say
from gangplan.model.quantity import Format, Quantity
from gangplan.validate.kueue import Verdict


def admission_words(verdict: Verdict | None) -> str:
    """`admitted at once when idle (...)`, `never: ...`; what is borrowed beside the team's own quota."""
    if verdict is None:
        return "not judged: the objects are invalid"
    if verdict.outcome == "never":
        return f"never: {verdict.cause_message}"
    if not verdict.queue:
        return "starts at once: no queue holds it back"
    flavors = ", ".join(
        f"{podset}: {' + '.join(sorted(set(of.values())))}" for podset, of in verdict.assignment.items()
    )
    words = f"admitted at once when idle ({flavors})"
    if verdict.borrowed:
        beyond = ", ".join(
            f"{say(resource, value)} of {flavor}"
            for (flavor, resource), value in sorted(verdict.borrowed.items())
        )
        words += f"; borrows {beyond} beyond the team's own quota"
    return words


def admission_document(verdict: Verdict | None) -> dict[str, Any] | None:
    """The same as data: outcome, Kueue's reason and message, flavors by pod set and resource, what is borrowed."""
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
    is_bytes = resource in ("memory", "ephemeral-storage")
    nano = -(-value.numerator * 10**9 // value.denominator)
    return Quantity(nano, Format.BINARY_SI if is_bytes else Format.DECIMAL_SI).canonical()
