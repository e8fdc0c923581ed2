"""Rules about budgets: what teams may spend in a month."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

BUDGET_EXCEEDED = Rule(
    "budget-exceeded",
    ERROR,
    "A team's active runs can cost more in a month than its budget.",
    why=(
        "The platform states what a team may spend on a cluster in a month (teams.NAME.monthlyBudget). Each "
        "active run counts until its timeout, a sweep with all its trials, and a schedule with all starts of the "
        "busiest month for schedules. The finding is at the spec that takes the total over the amount: "
        "one that rendered/ does not have yet, if there is one."
    ),
    fix=(
        "Shorten timeout, take fewer GPUs, start less often, or retire runs that are over; or ask the cluster's "
        "owner to raise the amount or to write action: Warn."
    ),
    is_verdict=True,
    waivable=True,
)

BUDGET_NEARLY = Rule(
    "budget-nearly",
    WARNING,
    "A team's active runs can cost nearly all of its monthly budget.",
    why=(
        "Once costs can reach the budget's warnAt (80 percent), little is left for the rest of the "
        "month, and the next job may be refused."
    ),
    fix="Plan the next jobs with the cluster's owner, shorten timeouts, or retire runs that are over.",
    is_verdict=True,
    waivable=True,
)

BUDGET_CURRENCY = Rule(
    "budget-currency",
    ERROR,
    "A budget is in another currency than the cluster's prices.",
    why="Exchange rates change from day to day, so gangplan never compares amounts in two currencies.",
    fix="State the budget in the cluster's currency, or set the cluster's currency to that of its prices.",
)

BUDGET_CLUSTER = Rule(
    "budget-cluster",
    ERROR,
    "A budget covers a cluster on which the team has nothing.",
    why="A misspelt name would silently leave out what the team spends there.",
    fix="List clusters whose files have the team in teams.",
)

BUDGET_UNPRICED = Rule(
    "budget-unpriced",
    WARNING,
    "A cluster has budgets, and pools without a price.",
    why="The cost of runs in such a pool is unknown, so they fit into every budget.",
    fix="State price of each pool; 0 for one that is free.",
    waivable=True,
)
