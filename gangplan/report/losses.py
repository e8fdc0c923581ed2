"""Lost workers and exit codes in a plan."""

from __future__ import annotations

from gangplan.model.job import Job


def describe_elastic_workers(job: Job) -> str:
    """Return `goes on with 2 to 8 workers; failed ranks start again up to 3 times`; empty for a fixed
    number."""
    if job.elastic is None:
        return ""
    workers = f"goes on with {job.elastic.least} to {job.elastic.most} workers"
    return f"{workers}; failed ranks start again up to {job.elastic.restarts} times"


def describe_exit_codes(job: Job) -> str:
    """Return `tried again only with 137, 143; failed for good with 42`; empty if the spec names no codes."""
    codes = job.exit_codes
    told = (("tried again only with", codes.retry), ("failed for good with", codes.fail))
    return "; ".join(f"{words} {', '.join(map(str, found))}" for words, found in told if found)
