"""Budgets: what teams may spend in a month."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Example, Rule

_CLUSTER = "overlays/lab/cluster.yaml"
_TEAM = "  nlp: {queue: training}\n"
# Of the run of the small workspace: 4 workers with 2 GPUs for 24 hours, and a launcher.
_PRICED = (
    (_CLUSTER, "memory: 240Gi", "memory: 240Gi, price: {perCpuHour: 0}"),
    (_CLUSTER, "a100: {count: 4", 'a100: {price: {perGpuHour: "1.5625"}, count: 4'),
    (_CLUSTER, "a100-spot: {count: 4", 'a100-spot: {price: {perGpuHour: "0.60"}, count: 4'),
)


def _team(budget: str) -> str:
    return f"  nlp: {{queue: training, monthlyBudget: {budget}}}\n"


BUDGET_EXCEEDED = Rule(
    "budget-exceeded",
    ERROR,
    "A team's active runs can cost more in a month than its budget.",
    why=(
        "The platform states what a team may spend on a cluster in a month (teams.NAME.monthlyBudget). Each "
        "active run counts until its timeout, a sweep with all its trials, and a schedule with all starts of the "
        "month in which schedules start the most. The finding is at the spec that passes the amount: "
        "one that rendered/ does not have yet, if there is one."
    ),
    fix=(
        "Shorten timeout, take fewer GPUs, start less often, or retire runs that are over; or let the cluster's "
        "owner raise the amount, or write action: Warn."
    ),
    is_verdict=True,
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="timeout: 24h\n",
        after="timeout: 12h\n",
        changes=((_CLUSTER, _TEAM, _team('{amount: "200"}')), *_PRICED),
    ),
)

BUDGET_NEARLY = Rule(
    "budget-nearly",
    WARNING,
    "A team's active runs can cost nearly all of its monthly budget.",
    why=(
        "From the share on that warnAt of the budget states (80 percent), there is little left for the rest of the "
        "month, and the next job may be refused."
    ),
    fix="Plan the next jobs with the cluster's owner, shorten timeouts, or retire runs that are over.",
    is_verdict=True,
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="timeout: 24h\n",
        after="timeout: 12h\n",
        changes=((_CLUSTER, _TEAM, _team('{amount: "350"}')), *_PRICED),
    ),
)

BUDGET_CURRENCY = Rule(
    "budget-currency",
    ERROR,
    "A budget is in another currency than the cluster's prices.",
    why="Rates of exchange change from day to day, so amounts of two currencies are never compared.",
    fix="State the budget in the cluster's currency, or currency of the cluster as its prices are.",
    example=Example(
        _CLUSTER,
        old=_TEAM,
        before=_team('{amount: "2000", currency: EUR}'),
        after=_team('{amount: "2000", currency: USD}'),
        changes=_PRICED,
    ),
)

BUDGET_CLUSTER = Rule(
    "budget-cluster",
    ERROR,
    "A budget covers a cluster on which the team has nothing.",
    why="A name that is misspelt would leave out what the team spends there, in silence.",
    fix="List clusters whose files have the team in teams.",
    example=Example(
        _CLUSTER,
        old=_TEAM,
        before=_team('{amount: "2000", clusters: [us]}'),
        after=_team('{amount: "2000"}'),
        changes=_PRICED,
    ),
)

BUDGET_UNPRICED = Rule(
    "budget-unpriced",
    WARNING,
    "A cluster has budgets, and pools without a price.",
    why="What runs in such a pool costs nothing that is known, so it passes every budget.",
    fix="State price of each pool; 0 for one that is free.",
    waivable=True,
    example=Example(
        _CLUSTER,
        old="memory: 240Gi",
        before="memory: 240Gi",
        after="memory: 240Gi, price: {perCpuHour: 0}",
        changes=((_CLUSTER, _TEAM, _team('{amount: "2000"}')), *_PRICED[1:]),
    ),
)
