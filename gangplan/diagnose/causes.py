"""All known causes."""

from __future__ import annotations

from functools import cache

from gangplan.diagnose import known_cluster, known_mpi, known_preflight, known_program, known_start
from gangplan.diagnose.cause import KnownCause


@cache
def list_diagnosis_causes() -> dict[str, KnownCause]:
    """Return every cause by its id, in the order of the reference page."""
    found: dict[str, KnownCause] = {}
    for table in (known_cluster, known_start, known_mpi, known_preflight, known_program):
        for cause in table.CAUSES:
            if cause.id in found:
                raise ValueError(f"cause {cause.id} is there twice")
            found[cause.id] = cause
    return found


def group_diagnosis_causes_by_topic() -> dict[str, tuple[KnownCause, ...]]:
    """Return the causes by topic, for the reference page."""
    return {
        "Before the pods run": known_cluster.CAUSES,
        "Starting containers, and losing them": known_start.CAUSES,
        "MPI and SSH": known_mpi.CAUSES,
        "The preflight": known_preflight.CAUSES,
        "The program, its GPUs and its network": known_program.CAUSES,
    }
