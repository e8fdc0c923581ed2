"""`gangplan retire` and jobs that follow others: which runs must stay until their followers are over as
well."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gangplan.pipeline.worker import PlannedRun


def find_active_followers_by_spec(
    runs: Iterable[PlannedRun], is_over: Callable[[PlannedRun], object]
) -> dict[str, str]:
    """Return, by spec, an active job that follows it and stays: it would otherwise wait for a stopped run.

    A job stays if it is not over on all of its clusters, or if a job that stays follows it.
    """
    jobs: dict[str, list[PlannedRun]] = {}
    for run in runs:
        if run.unit.job.after is not None and run.unit.job.is_active:
            jobs.setdefault(run.unit.job.source, []).append(run)
    found: dict[str, str] = {}
    stays = [source for source, own in jobs.items() if not all(map(is_over, own))]
    while stays:
        for run in jobs.pop(stays.pop(), ()):
            assert run.unit.job.after is not None
            for one in run.unit.job.after.jobs:
                found.setdefault(one.file, run.unit.job.name)
                stays.append(one.file)
    return found
