"""`gangplan cost --history`."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

from gangplan.api.checks import resolve_day
from gangplan.commands.common import format_plural
from gangplan.commands.cost import COST_GROUPS
from gangplan.commands.listing import format_terminal_table
from gangplan.commands.outfile import resolve_output_file_flag
from gangplan.errors import Exit, UserError
from gangplan.model.bill import CostItem, CostSum, sum_costs
from gangplan.model.cost import format_hours
from gangplan.model.measured import read_measurements
from gangplan.pipeline.history import RunInHistory, StayCost, Told, read_run_history
from gangplan.pipeline.request import Request
from gangplan.report.costs import (
    CostRow,
    build_cost_item_json,
    build_cost_item_rows,
    build_cost_sum_rows,
    build_costs_json,
    format_cost_decimal,
    format_money,
    render_cost_rows_csv,
)

_FORMATS = ("table", "csv", "json")
_WIDEST = 63
_DAY_S = 86_400


def print_cost_history(
    request: Request,
    by: str,
    since: str | None,
    format: str,
    measured: Path | None = None,
    until: str | None = None,
) -> Exit:
    """Print which runs the branch had since a day, or got up to another day and on it, what they cost at most,
    and what they cost for the hours that were measured.

    Raises UserError for invalid flags, for a file that is not an export, and if there are no runs.
    """
    name, equals, file = format.partition("=")
    if name not in _FORMATS:
        raise UserError(f"there is no format '{name}'", f"Formats: {', '.join(_FORMATS)}.")
    if by not in COST_GROUPS or by == "month":
        raise UserError(f"history is not added up by '{by}'", "By: run, team, cluster, pool.")
    if since is None:
        raise UserError("--history needs a day to begin with", "Write --since 2026-11-01.")
    if request.specs:
        raise UserError("--history is about runs, not specs", "Choose with --team and --cluster.")
    target = resolve_output_file_flag(file, request.root, "the history") if equals else None
    first, end = _find_midnight(resolve_day(since, "--since")), None
    if until is not None:
        end = (
            _find_midnight(resolve_day(until, "--until")) + _DAY_S
        )  # the last day may be the calendar's last
        if end <= first:
            raise UserError(f"--until {until} is before --since {since}", f"Write --until {since} or later.")
    lasted = _read_measured_hours(measured) if measured is not None else None
    told = read_run_history(request.root, first, request.clusters, request.teams, lasted, end)
    _refuse_measured_flag_for_two_clusters(told, measured)
    if not told.items:
        if until is not None:
            message = f"Git got no runs in rendered/ from {since} to {until}"
            raise UserError(message, "Name other days, or leave --until out.")
        raise UserError(f"Git had no runs in rendered/ since {since}", "Name an earlier day.")
    said = _format_costs_for_history_flag(told, by, name, lasted is not None)
    if target is not None:
        target.write(said)
    else:
        sys.stdout.write(said)
    return Exit.CLEAN


def _find_midnight(day: datetime.date) -> int:
    """Return the first second of a day (UTC), in seconds since 1970."""
    return int(datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp())


def _read_measured_hours(path: Path) -> dict[tuple[str, str], Decimal]:
    found = {name: one.hours for name, one in read_measurements(path).items() if one.hours is not None}
    if not found:
        raise UserError(f"{path} has no hours of runs", "Save the answer to the query of docs/cost.md.")
    return found


def _refuse_measured_flag_for_two_clusters(told: Told, path: Path | None) -> None:
    """Refuse hours that would count on two clusters: an export is of one. Raises UserError."""
    seen: dict[tuple[str, str], str] = {}
    for one in told.items:
        if one.used is None:
            continue
        other = seen.setdefault((one.stay.team, one.stay.run), one.stay.cluster)
        if other != one.stay.cluster:
            message = f"{path} has {one.stay.run}, which is on {other} and on {one.stay.cluster}"
            raise UserError(message, f"Say whose file it is: --cluster {other}.")


def _format_costs_for_history_flag(told: Told, by: str, format: str, is_measured: bool) -> str:
    items = [one.most for one in told.items]
    rows = [
        {
            **_build_stay_facts_for_history_flag(one.stay),
            **build_cost_item_json(one.most),
            **(_build_use_facts_for_measured_flag(one) if is_measured else {}),
        }
        for one in told.items
    ]
    if format == "csv":
        return render_cost_rows_csv(rows)
    found = sum_costs(items, COST_GROUPS[by])
    if format == "json":
        body = {**build_costs_json(items, found, by), "runs": rows, "schedules": told.schedules}
        if is_measured:
            body["used"] = build_costs_json([], _sum_used(told, COST_GROUPS[by]), by)["sums"]
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    text = format_terminal_table(
        _build_cost_rows_for_history_flag(told.items, is_measured)
        if by == "run"
        else _build_cost_sums_for_history_flag(told, by, COST_GROUPS[by], is_measured),
        widest=_WIDEST,
    )
    if len(items) > 1:
        total = _build_cost_sums_for_history_flag(told, "in all", lambda _: "total", is_measured)
        text += "\n" + format_terminal_table(total, widest=_WIDEST)
    text += "\nGit knows when runs came and went, not when they trained: at most, until their timeouts or their end\n"
    if is_measured:
        known = sum(one.used is not None for one in told.items)
        text += f"used: by the hours of {known} of {format_plural(len(items), 'run')} that were measured\n"
    if told.schedules:
        text += (
            f"not counted: runs that {format_plural(told.schedules, 'schedule')} created, which Git has not\n"
        )
    return text


def _sum_used(told: Told, key: Callable[[CostItem], str]) -> list[CostSum]:
    return sum_costs([one.used for one in told.items if one.used is not None], key)


def _build_cost_sums_for_history_flag(
    told: Told, by: str, key: Callable[[CostItem], str], is_measured: bool
) -> list[CostRow]:
    sums = sum_costs([one.most for one in told.items], key)
    rows = build_cost_sum_rows(sums, by, False)
    if not is_measured:
        return rows
    used = {(one.name, one.currency): one for one in _sum_used(told, key)}
    return [
        {
            **row,
            "used GPU-hours": format_hours(found.gpu_hours) if found else None,
            "used": format_money(found.cost, found.currency)
            if found and found.unpriced < found.runs
            else None,
        }
        for row, one in zip(rows, sums, strict=True)
        for found in [used.get((one.name, one.currency))]
    ]


def _build_cost_rows_for_history_flag(told: Sequence[StayCost], is_measured: bool) -> list[CostRow]:
    return [
        {
            **row,
            **(
                {
                    "hours": format_hours(one.hours) if one.hours is not None else None,
                    "used": format_money(one.used.cost, one.used.currency) if one.used else None,
                }
                if is_measured
                else {}
            ),
            "entered": _build_stay_facts_for_history_flag(one.stay)["entered"],
            "left": _build_stay_facts_for_history_flag(one.stay)["left"],
        }
        for row, one in zip(build_cost_item_rows([one.most for one in told], False), told, strict=True)
    ]


def _build_use_facts_for_measured_flag(one: StayCost) -> CostRow:
    used = one.used
    return {
        "measuredHours": format_cost_decimal(one.hours),
        "usedGpuHours": format_cost_decimal(used.gpu_hours) if used else None,
        "usedCpuHours": format_cost_decimal(used.cpu_hours) if used else None,
        "used": format_cost_decimal(used.cost) if used else None,
    }


def _build_stay_facts_for_history_flag(stay: RunInHistory) -> CostRow:
    left = stay.left
    return {
        "entered": _format_utc_time(stay.entered.time_s),
        "enteredCommit": stay.entered.commit,
        "left": _format_utc_time(left.time_s) if left else None,
        "leftCommit": left.commit if left else None,
        "how": None if left is None else "ended" if stay.is_ended else "removed",
    }


def _format_utc_time(time_s: int) -> str:
    return f"{datetime.datetime.fromtimestamp(time_s, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
