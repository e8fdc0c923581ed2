"""Options and variables of torchrun in an elastic run: the number of workers and their rendezvous."""

from __future__ import annotations

from gangplan.model.frameworks import ELASTIC_VARIABLES
from gangplan.model.job import HASH_PLACEHOLDER, ElasticLimits, EnvVar, Job, ValueOrigin

# torchrun's default port for this rendezvous (torch 2.6, c10d_rendezvous_backend.py, DEFAULT_PORT).
PORT = 29400
_MEETING = (
    ValueOrigin("", because="where the workers of an elastic run meet"),
    ValueOrigin("spec", ("elastic",)).aside(),
    ValueOrigin("cluster", ("podsReadyTimeout",)).aside(),
    ValueOrigin("job", ("framework",)).aside(),
)


def build_elastic_options(elastic: ElasticLimits) -> tuple[str, ...]:
    """Return torchrun's options. They override PET_NNODES, which Trainer sets to the number of pods."""
    return f"--nnodes={elastic.least}:{elastic.most}", f"--max-restarts={elastic.restarts}"


def build_elastic_rendezvous_env(job: Job) -> tuple[EnvVar, ...]:
    """Return the variables of the rendezvous: the first worker's torchrun keeps the list of workers.

    The others wait for it, and for the minimum number of workers, as long as pods may take to start; torchrun
    itself would wait for one minute (torch 2.6, c10d_rendezvous_backend.py, read_timeout) and for ten
    (join_timeout).
    """
    if job.elastic is None:
        return ()
    run = f"{job.name}-{HASH_PLACEHOLDER}"
    wait = job.platform.start_wait_s
    values = ("c10d", f"join_timeout={wait},read_timeout={wait}", f"{run}-node-0-0.{run}:{PORT}", run)
    return tuple(
        EnvVar(name, value, origins=_MEETING) for name, value in zip(ELASTIC_VARIABLES, values, strict=True)
    )
