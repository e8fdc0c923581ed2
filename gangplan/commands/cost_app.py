"""`gangplan cost`: its flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands.flags import (
    ClustersFlag,
    EngineFlag,
    JobsFlag,
    NoCacheFlag,
    SpecsArgument,
    TeamsFlag,
    TodayFlag,
    WorkspaceFlag,
)
from gangplan.errors import UserError

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


By = Annotated[
    str,
    typer.Option(
        "--by",
        help="run, team, cluster, pool or month: what the table adds up.",
        metavar="WORD",
    ),
]
Durations = Annotated[
    Path | None,
    typer.Option(
        "--durations",
        help="How long jobs are expected to take: lines of team/job: 3h (YAML), * for any text.",
        metavar="FILE",
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="table, csv or json; FORMAT=FILE writes to a file.",
        metavar="FORMAT[=FILE]",
    ),
]
InMonth = Annotated[
    str | None,
    typer.Option(
        "--month",
        help="Cost of all starts of schedules in a month (2026-12) or year (2026); other runs count once.",
        metavar="MONTH",
    ),
]
History = Annotated[
    bool,
    typer.Option(
        "--history",
        help="Show which runs Git had in rendered/ since a day (--since), from which commit to which, and what they cost"
        " at most.",
    ),
]
Since = Annotated[
    str | None, typer.Option("--since", help="With --history: the day to begin with.", metavar="YYYY-MM-DD")
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        help="With --history: the last day; then each run counts in the period in which Git got it.",
        metavar="YYYY-MM-DD",
    ),
]
MeasuredFile = Annotated[
    Path | None,
    typer.Option(
        "--measured",
        help="What runs asked for against what Prometheus measured: its answer to the query of docs/cost.md (JSON); with"
        " --history, what they cost for the hours in which they ran.",
        metavar="FILE",
    ),
]
Elsewhere = Annotated[
    bool,
    typer.Option(
        "--elsewhere",
        help="For the specs that are named: what they would cost, and how long they would wait, on each pool and"
        " cluster of their team.",
    ),
]


@app.command()
def cost(
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    by: By = "run",
    month: InMonth = None,
    today: TodayFlag = None,
    durations: Durations = None,
    format: Format = "table",
    elsewhere: Elsewhere = False,
    history: History = False,
    since: Since = None,
    until: Until = None,
    measured: MeasuredFile = None,
    no_cache: NoCacheFlag = False,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Show what runs cost at most, by their timeouts and the prices of pools, and what they are expected to
    cost."""
    from gangplan.commands.common import build_request
    from gangplan.commands.cost import print_costs as command
    from gangplan.commands.cost import select_months_from_flags
    from gangplan.commands.progress import show_progress_on_terminal

    asked = build_request(workspace, cluster, team, specs, engine, jobs, uses_cache=not no_cache)
    given = {"--by": by != "run", "--month": month is not None, "--durations": durations is not None}
    if history or since is not None or until is not None:
        _refuse_with("--history", given, "--month", "--durations")
        from gangplan.commands.cost_history import print_cost_history

        raise typer.Exit(print_cost_history(asked, by, since, format, measured, until))
    if measured is not None:
        _refuse_with("--measured", given, "--by", "--month", "--durations")
        from gangplan.commands.cost_measured import print_measured_cost

        raise typer.Exit(print_measured_cost(asked, measured, format))
    if elsewhere:
        _refuse_with("--elsewhere", given, "--by", "--month")
        from gangplan.commands.cost_elsewhere import print_cost_elsewhere

        raise typer.Exit(print_cost_elsewhere(asked, durations, format))
    with show_progress_on_terminal() as tick:
        raise typer.Exit(
            command(
                replace(asked, progress=tick),
                by,
                durations,
                format,
                select_months_from_flags(by, month, today),
            )
        )


def _refuse_with(view: str, given: Mapping[str, bool], *flags: str) -> None:
    """Raise UserError if flags were given that a view of costs does not read."""
    if unread := " and ".join(flag for flag in flags if given[flag]):
        raise UserError(f"{view} does not read {unread}", f"Leave out {unread}, or {view}.")
