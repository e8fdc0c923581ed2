"""The runs that a run comes after: which ones it can wait for, and what creates it once they are complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gangplan.model.job import Job, Origin
from gangplan.model.pods import AwaitedJob, RunDependencies
from gangplan.resolve.client import resolve_client_image
from gangplan.resolve.context import JobResolution
from gangplan.resolve.handed_on import check_claims_passed_to_later_job, check_regimes_of_data_passed_on
from gangplan.resolve.order import Order, OrderedJob, order_of
from gangplan.resolve.schedule import resolve_schedule_backend
from gangplan.rules.after import (
    AFTER_CYCLE,
    AFTER_ELSEWHERE,
    AFTER_NEVER,
    AFTER_NOT_OFFERED,
    AFTER_UNKNOWN,
    AFTER_UNUSABLE,
)
from gangplan.spec.cluster import Cluster
from gangplan.spec.declare import suggest_known_or_new
from gangplan.workspace import Workspace

_STATES = {
    "stopped": "is stopped, so it never completes",
    "archived": "is archived, so no engine starts it",
}


def resolve_run_order_engine(cluster: Cluster) -> str:
    """Return what creates runs after others: job, tekton or kfp; empty if nothing does."""
    if cluster.schedules is None or cluster.schedules.client is None:
        return ""
    if cluster.pipelines is not None:
        return cluster.pipelines.engine
    return "job" if resolve_schedule_backend(cluster) == "cronjob" else ""


def resolve_awaited_jobs(context: JobResolution, workspace: Workspace, job: Job) -> Job:
    """Return the job with the runs that it comes after, and report findings about them."""
    context.origins["after"] = Origin("spec", context.where("after"))
    if not job.is_active:
        return job  # nothing is created, and existing runs go on
    engine = resolve_run_order_engine(context.cluster.spec)
    if not engine:
        message = f"nothing on cluster {context.cluster.name} creates runs once others are complete"
        help = "Remove after, or ask the cluster's owner for schedules: {client: IMAGE, egress: [NAME]}."
        context.report(AFTER_NOT_OFFERED, context.where("after", key=True), message, help)
        return job
    for place, message, help in _find_obstacles_to_awaiting_jobs(job):
        context.report(AFTER_UNUSABLE, context.where(place, key=True), message, help)
    order = order_of(workspace, context.team.name)
    cycle = order.cycle(context.spec.source.stem)
    if cycle:
        message = f"the jobs wait for each other, and none ever starts: {' → '.join(cycle)}"
        help = "Remove one of them from an after; the arrows mean 'comes after'."
        context.report(AFTER_CYCLE, context.where("after", key=True), message, help)
        return job
    found: list[AwaitedJob] = []
    names = context.spec.spec.after
    for index, name in enumerate(names):
        if name in names[:index]:
            context.report(
                AFTER_UNUSABLE, context.where("after", index), f"{name} is named twice", "Remove one."
            )
        elif one := _resolve_job_named_in_after(context, order, job, engine, name, index):
            found.append(one)
    client, uid, gid = resolve_client_image(context, "after")
    return replace(job, after=RunDependencies(tuple(found), engine, client, uid, gid))


def _find_obstacles_to_awaiting_jobs(job: Job) -> Iterator[tuple[str, str, str]]:
    """Yield why runs of this job cannot wait for others, as field, message and help."""
    if job.backend.name != "trainjob":
        message = f"only TrainJobs can be created after other runs, but here runs are {job.backend.kind}s"
        yield "after", message, "Remove after, or choose a cluster with Trainer."
    if job.trial is not None:
        help = "Remove it, and add the trials once what they need is complete."
        yield "after", "trials of a sweep start when Kueue admits them, and cannot wait for a job", help
    if job.schedule is not None:
        message = "a schedule starts this job, whether others are complete or not"
        help = "Remove after or schedule: a job that comes after a scheduled one runs after each of its runs."
        yield "after", message, help


def _resolve_job_named_in_after(
    context: JobResolution, order: Order, job: Job, engine: str, name: str, index: int
) -> AwaitedJob | None:
    """Return one of the runs that it waits for, or None if it cannot wait for it."""
    where = context.where("after", index)
    step = order.step(name)
    if step is None:
        others = order.files.keys() - {context.spec.source.stem}
        message = f"team {context.team.name} has no spec {name}.yaml, so this run would wait forever"
        context.report(AFTER_UNKNOWN, where, message, suggest_known_or_new("job", name, others))
        return None
    if step.spec is None:
        return None  # an error in its file is reported there
    if step.spec.state in _STATES or step.spec.schedule is not None:
        message = (
            f"{name} {_STATES[step.spec.state]}"
            if step.spec.state in _STATES
            else f"commits start the runs of {name}, so it is unclear which of them to wait for"
        )
        help = (
            "Remove it from after; a run that was created stays."
            if step.spec.state in _STATES
            else f"Do this job's work at the end of {name}'s command, or start {name} without a schedule."
        )
        context.report(AFTER_NEVER, where, message, help)
        return None
    cluster = context.cluster.name
    if cluster not in step.clusters:
        if not step.clusters:
            return None
        if engine == "job":
            _report_after_entry_on_other_cluster(context, step, index)
            return None
        cluster = step.clusters[0]
    check_claims_passed_to_later_job(context, step, cluster, index)
    check_regimes_of_data_passed_on(context, job, step, index)
    return AwaitedJob(step.job, step.file.file, cluster)


def _report_after_entry_on_other_cluster(context: JobResolution, step: OrderedJob, index: int) -> None:
    here = context.cluster.name
    message = (
        f"{step.job} runs on {' and '.join(step.clusters)}, and this run would wait on {here},"
        f" where nothing sees that {step.job} is complete"
    )
    help = (
        f"Let {step.job} run on {here}, too, or ask the owner of {here} for pipelines: {{engine: tekton}},"
        " whose pipeline sees both clusters."
    )
    context.report(AFTER_ELSEWHERE, context.where("after", index), message, help)
