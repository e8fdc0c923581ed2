"""Checks of how long a run lives, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.findings import FieldPath
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.kueue.refusals import MAX_EXEC
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]


def check_promised_run_deadlines(laid: ExpandedRun) -> Found:
    """Check that the run ends no later than planned; an earlier end is reported as weakened.

    TrainJob has a deadline since Trainer 2.2; before, the deadline of its Job counts. A shorter deadline of a
    Job also applies.
    """
    planned, trainer = laid.unit.job.timeout_s, laid.unit.job.platform.trainer_line
    ends = laid.roles.get(LAUNCHER if laid.uses_mpi else WORKER)
    own: tuple[int, FieldPath] = (laid.train_job, ("spec", "activeDeadlineSeconds"))
    stated = laid.job.get("activeDeadlineSeconds")
    if not trainer.has_run_deadline and ends is not None:
        own = (laid.runtime, (*ends.at, "template", "spec", "activeDeadlineSeconds"))
        stated = ends.job.get("activeDeadlineSeconds")
    if planned and (stated is None or stated > planned):
        when = "never end" if stated is None else f"end after {format_seconds(stated)}"
        message = f"the run would {when}; the plan ends it after {format_seconds(planned)}"
        help = "Write timeout in the spec, or defaults: {timeout: ...} in cluster.yaml."
        yield own[0], report_broken_promise(own[1], message, help, "timeout")
    limits: list[tuple[int, FieldPath, Any]] = [(*own, stated)]
    for role in laid.present:
        job: FieldPath = (*role.at, "template", "spec", "activeDeadlineSeconds")
        limits.append((laid.runtime, job, role.job.get("activeDeadlineSeconds")))
        yield from check_promised_pod_deadline(laid, role)
    for index, path, limit in limits:
        if limit is not None and (not planned or limit < planned):
            is_long = f"the plan gives it {format_seconds(planned)}" if planned else "the plan has no end"
            message = f"the run would end after {format_seconds(limit)}; {is_long}"
            help = "Write timeout in the spec, or limits: {timeoutHours: ...} in cluster.yaml."
            yield index, report_weakened_plan(path, message, help)
            return


def check_promised_kueue_deadline(laid: ExpandedRun) -> Found:
    """Check for a time limit of Kueue below the planned one: Kueue counts from admission, then stops the run.

    Kueue v0.15 to v0.19, pkg/controller/core/workload_controller.go (maximumExecutionTimeSeconds).
    """
    planned, platform = laid.unit.job.timeout_s, laid.unit.job.platform
    stated = str((laid.run.bodies[laid.train_job]["metadata"].get("labels") or {}).get(MAX_EXEC, ""))
    if platform.kueue is None or not stated.isdecimal():  # Kueue refuses all but numbers
        return
    limit = int(stated)
    if not planned or limit < planned:
        is_long = f"the plan gives it {format_seconds(planned)}" if planned else "the plan has no end"
        message = f"Kueue would stop the run for good after {format_seconds(limit)}; {is_long}"
        help = "Write timeout in the spec, or limits: {timeoutHours: ...} in cluster.yaml."
        yield laid.train_job, report_weakened_plan(("metadata", "labels", MAX_EXEC), message, help)


def check_promised_pod_deadline(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check for a pod deadline shorter than planned; it fails the run like a crash, not like a timeout."""
    limit, planned = role.spec.get("activeDeadlineSeconds"), laid.unit.job.timeout_s
    if limit is not None and (not planned or limit < planned):
        is_long = f"the plan gives the run {format_seconds(planned)}" if planned else "the plan has no end"
        message = (
            f"{role.title} would be killed after {format_seconds(limit)}, and the run would fail; {is_long}"
        )
        help = "Write timeout in the spec, or limits: {timeoutHours: ...} in cluster.yaml."
        at: FieldPath = (*role.pod, "activeDeadlineSeconds")
        yield laid.runtime, report_broken_promise(at, message, help, "timeout")


def format_seconds(seconds: int) -> str:
    """Format seconds in the units of a spec."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def check_containers_outlasting_program(laid: ExpandedRun) -> Found:
    """Check that pods whose end is the run's end have no other container that outlasts the program."""
    role = laid.roles.get(LAUNCHER if laid.uses_mpi else WORKER)
    if role is None or role.container is None:
        return
    for index, one in enumerate(role.spec.get("containers") or ()):
        if one["name"] != role.container["name"]:
            message = (
                f"the run would be complete only when container '{one['name']}' of {role.title} has ended too"
            )
            help = (
                "Put it into initContainers with restartPolicy: Always; such a sidecar ends with the program."
            )
            yield laid.runtime, report_weakened_plan((*role.pod, "containers", index), message, help)
