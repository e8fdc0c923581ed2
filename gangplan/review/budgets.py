"""The spending of teams that a change adds, and what it leaves of their budgets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal

from gangplan.findings import Finding
from gangplan.pipeline.budgets import (
    NO_COST,
    TeamSpending,
    check_team_budgets,
    compute_team_spending,
    find_priced_team_budgets,
    group_run_facts_by_team,
    list_budget_clusters,
    select_budget_runs,
)
from gangplan.pipeline.scope import WHOLE_SCOPE
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
    spent: tuple[TeamSpending, TeamSpending]

    @property
    def added(self) -> Decimal:
        """What the change adds to a month; negative if it reduces the spending."""
        return self.spent[1].total - self.spent[0].total

    @property
    def left(self) -> Decimal | None:
        """What is left of the budget after the change; negative if it is exceeded."""
        return None if self.amounts[1] is None else self.amounts[1] - self.spent[1].total


def rejudge_budgets_of_both_sides(before: Side, after: Side) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of both sides, with those about budgets at a spec of the change, if that is the
    cause.

    So a review says the same whether rendered/ is up to date or not.
    """
    if not any(find_priced_team_budgets(side.workspace) for side in (before, after) if side.is_there):
        return before.findings, after.findings
    cost = {key: (one.cost, one.repeats, one.is_active) for key, one in before.runs.items()}
    moved = {
        one.source
        for key, one in after.runs.items()
        if cost.get(key) != (one.cost, one.repeats, one.is_active)
    }
    there = {one.source for one in after.runs.values()} - moved
    return _recheck_team_budgets(before, ()), _recheck_team_budgets(after, there)


def _recheck_team_budgets(side: Side, there: Collection[str]) -> list[Finding]:
    if not side.is_there:
        return side.findings
    rest = [one for one in side.findings if one.rule not in (BUDGET_EXCEEDED, BUDGET_NEARLY)]
    return [*rest, *check_team_budgets(side.workspace, WHOLE_SCOPE, side.runs.values(), {}, there)]


def compare_budgets_of_both_sides(before: Side, after: Side) -> Sequence[BudgetChange]:
    """Return every budget that exists before or after, by team and cluster."""
    sides = (before, after)
    budgets = [find_priced_team_budgets(side.workspace) if side.is_there else {} for side in sides]
    keys = sorted({*budgets[0], *budgets[1]})
    if not keys:
        return ()
    runs = [group_run_facts_by_team(side.runs.values()) for side in sides]
    found = []
    for key in keys:
        amounts = [side[key].amount if key in side else None for side in budgets]
        budget = (budgets[1] if key in budgets[1] else budgets[0])[key]
        spent = [compute_team_spending(select_budget_runs(side, *key, budget)) for side in runs]
        clusters = (after if key in budgets[1] else before).workspace.clusters
        currency = clusters[key[1]].spec.currency
        found.append(
            BudgetChange(
                *key,
                list_budget_clusters(key[1], budget),
                currency,
                (amounts[0], amounts[1]),
                (spent[0], spent[1]),
            )
        )
    return found


def format_budget_amount(amount: Decimal | None) -> str:
    """Return an amount without an exponent; empty without an amount."""
    return "" if amount is None else f"{amount + NO_COST:f}"
