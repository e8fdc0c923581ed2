"""The facts of a planned run and its verdict, for commands that compare runs."""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.model.cost import (
    compute_max_cost,
    compute_max_seconds,
    count_other_cpu_seconds,
    count_step_gpu_seconds,
    count_step_gpus,
    cpu_of,
    gpus_of,
    list_other_cpus,
)
from gangplan.model.job import Job
from gangplan.model.run_facts import RunFacts
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.validate.kueue import AdmissionVerdict, format_admission


def _join_followed_jobs_for_run_facts(job: Job) -> str:
    """Return the jobs that a job follows, once or at each start; empty for a run that is over."""
    names = (
        [one.name for one in job.after.jobs] if job.after else job.schedule.follows if job.schedule else ()
    )
    return " ".join(names) if job.is_active else ""


def collect_run_facts(
    cluster: str, unit: RunPlan, name: str, verdict: AdmissionVerdict | None, bodies: Iterable[Body]
) -> RunFacts:
    """Return the facts of a run, under the name that it has in the tree; `bodies` are its objects."""
    job, cost = unit.job, compute_max_cost(unit.job)
    workers = unit.layout.workers
    config_maps = sum(body["kind"] == "ConfigMap" for body in bodies)
    config_maps += job.is_dated  # the template of what a schedule starts
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
        compute_max_seconds(job),
        "" if cost is None else str(cost),
        "" if cost is None else job.platform.currency,
        job.worker_pool.name,
        job.queue,
        job.priority,
        job.image.reference,
        verdict.outcome if verdict else "",
        format_admission(verdict),
        f"{job.schedule.cron} {job.schedule.time_zone}" if job.schedule and job.is_dated else "",
        job.schedule.keep + 1 if job.schedule and job.is_dated else 0,
        f"{job.schedule.cron} {job.schedule.time_zone}" if job.schedule else "",
        _join_followed_jobs_for_run_facts(job),
        job.made_of,
        count_step_gpus(job),
        sum(cpu for pool, cpu, _ in list_other_cpus(job) if pool == job.worker_pool),
        count_step_gpu_seconds(job),
        count_other_cpu_seconds(job),
        config_maps,
        job.uses_mpi,
        job.retired,
    )
