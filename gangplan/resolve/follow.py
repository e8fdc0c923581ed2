"""Jobs after a scheduled job: they follow its schedule, with a run after each of its runs.

Both CronJobs are due in the same minute, so the runs have the same date in their names, which tells the pod
of the later one which run it waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gangplan.findings import Finding
from gangplan.model.cost import compute_max_seconds
from gangplan.model.duration import format_duration
from gangplan.model.job import Job, RunSchedule
from gangplan.model.pods import RUN_NAME_VARIABLE, sort_variables
from gangplan.model.starts import NoZonesError, find_shortest_cron_start_gap
from gangplan.resolve.context import JobResolution
from gangplan.resolve.handed_on import check_claims_passed_to_later_job, check_regimes_of_data_passed_on
from gangplan.resolve.order import Order, OrderedJob, order_of
from gangplan.resolve.schedule import build_dated_run_name_env, resolve_schedule, resolve_schedule_backend
from gangplan.rules.after import AFTER_NEVER
from gangplan.rules.schedules import SCHEDULE_OVERLAP
from gangplan.spec.job import Schedule as Asked
from gangplan.workspace import Spec, Workspace, load_spec

Resolve = Callable[[Workspace, Spec, str], tuple[Job | None, list[Finding]]]


def followed(order: Order, name: str) -> Asked | None:
    """Return the schedule that starts a job's runs: its own, or that of the jobs which it comes after."""
    seen, left = set[str](), [name]
    while left:
        one = left.pop(0)
        step = order.step(one)
        if one in seen or step is None or step.spec is None or step.is_sweep:
            continue
        if step.spec.schedule is not None:
            return step.spec.schedule
        seen.add(one)
        left += step.after
    return None


def is_following_schedule(context: JobResolution, workspace: Workspace) -> bool:
    """Return whether the job's runs come after scheduled runs that a CronJob of this cluster starts."""
    spec = context.spec.spec
    if (
        spec.schedule is not None
        or spec.state != "active"
        or resolve_schedule_backend(context.cluster.spec) != "cronjob"
    ):
        return False
    order = order_of(workspace, context.team.name)
    if order.cycle(context.spec.source.stem):
        return False  # reported as for any job
    return any(followed(order, name) for name in spec.after)


def resolve_followed_schedule(
    context: JobResolution, workspace: Workspace, job: Job, resolve: Resolve
) -> Job:
    """Return the job with the schedule that it follows; report findings. `resolve` resolves other jobs."""
    order, here = order_of(workspace, context.team.name), context.cluster.name
    first: Asked | None = None
    names: list[str] = []
    longest = 0
    for index, name in enumerate(dict.fromkeys(context.spec.spec.after)):
        step, asked = order.step(name), followed(order, name)
        why = _explain_why_job_cannot_follow(step, asked, first, here, name)
        if why:
            help = "Let all jobs of after follow one schedule on one cluster, or start this one without any."
            context.report(AFTER_NEVER, context.where("after", index), why, help)
            return job
        assert step is not None
        first = asked
        names.append(step.job)
        longest = max(longest, _compute_longest_followed_run(workspace, step, order, here, resolve))
        check_claims_passed_to_later_job(context, step, here, index)
        check_regimes_of_data_passed_on(context, job, step, index)
    assert first is not None
    job = resolve_schedule(context, job, first, "after")
    if job.schedule is None or not job.is_dated:
        return job
    _check_gap_between_followed_runs(context, job, job.schedule, longest)
    env = job.env
    if all(
        one.name != RUN_NAME_VARIABLE for one in env
    ):  # its date tells the model of one night from another
        env = sort_variables((*env, build_dated_run_name_env()))
    return replace(job, schedule=replace(job.schedule, follows=tuple(names)), env=env)


def _explain_why_job_cannot_follow(
    step: OrderedJob | None, asked: Asked | None, first: Asked | None, here: str, name: str
) -> str:
    """Return why a run cannot follow those of a job; empty if it can."""
    if step is None or step.spec is None:
        return f"{name} has no runs to follow: there is no such spec, or it has errors"
    if asked is None:
        return f"{name} runs once, but the other jobs of after on a schedule, so it has no run for each start"
    if step.spec.state != "active":
        return f"{name} is {step.spec.state}, so nothing starts its runs"
    if first is not None and (asked.cron, asked.time_zone) != (first.cron, first.time_zone):
        return f"{name} starts at other times than the job before it in after, so their runs never belong to the same start"
    if here not in step.clusters:
        return f"{name} does not run on {here}, where nothing sees its runs"
    return ""


def _compute_longest_followed_run(
    workspace: Workspace, step: OrderedJob, order: Order, cluster: str, resolve: Resolve
) -> int:
    """Return how long a run of a job may take after its start, including the runs that it follows."""
    spec, _ = load_spec(workspace.root, step.file, workspace.templates)
    job = resolve(workspace, spec, cluster)[0] if spec is not None else None
    own = compute_max_seconds(job) if job else 0
    if step.spec is None or step.spec.schedule is not None:
        return own
    before = [one for name in step.after if (one := order.step(name))]
    return own + max(
        (_compute_longest_followed_run(workspace, one, order, cluster, resolve) for one in before), default=0
    )


def _check_gap_between_followed_runs(
    context: JobResolution, job: Job, schedule: RunSchedule, before: int
) -> None:
    """Check that the runs of one start, one after the other, end before the next start.

    `before` is 0 if no job before it could be resolved, which is reported there.
    """
    if not before:
        return
    try:
        found = find_shortest_cron_start_gap(schedule.cron, schedule.time_zone)
    except (KeyError, NoZonesError):
        return  # reported where the schedule is written
    gap, mine = found[0] if found else 0, compute_max_seconds(job)
    if not gap or before + mine <= gap:
        return
    message = (
        f"a run may take {format_duration(mine)} after {format_duration(before)} of those before it, but the next"
        f" start can be due {format_duration(gap)} after the first; that start would be skipped"
    )
    help = "Lower timeout here or in the jobs before it, or start less often."
    context.report(SCHEDULE_OVERLAP, context.origin_of("timeout", ("after",)), message, help)
