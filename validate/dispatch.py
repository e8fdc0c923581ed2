"""The proof of dispatch: reports a run that no worker cluster of MultiKueue could ever admit or place.

Kueue reserves quota on the cluster that hands runs on, creates the run's copy on the worker clusters, and
keeps the first that one of them admits (v0.19, pkg/controller/admissionchecks/multikueue). If none ever does,
the run waits there with its quota reserved, and no event on this cluster says why.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.rules.admission import NEVER_DISPATCHED
from gangplan.rules.model import Severity
from gangplan.validate.expand import job_of
from gangplan.validate.kueue.proof import check_kueue_admission_of_run
from gangplan.validate.kueue.solver import verdict_of
from gangplan.validate.problems import Problem
from gangplan.validate.quotas import check_namespace_quotas_of_run
from gangplan.validate.scheduler.proof import check_node_fit
from gangplan.validate.world import BuiltRun, World

# What decides on a worker cluster whether the copy of a run starts.
_PROOFS = (check_kueue_admission_of_run, check_namespace_quotas_of_run, check_node_fit)


def check_run_has_worker_cluster(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Report a run that is admitted here, and that no worker cluster ever starts."""
    found = job_of(run.bodies)
    if found is None or not world.workers or verdict_of(world, run).outcome != "admit":
        return
    refused = {}
    for there in world.workers:
        problem = _find_first_obstacle(there, run)
        if problem is None:
            return
        refused[there.cluster] = problem
    first = next(iter(refused.values()))
    reasons = "; ".join(f"{name}: {one.message}" for name, one in refused.items())
    message = f"no cluster that {world.cluster} hands runs to can ever start this one: {reasons}"
    yield found[0], Problem(first.path, message, first.help, NEVER_DISPATCHED, field=first.field)


def _find_first_obstacle(there: World, run: BuiltRun) -> Problem | None:
    """Return the first error that keeps the copy of a run from starting on a worker cluster."""
    problems = (problem for proof in _PROOFS for _, problem in proof(there, run))
    return next((one for one in problems if one.severity is Severity.ERROR), None)
