"""Scheduled runs: what starts them on the cluster, and which starts are missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gangplan.model.backend import TRAINJOB
from gangplan.model.cost import compute_max_seconds
from gangplan.model.cron import HOUR, MINUTE, find_next_cron_start, parse_cron
from gangplan.model.duration import format_duration
from gangplan.model.job import HASH_PLACEHOLDER, EnvVar, Job, RunSchedule, ValueOrigin
from gangplan.model.pods import CHECKPOINT_ENV, RUN_NAME_VARIABLE, sort_variables
from gangplan.model.starts import (
    FIRST_YEAR,
    NoZonesError,
    find_clock_changes,
    find_shortest_cron_start_gap,
    find_time_zone,
)
from gangplan.resolve.client import resolve_client_image
from gangplan.resolve.context import JobResolution
from gangplan.rules.model import WARNING
from gangplan.rules.schedules import (
    SCHEDULE_CLOCK,
    SCHEDULE_DEADLINE,
    SCHEDULE_NEVER,
    SCHEDULE_NOT_OFFERED,
    SCHEDULE_OVERLAP,
    SCHEDULE_UNUSABLE,
    SCHEDULE_ZONE,
)
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import Schedule as Asked

# With more missed starts than this within the deadline, the controller warns
# (pkg/controller/cronjob/utils.go).
MOST_MISSED = 100
# 1 January of the first year in which starts are checked, in seconds since 1970.
_BEGIN = (FIRST_YEAR - 1970) * 365 * 86400


def resolve_schedule_backend(cluster: Cluster) -> str:
    """Return what starts scheduled runs on a cluster: cronjob or commit; empty if nothing does."""
    offered = cluster.schedules
    if offered is None:
        return ""
    return offered.starter(cluster.gitops_only)


def resolve_schedule(context: JobResolution, job: Job, asked: Asked, field: str = "schedule") -> Job:
    """Return the job with its schedule, or with one that `field` leads to, and report findings.

    A schedule of another job is checked where it is written.
    """
    backend = resolve_schedule_backend(context.cluster.spec)
    if not backend:
        message = f"cluster {context.cluster.name} offers no schedules"
        help = "Remove schedule, or ask the cluster's owner for schedules: {client: IMAGE, egress: [NAME]}."
        context.report(SCHEDULE_NOT_OFFERED, context.where("schedule", key=True), message, help)
        return job
    if field == "schedule":
        _check_schedule_times(context, asked, job)
    client, uid, gid = resolve_client_image(context, "schedule") if backend == "cronjob" else ("", 0, 0)
    if client:
        for place, message in _find_schedule_obstacles(job):
            help = "Remove it, or let commits start the runs (schedules.backend: commit of the cluster)."
            place = field if place == "schedule" else place
            context.report(SCHEDULE_UNUSABLE, context.where(place, key=True), message, help)
    made = RunSchedule(
        asked.cron, asked.time_zone, asked.starting_deadline, asked.keep, asked.concurrency, client, uid, gid
    )
    is_dated = bool(client)
    env = _add_dated_pods_to_no_proxy(job) if is_dated else job.env
    return replace(
        job, schedule=made, is_dated=is_dated, env=_give_checkpoints_own_folder(job, env, is_dated)
    )


def _give_checkpoints_own_folder(job: Job, env: tuple[EnvVar, ...], is_dated: bool) -> tuple[EnvVar, ...]:
    """Return the variables with a folder of each run's own in CHECKPOINT_DIR.

    Otherwise each start of a schedule would resume the finished training of the one before. A dated run's name is
    a variable, which must come before the one that uses it.
    """
    if "checkpoint" not in job.origins:
        return env
    name = f"$({RUN_NAME_VARIABLE})" if is_dated else f"{job.name}-{HASH_PLACEHOLDER}"
    folder = next(one for one in env if one.name == CHECKPOINT_ENV[0])
    value = folder.value.replace("$(", "$$(") if is_dated else folder.value
    folder = replace(folder, value=f"{value}/{name}", is_expanded=is_dated)
    rest = [one for one in env if one.name not in (RUN_NAME_VARIABLE, folder.name)]
    return sort_variables((*rest, folder, *([build_dated_run_name_env()] if is_dated else [])))


def _add_dated_pods_to_no_proxy(job: Job) -> tuple[EnvVar, ...]:
    """Return the variables of dated runs, with the names of their pods in NO_PROXY.

    The runtime exists before the run, so each pod reads the run's name from its label (JobSet v0.10 to v0.12)
    into a variable that must come before NO_PROXY: a variable can use only those before it.
    """
    own = f".{job.name}-{HASH_PLACEHOLDER}"
    found = [
        _insert_dated_run_name_variable(one, own) if own in one.value.split(",") else one for one in job.env
    ]
    if found == list(job.env):
        return job.env
    return sort_variables((*found, build_dated_run_name_env()))


def build_dated_run_name_env() -> EnvVar:
    """Return the variable with the name of a dated run, read from the label of its pods."""
    origins = (
        ValueOrigin("spec", ("env", RUN_NAME_VARIABLE), f"env in the spec could set {RUN_NAME_VARIABLE}"),
    )
    return EnvVar(RUN_NAME_VARIABLE, field=f"metadata.labels['{TRAINJOB.run_label}']", origins=origins)


def _insert_dated_run_name_variable(one: EnvVar, own: str) -> EnvVar:
    value = ",".join(
        f".$({RUN_NAME_VARIABLE})" if part == own else part.replace("$(", "$$(")
        for part in one.value.split(",")
    )
    return replace(one, value=value, is_expanded=True)


def _find_schedule_obstacles(job: Job) -> Iterator[tuple[str, str]]:
    """Yield fields that put names of pods into the runtime, with the reason why schedules cannot use them."""
    if job.backend.name != "trainjob":
        yield "schedule", f"schedules start TrainJobs, and here runs are {job.backend.kind}s"
    if job.trial is not None:
        yield "schedule", "trials of a sweep run once each"
    if job.elastic is not None:
        yield "elastic", "workers of an elastic run meet at a pod that is named in the runtime"
    if job.roles:
        yield "roles", "pods of roles are named in the runtime, so that they find each other"
    elif job.image.framework == "plain" and job.workers > 1:
        yield "schedule", "workers of framework plain find each other by a name in the runtime (MASTER_ADDR)"
    elif job.image.framework == "paddle" and job.workers > 1:
        yield (
            "schedule",
            "workers of framework paddle find each other by a name in the runtime (PADDLE_MASTER)",
        )
    elif job.image.framework == "tensorflow":
        yield (
            "schedule",
            "workers of framework tensorflow find each other by names in the runtime (TF_CONFIG)",
        )


def _check_schedule_times(context: JobResolution, asked: Asked, job: Job) -> None:
    try:
        find_time_zone(asked.time_zone)
    except KeyError:
        message = f"'{asked.time_zone}' is not a time zone in the tz database"
        help = "Write it as in Europe/Berlin or Etc/UTC."
        context.report(SCHEDULE_ZONE, context.where("schedule", "timeZone"), message, help)
        return
    except NoZonesError:
        message = f"time zone '{asked.time_zone}' cannot be looked up: there is no tz database here, so starts are not checked"
        help = "Install the system's tzdata, or the Python package tzdata."
        context.report(SCHEDULE_ZONE, context.where("schedule", "timeZone"), message, help, WARNING)
        return
    if find_next_cron_start(parse_cron(asked.cron), _BEGIN, find_time_zone(asked.time_zone)) is None:
        message = f"'{asked.cron}' names a day that does not exist, so no run ever starts"
        context.report(SCHEDULE_NEVER, context.where("schedule", "cron"), message, "Correct day and month.")
        return
    _check_gap_between_scheduled_starts(context, asked, job)
    _check_schedule_across_clock_changes(context, asked)


def _check_gap_between_scheduled_starts(context: JobResolution, asked: Asked, job: Job) -> None:
    """Check the shortest time between two starts against the timeout and the deadline for late ones."""
    found = find_shortest_cron_start_gap(asked.cron, asked.time_zone)
    gap = found[0] if found else 0
    at = context.where("schedule", "startingDeadline")
    if asked.starting_deadline < MINUTE:
        message = f"startingDeadline is {format_duration(asked.starting_deadline)}: the controller, which looks every ten seconds, may miss each start"
        context.report(SCHEDULE_DEADLINE, at, message, "Write 1m or more.")
    if gap and asked.starting_deadline > MOST_MISSED * gap:
        message = f"more than {MOST_MISSED} starts lie within the startingDeadline of {format_duration(asked.starting_deadline)}"
        help = f"Write {format_duration(MOST_MISSED * gap)} or less."
        context.report(SCHEDULE_DEADLINE, at, message, help)
    longest = compute_max_seconds(job)
    if gap and longest > gap:
        tries = (
            f" ({job.retries + 1} tries of {format_duration(job.timeout_s)})"
            if longest > job.timeout_s
            else ""
        )
        message = f"a run may take {format_duration(longest)}{tries}, but the next one can be due {format_duration(gap)} after it; that start would be skipped"
        fix = f"Write timeout: {format_duration(_round_down_duration(gap * job.timeout_s // longest))} or less, or start less often."
        context.report(SCHEDULE_OVERLAP, context.origin_of("timeout", ("schedule", "cron")), message, fix)


def _round_down_duration(seconds: int) -> int:
    """Round a time down to one that people would write."""
    unit = HOUR if seconds >= 2 * HOUR else MINUTE
    return max(seconds // unit * unit, min(seconds, MINUTE))


def _check_schedule_across_clock_changes(context: JobResolution, asked: Asked) -> None:
    for one in find_clock_changes(asked.cron, asked.time_zone):
        what = (
            "comes twice, and so does the start"
            if one.is_twice
            else "does not exist, and that start is left out"
        )
        message = f"in {asked.time_zone}, {one.local} {what}"
        help = "Choose an hour that clock changes do not affect, or write timeZone: Etc/UTC."
        context.report(SCHEDULE_CLOCK, context.where("schedule", "cron"), message, help)
