"""Names that the launch of a run depends on: a user's value, in env or as an option, would break it."""

from __future__ import annotations

from collections.abc import Collection

from gangplan.model.job import Job
from gangplan.model.pods import CHECKPOINT_ENV
from gangplan.resolve.secrets import RESERVED_ENV

# Prefixes of variables from which launchers read their hosts and how to reach them.
_LAUNCH = ("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "HYDRA_", "I_MPI_HYDRA_", "PET_", "PADDLE_")
_NEEDED = frozenset({"PATH", "HOME", "LD_LIBRARY_PATH", "I_MPI_PERHOST"})


def is_reserved_variable(name: str) -> bool:
    """Return whether a variable belongs to the launch."""
    return name in RESERVED_ENV


def explain_taken_variable(job: Job, name: str, more: Collection[str] = ()) -> str:
    """Return why a command may not set a variable of its run; an empty text if it may.

    `more` are other variables of the launch.
    """
    if is_reserved_variable(name) or name in more:
        return "gangplan sets it for every run, and a value of your own would break the launch"
    if name in CHECKPOINT_ENV and "checkpoint" in job.origins:
        return "checkpoint sets it, and a value of your own would contradict the spec"
    return ""


def is_planned_value(job: Job, name: str, value: str | None) -> bool:
    """Return whether a value of a torchrun variable starts the planned ranks, as the run's own value would."""
    alone = {"PET_NODE_RANK": "0", "PET_MASTER_PORT": value, "PET_MASTER_ADDR": value}
    planned = {"PET_NNODES": str(job.workers), "PET_NPROC_PER_NODE": str(job.slots)}
    return value is not None and ((alone if job.workers == 1 else {}) | planned).get(name) == value


def is_launcher_variable(name: str) -> bool:
    """Return whether a launcher needs a variable, so that removing it breaks the start."""
    return name in _NEEDED or name.startswith(_LAUNCH)


def find_reserved_mca_variable(parameter: str) -> str:
    """Return the reserved variable that sets the same MCA parameter; an empty text for other parameters."""
    for beginning in ("OMPI_MCA_", "PRTE_MCA_"):
        if beginning + parameter in RESERVED_ENV:
            return beginning + parameter
    return ""
