"""Budgets next to costs: what a team may spend in a month, what its active runs can cost then, and what is
left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from gangplan.model.months import Month
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.budgets import (
    compute_team_spending,
    find_priced_team_budgets,
    group_run_facts_by_team,
    list_budget_clusters,
    select_budget_runs,
)
from gangplan.pipeline.scope import WorkScope
from gangplan.records import dataclass
from gangplan.report.costs import CostRow, format_cost_decimal, format_money
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """The budget of a team on clusters, and what its active runs can cost at most in a month, in
    `currency`."""

    team: str
    clusters: tuple[str, ...]
    month: Month
    budget: Decimal
    planned: Decimal
    currency: str

    @property
    def left(self) -> Decimal:
        """The rest of the budget; negative if the budget is exceeded."""
        return self.budget - self.planned

    def row(self) -> CostRow:
        """Return the line for people."""
        words = format_money(abs(self.left), self.currency)
        return {
            "budget of": self.team,
            "on": " and ".join(self.clusters),
            "month": str(self.month),
            "budget": format_money(self.budget, self.currency),
            "at most": format_money(self.planned, self.currency),
            "left": words if self.left >= 0 else f"{words} too much",
        }

    def facts(self) -> CostRow:
        """Return the line as data; amounts are decimal texts."""
        return {
            "team": self.team,
            "clusters": list(self.clusters),
            "month": str(self.month),
            "budget": format_cost_decimal(self.budget),
            "most": format_cost_decimal(self.planned),
            "left": format_cost_decimal(self.left),
            "currency": self.currency,
        }


def build_budget_lines(
    workspace: Workspace, scope: WorkScope, facts: Iterable[RunFacts], months: Sequence[Month]
) -> Iterator[BudgetLine]:
    """Yield a line for each budget whose runs are all worked on: for each month, or for the one that costs
    the most."""
    runs = group_run_facts_by_team(facts)
    for (team, cluster), budget in find_priced_team_budgets(workspace).items():
        names = list_budget_clusters(cluster, budget)
        if not all(scope.has_runs_of(one, team) for one in names):
            continue
        own = select_budget_runs(runs, team, cluster, budget)
        currency = workspace.clusters[cluster].spec.currency
        for month in months or (None,):
            spent = compute_team_spending(own, month)
            yield BudgetLine(team, names, spent.month, budget.amount, spent.total, currency)
