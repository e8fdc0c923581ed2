"""Budgets in a review: a table for people, and data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.report.section import ARROW, Section
from gangplan.review.budgets import BudgetChange, words


def budgets_section(budgets: Sequence[BudgetChange]) -> Section:
    """Return the budgets that the change affects, as a table."""
    rows = [
        (
            one.team,
            " and ".join(one.clusters),
            _change(words(one.amounts[0]), words(one.amounts[1])),
            _change(words(one.spent[0].total), words(one.spent[1].total)),
            f"{one.added:+f}",
            _left(one),
        )
        for one in budgets
        if one.amounts[0] != one.amounts[1] or one.added
    ]
    columns = ("team", "cluster", "budget", "busiest month at most", "this change", "left")
    below = "All active runs, in the month of 2026 to 2031 in which schedules start the most." if rows else ""
    return Section("Monthly budgets", columns, rows, "budget", below)


def _left(one: BudgetChange) -> str:
    if one.left is None:
        return "no budget"
    return f"{one.left:f} {one.currency}" if one.left >= 0 else f"{-one.left:f} {one.currency} too much"


def _change(old: str, new: str) -> str:
    return new if old == new else f"{old or 'none'} {ARROW} {new or 'none'}"


def budgets_part(budgets: Sequence[BudgetChange]) -> list[dict[str, Any]]:
    """Return all budgets as data; amounts are decimal texts."""
    return [
        {
            "team": one.team,
            "cluster": one.cluster,
            "currency": one.currency,
            "before": {"amount": words(one.amounts[0]), "spent": words(one.spent[0].total)},
            "after": {"amount": words(one.amounts[1]), "spent": words(one.spent[1].total)},
            "added": f"{one.added:f}",
            "left": words(one.left),
        }
        for one in budgets
    ]
