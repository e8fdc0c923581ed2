"""Checks of what a run would lose if it ended early: on spot nodes, or in long runs without checkpoints."""

from __future__ import annotations

import re

from gangplan.model.duration import format_duration
from gangplan.model.profiles import DEFAULT_RETRIES, PLAIN_TIMEOUT_S
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan
from gangplan.rules.model import NOTE
from gangplan.rules.platform import CHECKPOINT_MISSING, SPOT_IN_PROD
from gangplan.rules.specs import SPOT_WITHOUT_RETRY
from gangplan.spec.nodes import NodePool

# A run with this priority is not production work.
GIVES_WAY = "low"
_WAITS = f"write priority: {GIVES_WAY} if the run can wait"


def check_job_on_spot_pool(context: JobResolution, pool: NodePool, retries: int, priority: str) -> None:
    """Check that a run on spot nodes has a checkpoint and retries, and is not production work."""
    if pool.capacity != "spot":
        return
    asked = context.spec.spec.placement
    where = context.where("placement", "capacity" if asked and asked.capacity else "nodePool")
    if context.spec.spec.checkpoint is None or retries == 0:
        context.report(
            SPOT_WITHOUT_RETRY,
            where,
            "spot nodes can be reclaimed at any time, and the run would lose everything",
            f"Add checkpoint: {{to: {suggest_team_checkpoint_target(context)}}} and retries: 1 (up to 3).",
        )
    elif context.cluster.spec.environment == "prod" and priority != GIVES_WAY:
        others = any(one.capacity == "on-demand" for one in context.cluster.spec.node_pools.values())
        context.report(
            SPOT_IN_PROD,
            where,
            f"a run of priority {priority} on spot nodes of production cluster {context.cluster.name}:"
            " it stops whenever the provider reclaims a node",
            f"Remove the line to run on on-demand nodes; or {_WAITS}."
            if others
            else f"{_WAITS.capitalize()}.",
        )


def suggest_spot_nodes(context: JobResolution) -> str:
    """Return how a run asks for spot nodes, with what it needs there and does not have."""
    needs = ["placement: {capacity: spot}"]
    if context.spec.spec.checkpoint is None:
        needs.append(f"checkpoint: {{to: {suggest_team_checkpoint_target(context)}}}")
    if not context.choose("retries", DEFAULT_RETRIES):
        needs.append("retries: 1")
    fields = " and ".join(filter(None, (", ".join(needs[:-1]), needs[-1])))
    return f"Write {fields}; the provider may reclaim such nodes at any time."


def check_long_job_has_checkpoint(context: JobResolution, data: DataPlan, timeout_s: int) -> None:
    """Check that a run that may take longer than a day saves its state.

    If it has a writable mount or a bucket, the program may save there on its own: then this is a note.
    """
    is_refused = any(finding.rule.startswith("timeout-") for finding in context.findings)
    if context.spec.spec.checkpoint is not None or timeout_s <= PLAIN_TIMEOUT_S or is_refused:
        return
    may_save = bool(data.connection) or any(mount.claim and not mount.read_only for mount in data.mounts)
    context.report(
        CHECKPOINT_MISSING,
        context.origin_of("timeout", ("timeout",)),
        f"the run may take {format_duration(timeout_s)} but names no checkpoint: a failed node, a preemption or the timeout itself would lose all of its work",
        f"Add checkpoint: {{to: {suggest_team_checkpoint_target(context)}}}, and have the program save to CHECKPOINT_DIR.",
        NOTE if may_save else None,
    )


def suggest_team_checkpoint_target(context: JobResolution) -> str:
    """Return a claim of the team that every worker can write, else one of its buckets, else a placeholder."""
    team = context.team.spec
    shared = [
        name
        for name, claim in team.claims.items()
        if "ReadWriteMany" in claim.access_modes and not claim.read_only
    ]
    data = context.spec.spec.data
    named = [name for name in shared if _FOR_RESULTS.search(name)]
    free = [name for name in (*shared, *team.connections) if name not in data]
    return next(iter((*named, *free)), "CLAIM")


# Names that claims for output usually have.
_FOR_RESULTS = re.compile(r"ch?e?ck?(point|pt)|snapshot|result|output|scratch|work|model")
