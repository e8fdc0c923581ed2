"""Budgets next to costs: what a team may spend in a month, what its active runs can cost then, and what is
left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from gangplan.model.months import Month
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.budgets import budgets_of, by_team, covered, runs_under, spending_of
from gangplan.pipeline.scope import Scope
from gangplan.records import dataclass
from gangplan.report.costs import Row, money, plain
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

    def row(self) -> Row:
        """Return the line for people."""
        words = money(abs(self.left), self.currency)
        return {
            "budget of": self.team,
            "on": " and ".join(self.clusters),
            "month": str(self.month),
            "budget": money(self.budget, self.currency),
            "at most": money(self.planned, self.currency),
            "left": words if self.left >= 0 else f"{words} too much",
        }

    def facts(self) -> Row:
        """Return the line as data; amounts are decimal texts."""
        return {
            "team": self.team,
            "clusters": list(self.clusters),
            "month": str(self.month),
            "budget": plain(self.budget),
            "most": plain(self.planned),
            "left": plain(self.left),
            "currency": self.currency,
        }


def budget_lines(
    workspace: Workspace, scope: Scope, facts: Iterable[RunFacts], months: Sequence[Month]
) -> Iterator[BudgetLine]:
    """Yield a line for each budget whose runs are all worked on: for each month, or for the one that costs
    the most."""
    runs = by_team(facts)
    for (team, cluster), budget in budgets_of(workspace).items():
        names = covered(cluster, budget)
        if not all(scope.has_runs_of(one, team) for one in names):
            continue
        own = runs_under(runs, team, cluster, budget)
        currency = workspace.clusters[cluster].spec.currency
        for month in months or (None,):
            spent = spending_of(own, month)
            yield BudgetLine(team, names, spent.month, budget.amount, spent.total, currency)
