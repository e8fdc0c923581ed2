"""The preflight of a run: mpirun of the run itself, with a program that looks at the workers."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.job import Job
from gangplan.plan.flags import own_options


def preflight_words(job: Job) -> tuple[str, ...]:
    """What mpirun is told before the run: its options, the program and the plan; empty without a preflight."""
    if not job.image.preflight:
        return ()
    return (*own_options(job), *job.mpi_flags, job.image.preflight, *_plan(job))


def _plan(job: Job) -> Iterator[str]:
    """What the program compares with what it sees. RDMA needs memory that stays in place (ulimit -l)."""
    yield from ("--workers", str(job.workers), "--slots", str(job.slots))
    if job.gpus:
        yield from ("--gpus", str(job.gpus))
    if job.fabric.resources:
        yield "--memlock"
    for mount in job.mounts:
        if mount.claim and not (mount.read_only or mount.single):
            yield from ("--storage", mount.path)
