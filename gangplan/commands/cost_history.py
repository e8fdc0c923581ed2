"""`gangplan cost --history`."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence

from gangplan.api.checks import resolve_day
from gangplan.commands.cost import COST_GROUPS
from gangplan.commands.listing import format_table
from gangplan.commands.outfile import resolve_out_file
from gangplan.errors import Exit, UserError
from gangplan.model.bill import CostItem, sum_costs
from gangplan.pipeline.history import RunInHistory, read_run_history
from gangplan.pipeline.request import Request
from gangplan.report.costs import (
    CostRow,
    build_costs_document,
    build_item_facts,
    build_item_rows,
    build_sum_rows,
    render_table_csv,
)

_FORMATS = ("table", "csv", "json")
_WIDEST = 63


def print_cost_history(request: Request, by: str, since: str | None, format: str) -> Exit:
    """Print which runs the branch had since a day, and what they cost at most.

    Raises UserError for invalid flags, and if there are no runs.
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
    target = resolve_out_file(file, request.root, "the history") if equals else None
    midnight = datetime.datetime.combine(resolve_day(since), datetime.time(), datetime.UTC)
    told = read_run_history(request.root, int(midnight.timestamp()), request.clusters, request.teams)
    if not told.items:
        raise UserError(f"Git had no runs in rendered/ since {since}", "Name an earlier day.")
    said = _format_cost_history(told.items, by, name, told.schedules)
    if target is not None:
        target.write(said)
    else:
        sys.stdout.write(said)
    return Exit.CLEAN


def _format_cost_history(
    told: Sequence[tuple[RunInHistory, CostItem]], by: str, format: str, schedules: int
) -> str:
    items = [item for _, item in told]
    rows = [{**_build_stay_facts(stay), **build_item_facts(item)} for stay, item in told]
    if format == "csv":
        return render_table_csv(rows)
    found = sum_costs(items, COST_GROUPS[by])
    if format == "json":
        body = {**build_costs_document(items, found, by), "runs": rows, "schedules": schedules}
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    text = format_table(
        _build_history_rows(told) if by == "run" else build_sum_rows(found, by, False), widest=_WIDEST
    )
    if len(items) > 1:
        text += "\n" + format_table(
            build_sum_rows(sum_costs(items, lambda _: "total"), "in all", False), widest=_WIDEST
        )
    text += "\nGit knows when runs came and went, not when they trained: at most, until their timeouts or their end\n"
    if schedules:
        text += f"not counted: runs that {schedules} schedule{'' if schedules == 1 else 's'} created, which Git has not\n"
    return text


def _build_history_rows(told: Sequence[tuple[RunInHistory, CostItem]]) -> list[CostRow]:
    return [
        {**row, "entered": _build_stay_facts(stay)["entered"], "left": _build_stay_facts(stay)["left"]}
        for row, (stay, _) in zip(build_item_rows([item for _, item in told], False), told, strict=True)
    ]


def _build_stay_facts(stay: RunInHistory) -> CostRow:
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
