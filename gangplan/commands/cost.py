"""`gangplan cost`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.commands.listing import format_terminal_table
from gangplan.commands.outfile import resolve_output_file_flag
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.model.bill import CostItem, build_cost_item, sum_costs
from gangplan.model.job import Job
from gangplan.model.months import Month, build_monthly_cost_item, list_twelve_months_from, parse_months
from gangplan.model.starts import NoZonesError
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.report.costs import (
    ONCE_MONTH,
    build_cost_item_rows,
    build_cost_sum_rows,
    build_costs_json,
    render_costs_csv,
)
from gangplan.rules.budgets import BUDGET_EXCEEDED
from gangplan.simulate.day import (
    DURATIONS_HELP,
    JobLines,
    check_simulation_lines_match_jobs,
    choose_line_name,
    find_job_line,
    read_lines_of_simulated_day,
    simulated_duration_of,
)

if TYPE_CHECKING:
    from gangplan.report.cost_budgets import BudgetLine

COST_GROUPS: dict[str, Callable[[CostItem], str]] = {
    "run": lambda one: one.run,
    "team": lambda one: one.team,
    "cluster": lambda one: one.cluster,
    "pool": lambda one: f"{one.cluster}/{one.pool}",
    "month": lambda one: one.month or ONCE_MONTH,
}
_FORMATS = ("table", "csv", "json")
_WIDEST = 63


def select_months_from_flags(by: str, month: str | None, today: str | None) -> tuple[Month, ...]:
    """Return the months that flags select; none if runs are counted once. Raises UserError."""
    if month is not None:
        try:
            return parse_months(month)
        except ValueError:
            raise UserError(f"'{month}' is not a month", "Write --month 2026-12, or --month 2026.") from None
    if by != "month":
        return ()
    from gangplan.api.checks import resolve_day

    return list_twelve_months_from(resolve_day(today))


def print_costs(
    request: Request, by: str, durations: Path | None, format: str, months: Sequence[Month] = ()
) -> Exit:
    """Print what the active runs cost at most, and with `durations` what they are expected to cost.

    With `months`, schedules count what they start in each of them. Raises UserError for invalid flags, and
    for durations of jobs that do not exist.
    """
    if by not in COST_GROUPS:
        raise UserError(f"costs are not added up by '{by}'", f"By: {', '.join(COST_GROUPS)}.")
    name, equals, file = format.partition("=")
    if name not in _FORMATS:
        raise UserError(f"there is no format '{name}'", f"Formats: {', '.join(_FORMATS)}.")
    target = resolve_output_file_flag(file, request.root, "the costs") if equals else None
    result = preview_render(replace(request, is_brief=True))
    wrong = sort_findings([one for one in result.findings if one.is_error])
    print_findings_to_stderr(wrong)
    if any(one.rule != BUDGET_EXCEEDED for one in wrong):  # a run over the budget has a cost, too
        return choose_exit_code(result.findings)
    active = [run for run in result.runs if run.unit.job.is_active]
    lines = read_lines_of_simulated_day(durations, DURATIONS_HELP) if durations else {}
    names = {run.unit.job: f"{run.unit.job.team}/{run.unit.job.name}" for run in active}
    if isinstance(lines, JobLines):
        sweeps = {f"{job.team}/{job.trial.sweep}" for job in names if job.trial}
        check_simulation_lines_match_jobs(lines, sorted({*names.values(), *sweeps}))
    items = []
    for run in active:
        job = run.unit.job
        title = (
            choose_line_name(lines, names[job], f"{job.team}/{job.trial.sweep}") if job.trial else names[job]
        )
        stated = find_job_line(lines, title) is not None
        one = build_cost_item(
            job, run.name, simulated_duration_of(lines, title, job.timeout_s) if stated else None
        )
        items += _split_cost_by_month_flag(one, job, months)
    items.sort(key=lambda one: (one.cluster, one.team, one.run, one.month))
    if not items:
        if active:
            raise UserError("no schedule starts a run in that time", "Name another month.")
        raise UserError("there are no active runs", "Name other specs, teams or clusters.")
    budgets = _build_team_budgets_for_cost_command(result, months)
    said = _format_cost_command_output(
        items, by, name, durations is not None, [str(one) for one in months], budgets
    )
    if target is not None:
        target.write(said)
    else:
        sys.stdout.write(said)
    return choose_exit_code(wrong)


def _build_team_budgets_for_cost_command(result: Result, months: Sequence[Month]) -> list[BudgetLine]:
    """Return the budgets of teams whose runs are all selected."""
    clusters = result.workspace.clusters.values()
    if not any(team.monthly_budget for one in clusters for team in one.spec.teams.values()):
        return []
    from gangplan.report.cost_budgets import build_budget_lines  # few clusters have budgets

    return list(build_budget_lines(result.workspace, result.scope, result.facts, months))


def _split_cost_by_month_flag(one: CostItem, job: Job, months: Sequence[Month]) -> list[CostItem]:
    """Return a run as it is, or what its schedule starts in each month.

    Raises UserError for an unknown time zone.
    """
    if job.schedule is None or not months:
        return [one]
    try:
        found = [build_monthly_cost_item(one, job, month) for month in months]
    except (KeyError, NoZonesError):
        raise UserError(
            f"nobody here knows time zone '{job.schedule.time_zone}' of {job.team}/{job.name}",
            "Install the system's tzdata, or the Python package tzdata.",
        ) from None
    return [item for item in found if item is not None]


def _format_cost_command_output(
    items: list[CostItem],
    by: str,
    format: str,
    with_expected: bool,
    months: Sequence[str],
    budgets: Sequence[BudgetLine],
) -> str:
    if format == "csv":
        return render_costs_csv(items, bool(months))
    found = sum_costs(items, COST_GROUPS[by])
    if format == "json":
        held = {"budgets": [one.facts() for one in budgets]} if budgets else {}
        said = {**build_costs_json(items, found, by, months), **held}
        return json.dumps(said, indent=2, ensure_ascii=False) + "\n"
    total = sum_costs(items, lambda _: "total")
    rows = (
        build_cost_item_rows(items, with_expected, bool(months))
        if by == "run"
        else build_cost_sum_rows(found, by, with_expected)
    )
    text = format_terminal_table(rows, widest=_WIDEST)
    if len(items) > 1:
        text += "\n" + format_terminal_table(
            build_cost_sum_rows(total, "in all", with_expected), widest=_WIDEST
        )
    if budgets:
        text += "\n" + format_terminal_table([one.row() for one in budgets], widest=_WIDEST)
    missing = sorted({f"{one.cluster}/{pool}" for one in items for pool in one.without})
    if missing:
        text += f"\nwithout a price: {', '.join(missing)}; state price of the pool in cluster.yaml\n"
    if months:
        text += "\nmonths are those of UTC; runs without a schedule count once, whenever they start\n"
    return text
