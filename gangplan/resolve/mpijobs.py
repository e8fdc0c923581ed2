"""Checks of a job's backend: whether its cluster has it, and whether it can run the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gangplan.model.backend import MPIJOB
from gangplan.model.job import Job
from gangplan.resolve.context import JobResolution
from gangplan.rules.backends import BACKEND_FIELD, BACKEND_FRAMEWORK, BACKEND_GANG, BACKEND_MISSING


def check_job_against_backend(context: JobResolution, job: Job) -> None:
    """Report what a cluster or an MPIJob cannot do."""
    made, platform = job.backend, job.platform
    is_asked = context.spec.spec.backend is not None
    where = context.where("backend") if is_asked else context.origin_of("image", ("image",))
    if made.stated not in [one.stated for one in platform.backends]:
        context.report(
            BACKEND_MISSING,
            where,
            f"the run would be {made.title}, and cluster"
            f" {platform.cluster} has no {made.stated} in versions of its cluster.yaml",
            f"Write versions: {{{made.stated}: ...}} once {made.controller} is installed there, or remove"
            " backend from the spec.",
        )
    if check := _CHECKS.get(made.name):
        check(context, job, is_asked)


def _check_job_against_mpijob_backend(context: JobResolution, job: Job, is_asked: bool) -> None:
    """Report what only a TrainJob can do."""
    instead = "remove backend" if is_asked and job.platform.has_trainer else "use a cluster with Trainer"
    framework = job.image.framework
    if not job.uses_mpi:
        place = ("backend",) if is_asked else ("framework",)
        context.report(
            BACKEND_FRAMEWORK,
            context.where(*place) if is_asked else context.origin_of("framework", place),
            f"{framework} starts its workers without MPI, and the MPI operator does not tell them about each other",
            f"For {framework}, {instead}; an MPIJob runs mpi, horovod and deepspeed.",
        )
    if job.steps:
        context.report(
            BACKEND_FIELD,
            context.where("steps"),
            "steps: the MPI operator makes launcher and workers, and nothing before them",
            f"Use setup, which runs in every worker, or {instead}.",
        )
    if job.exit_codes.is_set:
        context.report(
            BACKEND_FIELD,
            context.where("exitCodes"),
            "exitCodes: the launcher of an MPIJob is retried whatever its exit code is",
            f"Remove exitCodes, or {instead}.",
        )
    if job.debug:
        context.report(
            BACKEND_FIELD,
            context.where("debug"),
            "debug: the MPI operator deletes the workers once the launcher has failed for good",
            f"Remove debug, or {instead}.",
        )
    if job.platform.has_pod_group:
        context.report(
            BACKEND_GANG,
            context.where("backend") if is_asked else context.where(),
            f"cluster {job.platform.cluster} starts runs in pod groups of {job.platform.gang}, and gangplan"
            " renders none for MPIJobs",
            f"{instead[0].upper()}{instead[1:]}, or set gang: kueue in its cluster.yaml.",
        )


_CHECKS: Mapping[str, Callable[[JobResolution, Job, bool], None]] = {
    MPIJOB.name: _check_job_against_mpijob_backend
}
