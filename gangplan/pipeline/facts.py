"""The facts of a planned run and its verdict, for commands that compare runs."""

from __future__ import annotations

from gangplan.model.cost import (
    cpu_of,
    gpus_of,
    most_cost,
    most_seconds,
    step_cpu_seconds,
    step_gpu_seconds,
    step_gpus,
)
from gangplan.model.job import Job
from gangplan.model.run_facts import RunFacts
from gangplan.plan import Unit
from gangplan.validate.kueue import Verdict, admission_words


def _after(job: Job) -> str:
    """Return the jobs that a job follows, once or at each start; empty for a run that is over."""
    names = (
        [one.name for one in job.after.jobs] if job.after else job.schedule.follows if job.schedule else ()
    )
    return " ".join(names) if job.is_active else ""


def facts_of(cluster: str, unit: Unit, name: str, verdict: Verdict | None) -> RunFacts:
    """Return the facts of a run, under the name that it has in the tree."""
    job, cost = unit.job, most_cost(unit.job)
    workers = unit.layout.workers
    return RunFacts(
        job.source,
        cluster,
        job.team,
        job.name,
        name,
        job.spec_hash,
        "archived" if job.is_archived else "stopped" if job.is_stopped else "active",
        workers,
        unit.layout.ranks,
        gpus_of(job),
        cpu_of(job),
        most_seconds(job),
        "" if cost is None else str(cost),
        "" if cost is None else job.platform.currency,
        job.worker_pool.name,
        job.queue,
        job.priority,
        job.image.reference,
        verdict.outcome if verdict else "",
        admission_words(verdict),
        f"{job.schedule.cron} {job.schedule.time_zone}" if job.schedule and job.is_dated else "",
        job.schedule.keep + 1 if job.schedule and job.is_dated else 0,
        f"{job.schedule.cron} {job.schedule.time_zone}" if job.schedule else "",
        _after(job),
        job.made_of,
        step_gpus(job),
        sum(one.resources.cpu.nano for one in job.steps if one.pool == job.worker_pool),
        step_gpu_seconds(job),
        step_cpu_seconds(job),
        job.retired,
    )
