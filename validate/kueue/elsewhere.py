"""Pods that are planned on one pool and admitted on another: the wrong nodes and the wrong quota are used."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.model.backend import role_of
from gangplan.model.job import Job
from gangplan.rules.platform import ADMITTED_ELSEWHERE
from gangplan.validate.kueue.model import Verdict
from gangplan.validate.problems import Problem

_ARE = {"launcher": "the launcher is", "worker": "workers are"}


def elsewhere(job: Job, verdict: Verdict) -> Iterator[Problem]:
    """One warning for the first pod set that Kueue puts on another flavor than that of its planned pool.

    Kueue tries the flavors of a queue in their order and takes the first with room whose node labels the
    pods do not contradict (pkg/scheduler/flavorassigner, v0.15 to v0.19). Pods of a pool without labels
    contradict none.
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
    """Whether a flavor is a pool's: named after it, with a hash where it is placed by topology."""
    return flavor == pool or re.fullmatch(re.escape(pool) + "-[0-9a-f]{6}", flavor) is not None
