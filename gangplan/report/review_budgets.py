"""Budgets in a review: a table for people, and data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.report.section import ARROW, Section
from gangplan.review.budgets import BudgetChange, format_budget_amount


def build_review_budgets_section(budgets: Sequence[BudgetChange]) -> Section:
    """Return the budgets that the change affects, as a table."""
    rows = [
        (
            one.team,
            " and ".join(one.clusters),
            _format_budget_change(format_budget_amount(one.amounts[0]), format_budget_amount(one.amounts[1])),
            _format_budget_change(
                format_budget_amount(one.spent[0].total), format_budget_amount(one.spent[1].total)
            ),
            f"{one.added:+f}",
            _format_remaining_budget(one),
        )
        for one in budgets
        if one.amounts[0] != one.amounts[1] or one.added
    ]
    columns = ("team", "cluster", "budget", "busiest month at most", "this change", "left")
    below = "All active runs, in the month of 2026 to 2031 in which schedules start the most." if rows else ""
    return Section("Monthly budgets", columns, rows, "budget", below)


def _format_remaining_budget(one: BudgetChange) -> str:
    if one.left is None:
        return "no budget"
    return f"{one.left:f} {one.currency}" if one.left >= 0 else f"{-one.left:f} {one.currency} too much"


def _format_budget_change(old: str, new: str) -> str:
    return new if old == new else f"{old or 'none'} {ARROW} {new or 'none'}"


def build_review_budgets_json(budgets: Sequence[BudgetChange]) -> list[dict[str, Any]]:
    """Return all budgets as data; amounts are decimal texts."""
    return [
        {
            "team": one.team,
            "cluster": one.cluster,
            "currency": one.currency,
            "before": {
                "amount": format_budget_amount(one.amounts[0]),
                "spent": format_budget_amount(one.spent[0].total),
            },
            "after": {
                "amount": format_budget_amount(one.amounts[1]),
                "spent": format_budget_amount(one.spent[1].total),
            },
            "added": f"{one.added:f}",
            "left": format_budget_amount(one.left),
        }
        for one in budgets
    ]
