"""The preflight of a run: the run's own mpirun starts a program that inspects the workers."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.job import Job
from gangplan.plan.flags import build_own_mpirun_options


def build_preflight_words(job: Job) -> tuple[str, ...]:
    """Return mpirun's arguments for the preflight: options, program and plan; empty without a preflight."""
    if not job.image.preflight:
        return ()
    return (
        *build_own_mpirun_options(job),
        *job.mpi_flags,
        job.image.preflight,
        *_list_preflight_options(job),
    )


def _list_preflight_options(job: Job) -> Iterator[str]:
    """Yield the planned values that the program compares with what it finds.

    RDMA needs locked memory (ulimit -l).
    """
    yield from ("--workers", str(job.workers), "--slots", str(job.slots))
    if job.gpus:
        yield from ("--gpus", str(job.gpus))
    if job.fabric.resources:
        yield "--memlock"
    for mount in job.mounts:
        if mount.claim and not (mount.read_only or mount.single):
            yield from ("--storage", mount.path)
