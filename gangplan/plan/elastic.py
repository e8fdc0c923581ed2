"""What torchrun is told in an elastic run: how many workers there may be, and where they meet."""

from __future__ import annotations

from gangplan.model.frameworks import ELASTIC
from gangplan.model.job import PLACEHOLDER, Elastic, EnvVar, Job, ValueOrigin

# torchrun's default port for this rendezvous (torch 2.6, c10d_rendezvous_backend.py, DEFAULT_PORT).
PORT = 29400
_MEETING = (
    ValueOrigin("", because="where the workers of an elastic run meet"),
    ValueOrigin("spec", ("elastic",)).aside(),
    ValueOrigin("cluster", ("podsReadyTimeout",)).aside(),
    ValueOrigin("job", ("framework",)).aside(),
)


def options(elastic: Elastic) -> tuple[str, ...]:
    """Options of torchrun. Trainer sets PET_NNODES to the number of pods, which an option outdoes."""
    return f"--nnodes={elastic.least}:{elastic.most}", f"--max-restarts={elastic.restarts}"


def rendezvous(job: Job) -> tuple[EnvVar, ...]:
    """Where the workers meet: at the first of them, whose torchrun keeps the list of those that are there.

    Others wait for it, and for as many as are needed, as long as pods may take to start; torchrun itself would
    wait for one minute (torch 2.6, c10d_rendezvous_backend.py, read_timeout) and for ten (join_timeout).
    """
    if job.elastic is None:
        return ()
    run = f"{job.name}-{PLACEHOLDER}"
    wait = job.platform.start_wait_s
    values = ("c10d", f"join_timeout={wait},read_timeout={wait}", f"{run}-node-0-0.{run}:{PORT}", run)
    return tuple(EnvVar(name, value, origins=_MEETING) for name, value in zip(ELASTIC, values, strict=True))
