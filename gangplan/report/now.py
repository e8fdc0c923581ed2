"""Runs against a snapshot of what is in use, as text for people and as data for machines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gangplan.model.amounts import format_amount, format_with_unit
from gangplan.model.quantity import Quantity, parse_quantity
from gangplan.pipeline.now import CurrentVerdict

# Kueue's own sentence (flavorassigner.go, v0.15.2 to v0.19.2).
MORE = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\S+) more needed")
WORDS = {"admit": "admitted now", "queue": "waits", "never": "never admitted"}


def render_current_verdicts_text(snapshot: str, runs: Sequence[CurrentVerdict]) -> str:
    """Return a line per run."""
    lines = [f"with what {snapshot} says is in use, each run alone:"]
    for one in runs:
        lines.append(f"  {one.name}: {_describe_current_verdict(one)}")
    return "\n".join(lines) + "\n"


def _format_missing_quota(resource: str, more: str) -> str:
    """Return what Kueue says is missing, in gangplan's words."""
    number, _, noun = format_with_unit(resource, parse_quantity(more)).partition(" ")
    unit, of, rest = noun.partition(" of ")
    return f"{number} {unit} more of {rest}" if of else f"{number} more {noun}"


def _describe_current_verdict(one: CurrentVerdict) -> str:
    verdict = one.verdict
    if not verdict.queue:
        return "starts at once, it waits in no queue"
    said = WORDS[verdict.outcome]
    if verdict.outcome == "admit":
        borrowed = ", ".join(
            f"{format_with_unit(resource, amount)} of {flavor}"
            for (flavor, resource), amount in sorted(verdict.borrowed.items())
        )
        return said + (f", borrows {borrowed}" if borrowed else "")
    missing = MORE.findall(verdict.message)
    if missing:
        said += " for " + " and ".join(
            f"{_format_missing_quota(name, more)} of {flavor}" for name, flavor, more in missing
        )
        said += "".join(
            f" ({format_amount(name, one.left[flavor, name])} of its queue's own left)"
            for name, flavor, _ in missing[:1]
            if (flavor, name) in one.left
        )
    else:
        said += f": {verdict.message}"
    if one.givers:
        said += f"; its own quota is lent out: runs of {', '.join(one.givers)} give way"
    return said


def build_current_verdicts_json(runs: Sequence[CurrentVerdict]) -> list[dict[str, Any]]:
    """Return the runs as data; quantities are canonical texts."""
    return [
        {
            "job": one.name,
            "run": one.run,
            "queue": one.verdict.queue,
            "outcome": one.verdict.outcome,
            "reason": one.verdict.reason,
            "message": one.verdict.message,
            "borrowed": {
                f"{flavor}/{resource}": Quantity(int(amount * 10**9)).canonical()
                for (flavor, resource), amount in sorted(one.verdict.borrowed.items())
            },
            "left": {
                f"{flavor}/{resource}": amount.canonical()
                for (flavor, resource), amount in sorted(one.left.items())
            },
            "gives_way": list(one.givers),
        }
        for one in runs
    ]
