"""The spending of teams that a change adds, and what it leaves of their budgets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal

from gangplan.findings import Finding
from gangplan.pipeline.budgets import (
    ZERO,
    Spending,
    budget_findings,
    budgets_of,
    by_team,
    covered,
    runs_under,
    spending_of,
)
from gangplan.pipeline.scope import EVERYTHING
from gangplan.records import dataclass
from gangplan.review.sides import Side
from gangplan.rules.budgets import BUDGET_EXCEEDED, BUDGET_NEARLY


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """A team's budget on clusters and its spending in the busiest month, before and after, in `currency`.

    An amount is None where there is no budget.
    """

    team: str
    cluster: str
    clusters: tuple[str, ...]
    currency: str
    amounts: tuple[Decimal | None, Decimal | None]
    spent: tuple[Spending, Spending]

    @property
    def added(self) -> Decimal:
        """What the change adds to a month; negative if it reduces the spending."""
        return self.spent[1].total - self.spent[0].total

    @property
    def left(self) -> Decimal | None:
        """What is left of the budget after the change; negative if it is exceeded."""
        return None if self.amounts[1] is None else self.amounts[1] - self.spent[1].total


def rejudged(before: Side, after: Side) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of both sides, with those about budgets at a spec of the change, if that is the
    cause.

    So a review says the same whether rendered/ is up to date or not.
    """
    if not any(budgets_of(side.workspace) for side in (before, after) if side.is_there):
        return before.findings, after.findings
    cost = {key: (one.cost, one.repeats, one.is_active) for key, one in before.runs.items()}
    moved = {
        one.source
        for key, one in after.runs.items()
        if cost.get(key) != (one.cost, one.repeats, one.is_active)
    }
    there = {one.source for one in after.runs.values()} - moved
    return _judged(before, ()), _judged(after, there)


def _judged(side: Side, there: Collection[str]) -> list[Finding]:
    if not side.is_there:
        return side.findings
    rest = [one for one in side.findings if one.rule not in (BUDGET_EXCEEDED, BUDGET_NEARLY)]
    return [*rest, *budget_findings(side.workspace, EVERYTHING, side.runs.values(), {}, there)]


def budget_changes(before: Side, after: Side) -> Sequence[BudgetChange]:
    """Return every budget that exists before or after, by team and cluster."""
    sides = (before, after)
    budgets = [budgets_of(side.workspace) if side.is_there else {} for side in sides]
    keys = sorted({*budgets[0], *budgets[1]})
    if not keys:
        return ()
    runs = [by_team(side.runs.values()) for side in sides]
    found = []
    for key in keys:
        amounts = [side[key].amount if key in side else None for side in budgets]
        budget = (budgets[1] if key in budgets[1] else budgets[0])[key]
        spent = [spending_of(runs_under(side, *key, budget)) for side in runs]
        clusters = (after if key in budgets[1] else before).workspace.clusters
        currency = clusters[key[1]].spec.currency
        found.append(
            BudgetChange(
                *key, covered(key[1], budget), currency, (amounts[0], amounts[1]), (spent[0], spent[1])
            )
        )
    return found


def words(amount: Decimal | None) -> str:
    """Return an amount without an exponent; empty without an amount."""
    return "" if amount is None else f"{amount + ZERO:f}"
