"""The times at which runs of a job start by themselves, for people and machines.

Starts are listed from a given moment: the clock is only read for a terminal (commands/plan.py).
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any

from gangplan.model.cost import describe_max_use
from gangplan.model.cron import iterate_cron_starts, parse_cron
from gangplan.model.duration import format_duration
from gangplan.model.job import Job
from gangplan.model.starts import NoZonesError, find_time_zone
from gangplan.pipeline.worker import PlannedRun

# How many starts are shown.
MOST = 10
# The indent of a field's further lines.
_INDENT = " " * 12


def format_schedule_with_next_starts(job: Job, since: int | None) -> str:
    """Return `0 2 * * * in Europe/Berlin, by a CronJob, ...`, and below it the next starts after `since`.

    Empty without a schedule.
    """
    if job.schedule is None:
        return ""
    one = job.schedule
    by = "a CronJob" if job.is_dated else "commits"
    text = f"{one.cron} in {one.time_zone}, by {by}, never two at a time;"
    kept = f"keeps {one.keep} that are over" if job.is_dated else "runs stay until they are retired"
    text += f" up to {format_duration(one.starting_deadline_s)} late; {kept}"
    if one.follows:
        text += f"; each after the run of {' and '.join(one.follows)} of the same start"
    shown = format_next_schedule_starts(job, since)
    return "\n".join((text, *(f"{_INDENT}{local}  {name}".rstrip() for local, name in shown)))


def format_next_schedule_starts(job: Job, since: int | None) -> list[tuple[str, str]]:
    """Return the next starts in the schedule's time zone, each with the name of its run if a CronJob makes
    it."""
    if job.schedule is None or since is None or not job.is_active:
        return []
    try:
        zone = find_time_zone(job.schedule.time_zone)
    except (KeyError, NoZonesError):
        return []
    found = islice(iterate_cron_starts(parse_cron(job.schedule.cron), since, zone), MOST)
    return [
        (f"{datetime.fromtimestamp(at, zone):%a %Y-%m-%d %H:%M %z}", _format_dated_run_name(job, at))
        for at in found
    ]


def _format_dated_run_name(job: Job, at: int) -> str:
    return f"{job.name}-{datetime.fromtimestamp(at, UTC):%Y%m%d-%H%M}" if job.is_dated else ""


def build_schedule_json(job: Job, since: int | None) -> dict[str, Any] | None:
    """Return the schedule as data; times in seconds."""
    if job.schedule is None:
        return None
    one = job.schedule
    shown = format_next_schedule_starts(job, since)
    return {
        "cron": one.cron,
        "timeZone": one.time_zone,
        "backend": "cronjob" if job.is_dated else "commit",
        "concurrency": one.concurrency,
        "startingDeadlineSeconds": one.starting_deadline_s,
        "keep": one.keep,
        **({"follows": list(one.follows)} if one.follows else {}),
        **({"starts": [{"at": local, "run": name} for local, name in shown]} if since is not None else {}),
    }


def format_schedule_edit_note(run: PlannedRun) -> str:
    """Return what an edit does to a schedule: nothing starts with a sync, and what trains continues as it
    was."""
    job = run.unit.job
    if job.is_stopped:
        return "stopped: the schedule is suspended; a run that trains goes on to its end"
    if run.name in run.there:
        return "none: starts use the template that is rendered"
    old = [name for name in run.there if name not in job.retired]
    if old:
        return f"from the next start on, runs use {run.name} instead of {', '.join(old)}, each {describe_max_use(job)}"
    return f"new schedule; each start is a run, {describe_max_use(job)}"
