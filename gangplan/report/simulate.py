"""A simulated queue as text for people and as data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.simulate.engine import Event
from gangplan.simulate.outcome import SimulationOutcome, Tally

SHAPE = 1
BARS = " ▁▂▃▄▅▆▇█"


def render_simulation_text(
    cluster: str, outcome: SimulationOutcome, walls: SimulationOutcome | None, never: Sequence[str]
) -> str:
    """Return a table of teams, utilisation over time, and remarks."""
    total = outcome.total
    header = ("team", "runs", "admitted", "preempted", "mean wait", "longest", "lost work", "makespan")
    table = [
        header,
        *(_build_simulation_tally_row(team, tally) for team, tally in outcome.teams.items()),
        _build_simulation_tally_row("all", total),
    ]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    lines = [cluster]
    for line in table:
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join([line[0].ljust(widths[0]), *cells]).rstrip())
    lines.append(
        f"  {outcome.resource}: {_format_usage_percent(outcome.mean)} of {_format_capacity_amount(outcome)} used over {format_simulated_hours(total.makespan)}"
        f", at most {_format_usage_percent(outcome.peak)}"
    )
    lines.append(f"  |{''.join(_render_usage_bar(part) for part in outcome.used)}|")
    if walls is not None:
        lines.append(
            f"  without borrowing: {_format_usage_percent(walls.mean)} over {format_simulated_hours(walls.total.makespan)}, mean wait"
            f" {format_simulated_hours(walls.total.mean_wait)}{_describe_stuck_runs(walls)}"
        )
    lines += [
        f"  {name} can never be admitted and {_describe_unadmitted_run(name, outcome)}" for name in never
    ]
    lines += [
        f"  {name} is never admitted: it waits behind or next to others to the end"
        for name in outcome.waiting
        if name.partition("#")[0] not in never
    ]
    if outcome.endless:
        lines.append(f"  preempt each other again and again: {', '.join(outcome.endless)}")
    return "\n".join(lines) + "\n"


def _describe_unadmitted_run(name: str, outcome: SimulationOutcome) -> str:
    """Return what happens to a run that is never admitted: in a strict queue it blocks all others."""
    is_head = name in outcome.waiting
    return "keeps all runs behind it in its StrictFIFO queue waiting" if is_head else "is left out"


def _describe_stuck_runs(outcome: SimulationOutcome) -> str:
    count = len(outcome.waiting)
    return f"; {count} {'run' if count == 1 else 'runs'} would never start" if count else ""


def _format_capacity_amount(outcome: SimulationOutcome) -> str:
    return str(outcome.capacity // 1000 if outcome.resource == "cpu" else outcome.capacity)


def _build_simulation_tally_row(team: str, tally: Tally) -> tuple[str, ...]:
    return (
        team,
        str(tally.runs),
        str(tally.admissions),
        str(tally.preemptions),
        format_simulated_hours(tally.mean_wait),
        format_simulated_hours(max(tally.waits, default=0.0)),
        format_simulated_hours(tally.lost),
        format_simulated_hours(tally.makespan),
    )


def format_simulated_hours(seconds: float) -> str:
    """Return `0`, `25m`, `6.5h`."""
    if seconds < 60:
        return "0" if not round(seconds) else f"{round(seconds)}s"
    return f"{round(seconds / 60)}m" if seconds < 5400 else f"{seconds / 3600:.1f}h"


def _format_usage_percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _render_usage_bar(part: float) -> str:
    return BARS[min(len(BARS) - 1, round(part * (len(BARS) - 1)))]


def build_simulation_json(
    cluster: str,
    outcome: SimulationOutcome,
    walls: SimulationOutcome | None,
    never: Sequence[str],
    events: Sequence[Event],
) -> dict[str, Any]:
    """Return the simulation as data. Times are seconds, parts are between 0 and 1."""
    return {
        "version": SHAPE,
        "cluster": cluster,
        "resource": outcome.resource,
        "utilisation": {"mean": outcome.mean, "peak": outcome.peak, "over_time": list(outcome.used)},
        "total": _build_simulation_tally_json(outcome.total),
        "teams": {team: _build_simulation_tally_json(tally) for team, tally in outcome.teams.items()},
        "without_borrowing": None
        if walls is None
        else {
            "utilisation": walls.mean,
            "total": _build_simulation_tally_json(walls.total),
            "never_started": list(walls.waiting),
        },
        "never": list(never),
        "waiting": list(outcome.waiting),
        "endless": list(outcome.endless),
        "events": [{"time": event.time, "what": event.what, "run": event.run} for event in events],
    }


def _build_simulation_tally_json(tally: Tally) -> dict[str, Any]:
    return {
        "runs": tally.runs,
        "admissions": tally.admissions,
        "preemptions": tally.preemptions,
        "mean_wait": tally.mean_wait,
        "longest_wait": max(tally.waits, default=0.0),
        "lost": tally.lost,
        "makespan": tally.makespan,
        "unfinished": tally.unfinished,
    }
