"""Checks of budgets in a cluster file: whether everything that a budget covers can be counted."""

from __future__ import annotations

from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.budgets import BUDGET_CLUSTER, BUDGET_CURRENCY, BUDGET_UNPRICED
from gangplan.spec.prices import Budget
from gangplan.workspace import Workspace


def check_cluster_file_budgets(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check that budgets use the currency of prices and clusters of the team, and that pools have prices."""
    spec = notes.spec
    first = ""
    for name, team in spec.teams.items():
        budget = team.monthly_budget
        if budget is None:
            continue
        first = first or name
        if budget.currency not in (None, spec.currency):
            message = f"the budget of {name} is in {budget.currency}, and prices of this cluster are in {spec.currency}"
            help = f"State the amount in {spec.currency}, or currency: {budget.currency} of the cluster."
            notes.report(BUDGET_CURRENCY, ("teams", name, "monthlyBudget", "currency"), message, help)
        _check_budget_clusters_in_cluster_file(notes, workspace, name, budget)
    bare = [
        name
        for name, pool in spec.node_pools.items()
        if pool.price is None or (pool.price.per_gpu_hour if pool.gpu else pool.price.per_cpu_hour) is None
    ]
    if bare:
        message = f"budgets count nothing for what runs in pools without a price: {', '.join(bare)}"
        help = "State price of the pool: perGpuHour, or perCpuHour of a pool without GPUs; 0 if it is free."
        notes.report(BUDGET_UNPRICED, ("teams", first, "monthlyBudget"), message, help)


def _check_budget_clusters_in_cluster_file(
    notes: ClusterCheck, workspace: Workspace, team: str, budget: Budget
) -> None:
    """Check that a team is on each cluster that its budget covers, and that their currency is the same."""
    for index, name in enumerate(budget.clusters):
        other = workspace.clusters.get(name)
        path = ("teams", team, "monthlyBudget", "clusters", index)
        if name in workspace.unread:
            continue  # its file has its own findings
        if other is None or team not in other.spec.teams:
            why = f"there is no cluster '{name}'" if other is None else f"{team} is not on cluster {name}"
            help = f"Name clusters whose files have {team} in teams, or remove it."
            notes.report(BUDGET_CLUSTER, path, f"the budget of {team} covers {name}, but {why}", help)
        elif other.spec.currency != notes.spec.currency:
            message = (
                f"the budget of {team} covers {name}, whose prices are in {other.spec.currency}, and prices of this"
                f" cluster are in {notes.spec.currency}"
            )
            help = (
                f"State a budget of its own in {name}'s file: amounts of two currencies are never added up."
            )
            notes.report(BUDGET_CURRENCY, path, message, help)
