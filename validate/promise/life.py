"""Checks of how long a run lives, how it ends, and that no sync deletes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.model import syncing
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import Laid, LaidRole
from gangplan.validate.promise.words import broken, weakened

Found = Iterator[tuple[int, Problem]]


def deadlines(laid: Laid) -> Found:
    """Check that the run ends no later than planned; an earlier end is reported as weakened.

    TrainJob has a deadline since Trainer 2.2; before, the deadline of its Job counts. A shorter deadline of a
    Job also applies.
    """
    planned, trainer = laid.unit.job.timeout_s, laid.unit.job.platform.trainer_line
    ends = laid.roles.get(LAUNCHER if laid.uses_mpi else WORKER)
    own: tuple[int, Path] = (laid.train_job, ("spec", "activeDeadlineSeconds"))
    stated = laid.job.get("activeDeadlineSeconds")
    if not trainer.has_run_deadline and ends is not None:
        own = (laid.runtime, (*ends.at, "template", "spec", "activeDeadlineSeconds"))
        stated = ends.job.get("activeDeadlineSeconds")
    if planned and (stated is None or stated > planned):
        when = "never end" if stated is None else f"end after {in_words(stated)}"
        message = f"the run would {when}; the plan ends it after {in_words(planned)}"
        help = "Write timeout in the spec, or defaults: {timeout: ...} in cluster.yaml."
        yield own[0], broken(own[1], message, help, "timeout")
    limits: list[tuple[int, Path, Any]] = [(*own, stated)]
    for role in laid.present:
        job: Path = (*role.at, "template", "spec", "activeDeadlineSeconds")
        limits.append((laid.runtime, job, role.job.get("activeDeadlineSeconds")))
        yield from cut(laid, role)
    for index, path, limit in limits:
        if limit is not None and (not planned or limit < planned):
            is_long = f"the plan gives it {in_words(planned)}" if planned else "the plan has no end"
            message = f"the run would end after {in_words(limit)}; {is_long}"
            help = "Write timeout in the spec, or limits: {timeoutHours: ...} in cluster.yaml."
            yield index, weakened(path, message, help)
            return


def cut(laid: Laid, role: LaidRole) -> Found:
    """Check for a pod deadline shorter than planned; it fails the run like a crash, not like a timeout."""
    limit, planned = role.spec.get("activeDeadlineSeconds"), laid.unit.job.timeout_s
    if limit is not None and (not planned or limit < planned):
        is_long = f"the plan gives the run {in_words(planned)}" if planned else "the plan has no end"
        message = f"{role.title} would be killed after {in_words(limit)}, and the run would fail; {is_long}"
        help = "Write timeout in the spec, or limits: {timeoutHours: ...} in cluster.yaml."
        at: Path = (*role.pod, "activeDeadlineSeconds")
        yield laid.runtime, broken(at, message, help, "timeout")


def in_words(seconds: int) -> str:
    """Format seconds in the units of a spec."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def endings(laid: Laid) -> Found:
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
            yield laid.runtime, weakened((*role.pod, "containers", index), message, help)


def sync(laid: Laid) -> Found:
    """Check that no sync deletes a run whose file was removed or applies an archived run (decision 0002)."""
    for index, body in enumerate(laid.run.bodies):
        if body["kind"] in ("CronJob", "Job"):
            continue  # these create runs: they are deleted with their file, but their runs are not
        annotations = _annotations(body)
        at: Path = ("metadata", "annotations")
        if syncing.NEVER_PRUNED not in syncing.options_of(annotations):
            message = (
                f"a sync would delete this {body['kind']} when its file leaves Git, and end the run with it"
            )
            yield (
                index,
                broken((*at, syncing.OPTIONS), message, f"Keep {syncing.NEVER_PRUNED} among its options."),
            )
        if laid.unit.job.is_archived and annotations.get(syncing.HOOK) != syncing.SKIPPED:
            message = "the run is archived but would be applied again"
            yield index, broken((*at, syncing.HOOK), message, "Keep the annotation.")


def _annotations(body: Body) -> Body:
    found: Body = body["metadata"].get("annotations") or {}
    return found
