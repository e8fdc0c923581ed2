"""Checks for pods that are planned on one pool but admitted on another, with the wrong nodes and quota."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.model.backend import role_of
from gangplan.model.job import Job
from gangplan.rules.platform import ADMITTED_ELSEWHERE
from gangplan.validate.kueue.model import AdmissionVerdict
from gangplan.validate.problems import Problem

_ARE = {"launcher": "the launcher is", "worker": "workers are"}


def check_pool_of_assigned_flavor(job: Job, verdict: AdmissionVerdict) -> Iterator[Problem]:
    """Report the first pod set to which Kueue assigns another flavor than that of its planned pool.

    Kueue tries the flavors of a queue in order and takes the first one with room whose node labels do not
    conflict with the pods (pkg/scheduler/flavorassigner, v0.15 to v0.19). Pods of a pool without labels
    conflict with none.
    """
    for name, of in verdict.assignment.items():
        is_launcher = name == "launcher" and not job.launcher_runs_ranks
        pool = job.launcher_pool if is_launcher else job.worker_pool
        pool = next((role.pool for role in job.others if role.name == name), pool)
        other = next((flavor for flavor in sorted(set(of.values())) if not _is_of(flavor, pool.name)), "")
        if other:
            planned = _ARE.get(role_of(name), f"{name} is")
            yield Problem(
                ("metadata", "name"),
                f"{planned} planned on pool '{pool.name}', but Kueue admits them on"
                f" '{other}': nothing keeps the pods off its nodes, and they use its quota",
                f"Give pool '{pool.name}' a label of its own, such as labels:"
                f" {{node.example.com/pool: {pool.name}}}, or quota that is large enough.",
                ADMITTED_ELSEWHERE,
                field="nodePool",
            )
            return


def _is_of(flavor: str, pool: str) -> bool:
    """Return whether a flavor belongs to a pool: named after it, with a hash if it has a topology."""
    return flavor == pool or re.fullmatch(re.escape(pool) + "-[0-9a-f]{6}", flavor) is not None
