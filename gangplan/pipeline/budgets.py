"""What teams can spend in a month, compared with their budgets.

Git says neither which month it is nor when a waiting run will train. So the month is the one, of the years
2026 to 2031, in which the starts of all schedules together cost the most, and every other active run is
assumed to fall into it, once. Runs whose specs are stopped, archived or gone no longer count: their cost is
not planned any more (`gangplan cost --history` shows when they existed).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from functools import cache

from gangplan.findings import Finding, Location, assign_cluster
from gangplan.model.months import Month, compute_schedule_cost, count_starts, list_budget_months
from gangplan.model.run_facts import RunFacts
from gangplan.model.starts import NoZonesError
from gangplan.pipeline.scope import WorkScope
from gangplan.records import dataclass
from gangplan.rules.budgets import BUDGET_EXCEEDED, BUDGET_NEARLY
from gangplan.rules.model import Severity
from gangplan.spec.prices import Budget
from gangplan.waivers import Subject, apply_waivers_to_findings
from gangplan.workspace import RENDERED, Workspace

NO_COST = Decimal(0)
# How many of the most expensive specs a message names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class TeamSpending:
    """What active runs cost at most in the `month` in which they cost the most: by spec, and together."""

    month: Month
    total: Decimal = NO_COST
    by_spec: Mapping[str, Decimal] = field(default_factory=dict)


def find_priced_team_budgets(workspace: Workspace) -> dict[tuple[str, str], Budget]:
    """Return the budgets that can be compared with prices, by team and cluster."""
    return {
        (team, cluster): queue.monthly_budget
        for cluster, file in sorted(workspace.clusters.items())
        for team, queue in sorted(file.spec.teams.items())
        if queue.monthly_budget and queue.monthly_budget.currency in (None, file.spec.currency)
    }


def list_budget_clusters(cluster: str, budget: Budget) -> tuple[str, ...]:
    """Return the clusters whose costs count for a budget: the one whose file has it first."""
    return tuple(dict.fromkeys((cluster, *budget.clusters)))


def select_budget_runs(
    runs: Mapping[tuple[str, str], Sequence[RunFacts]], team: str, cluster: str, budget: Budget
) -> list[RunFacts]:
    """Return the runs that count for a budget; `runs` are by team and cluster."""
    return [run for one in list_budget_clusters(cluster, budget) for run in runs.get((team, one), ())]


def compute_team_spending(runs: Iterable[RunFacts], month: Month | None = None) -> TeamSpending:
    """Return the spending of a team in a month, by default the busiest one; runs without a price do not
    count.

    The runs must have prices in one currency.
    """
    once: dict[str, Decimal] = {}
    again: list[RunFacts] = []
    for one in runs:
        if not (one.is_active and one.cost):
            continue
        if one.repeats and _can_count_starts_for_budget(one.repeats):
            again.append(one)
        else:
            once[one.source] = once.get(one.source, NO_COST) + Decimal(one.cost)
    months = (month,) if month else list_budget_months() if again else list_budget_months()[:1]
    sums = {month: sum((_compute_monthly_run_cost(one, month) for one in again), NO_COST) for month in months}
    busiest = max(months, key=lambda month: (sums[month], -month.begin))
    for one in again:
        once[one.source] = once.get(one.source, NO_COST) + _compute_monthly_run_cost(one, busiest)
    return TeamSpending(busiest, sum(once.values(), NO_COST), once)


def _compute_monthly_run_cost(one: RunFacts, month: Month) -> Decimal:
    expression, _, zone = one.repeats.rpartition(" ")
    return compute_schedule_cost(
        Decimal(one.cost), count_starts(expression, zone, month), one.seconds, month.seconds
    )


@cache
def _can_count_starts_for_budget(repeats: str) -> bool:
    expression, _, zone = repeats.rpartition(" ")
    try:
        count_starts(expression, zone, list_budget_months()[0])
    except (KeyError, NoZonesError):  # reported by schedule-zone
        return False
    return True


def group_run_facts_by_team(facts: Iterable[RunFacts]) -> dict[tuple[str, str], list[RunFacts]]:
    """Group runs by team and cluster."""
    found: dict[tuple[str, str], list[RunFacts]] = {}
    for one in facts:
        found.setdefault((one.team, one.cluster), []).append(one)
    return found


def check_team_budgets(
    workspace: Workspace,
    scope: WorkScope,
    facts: Iterable[RunFacts],
    places: Mapping[tuple[str, str, str], Location],
    there: Collection[str] | None = None,
) -> list[Finding]:
    """Report budgets that are exceeded, or nearly, on the clusters that are worked on as a whole.

    Each finding is at the spec with which the sum passes the limit: existing specs (`there`; by default those
    in `rendered/`) are added before new ones, and cheaper ones before others. `places` are those of jobs, by
    cluster, namespace and name.
    """
    runs = group_run_facts_by_team(facts)
    lines = {where.file: where for _, where in sorted(places.items(), reverse=True)}
    found = []
    for (team, cluster), budget in find_priced_team_budgets(workspace).items():
        own, names = select_budget_runs(runs, team, cluster, budget), list_budget_clusters(cluster, budget)
        if not own or not all(map(scope.has_whole, names)):
            continue
        known = _find_rendered_specs(workspace, own) if there is None else there
        finding = _check_team_budget(
            workspace.clusters[cluster].spec.currency, budget, own, lines, known, names
        )
        if finding is not None:
            job = min(one.job for one in own if one.source == finding.where.file)
            excused = apply_waivers_to_findings([finding], workspace.waivers, Subject(cluster, team, job))
            found += assign_cluster(cluster, excused)
    return found


def _find_rendered_specs(workspace: Workspace, runs: Iterable[RunFacts]) -> set[str]:
    return {one.source for one in runs if (workspace.root / RENDERED / one.path).exists()}


def _check_team_budget(
    currency: str,
    budget: Budget,
    runs: Sequence[RunFacts],
    lines: Mapping[str, Location],
    there: Collection[str],
    clusters: Sequence[str],
) -> Finding | None:
    spent = compute_team_spending(runs)
    is_over = spent.total > budget.amount
    nearly = budget.amount * budget.warn_at / 100
    if not is_over and (spent.total < nearly or not spent.total):
        return None
    blamed = _find_spec_over_budget(spent, there, budget.amount if is_over else nearly, is_over)
    mine = spent.by_spec[blamed]
    month, more = spent.month, "more" if is_over else "less"
    message = (
        f"active runs of {runs[0].team} on {' and '.join(clusters)} can cost {spent.total} {currency}"
        f" in a month such as {month}, {abs(spent.total - budget.amount):f} {more} than its budget of"
        f" {budget.amount:f}; {mine} of it for this spec; the most expensive:"
        f" {_describe_costliest_specs(spent)}"
    )
    help = (
        "Shorten timeout, take fewer GPUs, start less often, retire runs that are over (gangplan retire),"
        " or ask the cluster's owner for a larger monthlyBudget."
    )
    rule = BUDGET_EXCEEDED if is_over else BUDGET_NEARLY
    level = Severity.WARNING if is_over and budget.action == "Warn" else None
    return Finding(rule, lines.get(blamed, Location(blamed)), message, help, level=level)


def _describe_costliest_specs(spent: TeamSpending) -> str:
    """Return the most expensive specs by file, a sweep as a whole: `nlp/filings 300.00, nlp/rates 96.64`."""
    most = sorted(spent.by_spec.items(), key=lambda one: (-one[1], one[0]))[:_NAMED]
    return ", ".join(f"{file.removeprefix('specs/').removesuffix('.yaml')} {cost}" for file, cost in most)


def _find_spec_over_budget(spent: TeamSpending, there: Collection[str], line: Decimal, is_over: bool) -> str:
    """Return the spec with which the sum passes a line, or reaches it unless `is_over`."""
    order = sorted(spent.by_spec, key=lambda file: (file not in there, spent.by_spec[file], file))
    total = NO_COST
    for file in order:
        total += spent.by_spec[file]
        if total > line or (total == line and not is_over):
            return file
    return order[-1]
