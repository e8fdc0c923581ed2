"""`gangplan repeat`: jobs that are due where commits start runs, and runs of schedules to delete.

A start is due from its minute on, for as long as startingDeadline says. It was made if Git got a run of the
job since then, by any commit. Nothing is due while the last run is not over: by the statuses that a cluster
reported, else until the longest time that a run may take has passed since its commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from gangplan.model.cost import compute_max_seconds
from gangplan.model.cron import iterate_cron_starts, parse_cron
from gangplan.model.job import Job, RunSchedule
from gangplan.model.starts import find_time_zone
from gangplan.model.statuses import RunStatus
from gangplan.pipeline.request import Request
from gangplan.pipeline.retire import GitPast, Retirement, Retirements, read_git_past
from gangplan.pipeline.retire_choice import RunSelection
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.source import load_document
from gangplan.tools.git import read_files_at

_DATED = re.compile(r"-[0-9]{8}-[0-9]{4}")
# What follows the job's name in the file name of a run.
_OF_JOB = re.compile(r"-[0-9a-f]{8}\.yaml")


@dataclass(frozen=True, slots=True)
class DueRepetition:
    """A job with a schedule: `run` is its next number if a start is due, else 0, and `why` gives the
    reason."""

    source: str
    job: str
    run: int
    why: str


def find_due_job_repetitions(
    request: Request, runs: Sequence[PlannedRun], now: int, statuses: Sequence[RunStatus] | None
) -> list[DueRepetition]:
    """Return what is due at a moment, in seconds since 1970. Raises UserError and ToolError as
    `read_git_past`."""
    jobs: dict[str, list[PlannedRun]] = {}
    for run in runs:
        job = run.unit.job
        if job.schedule is not None and not job.is_dated and job.is_active:
            jobs.setdefault(job.source, []).append(run)
    past = read_git_past(request) if jobs else GitPast({}, {})
    return [
        _decide_if_job_repetition_is_due(request, jobs[source], past, now, statuses)
        for source in sorted(jobs)
    ]


def _decide_if_job_repetition_is_due(
    request: Request,
    runs: Sequence[PlannedRun],
    past: GitPast,
    now: int,
    statuses: Sequence[RunStatus] | None,
) -> DueRepetition:
    job = runs[0].unit.job
    assert job.schedule is not None
    name, due = f"{job.team}/{job.name}", find_last_schedule_start(job.schedule, now)
    if due is None:
        return DueRepetition(job.source, name, 0, "no start is due")
    added = max((at for run in runs for at in _list_run_commit_times(run, past)), default=None)
    if added is None:
        return DueRepetition(job.source, name, 0, "its first run is not committed yet")
    if added >= due:
        return DueRepetition(job.source, name, 0, "its start was made")
    if job.run > _read_committed_run_number(request, job):
        return DueRepetition(job.source, name, 0, f"run: {job.run} in its spec is not committed yet")
    active = _explain_unfinished_last_run(job, runs, added, now, statuses)
    if active:
        return DueRepetition(job.source, name, 0, f"start skipped: {active}")
    return DueRepetition(job.source, name, job.run + 1, "its start is due")


def _read_committed_run_number(request: Request, job: Job) -> int:
    """Return the number of the run in the committed spec; that of the job where none is committed."""
    folder, _, name = job.source.rpartition("/")
    data = read_files_at(request.root, "HEAD", folder).get(name)
    document, _ = load_document(data, job.source) if data is not None else (None, [])
    if document is None or not isinstance(document.value, dict):
        return job.run
    number = document.value.get("run", 1)
    return number if isinstance(number, int) else job.run


def _list_run_commit_times(run: PlannedRun, past: GitPast) -> Iterator[int]:
    """Yield when Git got each run of a job on a cluster."""
    folder, job = run.path.rpartition("/")[0], run.unit.job.name
    for path in past.events:
        if _OF_JOB.fullmatch(path.removeprefix(f"{folder}/{job}")) and path.startswith(f"{folder}/{job}"):
            at = past.first_added_s(path)  # a file that comes back is no other run
            if at is not None:
                yield at


def find_last_schedule_start(schedule: RunSchedule, now: int) -> int | None:
    """Return the last start up to now that is not too late; None without one. Raises KeyError,
    NoZonesError."""
    begin = now - schedule.starting_deadline_s - 1
    found = iterate_cron_starts(parse_cron(schedule.cron), begin, find_time_zone(schedule.time_zone))
    return max(takewhile(lambda at: at <= now, found), default=None)


def _explain_unfinished_last_run(
    job: Job, runs: Sequence[PlannedRun], added: int, now: int, statuses: Sequence[RunStatus] | None
) -> str:
    """Return why the job's last run may not be over; empty if it is."""
    if statuses is not None:
        known = [one for one in statuses if (one.team, one.job) == (job.team, job.name) and not one.is_record]
        waiting = [one.name for one in known if not one.end]
        missing = [run.name for run in runs if run.name not in {one.name for one in known}]
        if waiting:
            return f"run {waiting[0]} still waits or trains"
        return f"run {missing[0]} is not in the cluster yet" if missing and len(runs) == 1 else ""
    left = added + max(compute_max_seconds(run.unit.job) for run in runs) - now
    return f"run {runs[0].name} may still train (--finished FILE tells)" if left > 0 else ""


def add_dated_runs_to_retire(runs: Sequence[PlannedRun], chosen: RunSelection, found: Retirements) -> None:
    """Add dated runs that are over and that their schedule no longer keeps, by the statuses of a cluster."""
    for run in runs:
        job = run.unit.job
        if not job.is_dated or job.schedule is None or run.cluster != chosen.cluster:
            continue
        over = sorted(
            one.name
            for one in chosen.statuses or ()
            if (one.team, one.job) == (job.team, job.name) and one.end
            if _DATED.fullmatch(one.name.removeprefix(job.name))
        )
        why = f"it is over, and its schedule keeps {job.schedule.keep}"
        found.steps += [
            Retirement("delete", run.cluster, job.team, name, job.source, why, job.namespace)
            for name in over[: max(0, len(over) - job.schedule.keep)]
        ]
