"""`gangplan cost --history`."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence

from gangplan.api.checks import day_of
from gangplan.commands.cost import GROUPS
from gangplan.commands.listing import table
from gangplan.commands.outfile import out_file
from gangplan.errors import Exit, UserError
from gangplan.model.bill import Item, sums
from gangplan.pipeline.history import Stay, history
from gangplan.pipeline.request import Request
from gangplan.report.costs import Row, document, facts, item_rows, sum_rows, table_csv

_FORMATS = ("table", "csv", "json")
_WIDEST = 63


def cost_history(request: Request, by: str, since: str | None, format: str) -> Exit:
    """Print which runs the branch had since a day, and what they cost at most.

    Raises UserError for invalid flags, and if there are no runs.
    """
    name, equals, file = format.partition("=")
    if name not in _FORMATS:
        raise UserError(f"there is no format '{name}'", f"Formats: {', '.join(_FORMATS)}.")
    if by not in GROUPS or by == "month":
        raise UserError(f"history is not added up by '{by}'", "By: run, team, cluster, pool.")
    if since is None:
        raise UserError("--history needs a day to begin with", "Write --since 2026-11-01.")
    if request.specs:
        raise UserError("--history is about runs, not specs", "Choose with --team and --cluster.")
    target = out_file(file, request.root, "the history") if equals else None
    midnight = datetime.datetime.combine(day_of(since), datetime.time(), datetime.UTC)
    told = history(request.root, int(midnight.timestamp()), request.clusters, request.teams)
    if not told.items:
        raise UserError(f"Git had no runs in rendered/ since {since}", "Name an earlier day.")
    said = _said(told.items, by, name, told.schedules)
    if target is not None:
        target.write(said)
    else:
        sys.stdout.write(said)
    return Exit.CLEAN


def _said(told: Sequence[tuple[Stay, Item]], by: str, format: str, schedules: int) -> str:
    items = [item for _, item in told]
    rows = [{**_stay(stay), **facts(item)} for stay, item in told]
    if format == "csv":
        return table_csv(rows)
    found = sums(items, GROUPS[by])
    if format == "json":
        body = {**document(items, found, by), "runs": rows, "schedules": schedules}
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    text = table(_rows(told) if by == "run" else sum_rows(found, by, False), widest=_WIDEST)
    if len(items) > 1:
        text += "\n" + table(sum_rows(sums(items, lambda _: "total"), "in all", False), widest=_WIDEST)
    text += "\nGit knows when runs came and went, not when they trained: at most, until their timeouts or their end\n"
    if schedules:
        text += f"not counted: runs that {schedules} schedule{'' if schedules == 1 else 's'} created, which Git has not\n"
    return text


def _rows(told: Sequence[tuple[Stay, Item]]) -> list[Row]:
    return [
        {**row, "entered": _stay(stay)["entered"], "left": _stay(stay)["left"]}
        for row, (stay, _) in zip(item_rows([item for _, item in told], False), told, strict=True)
    ]


def _stay(stay: Stay) -> Row:
    left = stay.left
    return {
        "entered": _moment(stay.entered.time_s),
        "enteredCommit": stay.entered.commit,
        "left": _moment(left.time_s) if left else None,
        "leftCommit": left.commit if left else None,
        "how": None if left is None else "ended" if stay.is_ended else "removed",
    }


def _moment(time_s: int) -> str:
    return f"{datetime.datetime.fromtimestamp(time_s, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
