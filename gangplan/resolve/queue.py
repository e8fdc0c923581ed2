"""The queue that a run waits in."""

from __future__ import annotations

from gangplan.resolve.context import JobResolution
from gangplan.rules.queues import QUEUE_UNKNOWN


def resolve_queue(context: JobResolution) -> str:
    """Return the LocalQueue that the spec names, else the team's own.

    With Volcano it is the team's Volcano queue, with other schedulers "".
    """
    cluster, wanted = context.cluster.spec, context.spec.spec.queue
    own = cluster.teams[context.team.name]
    if (trial := context.spec.trial) is not None:
        if cluster.gang != "kueue" or cluster.multi_kueue is not None:
            _report_sweep_uncapped_by_cluster(context, trial.at_once)
        return trial.queue
    if cluster.gang not in ("kueue", "volcano"):
        return ""
    known = {own.queue, *(own.local_queues if cluster.gang == "kueue" else ())}
    if wanted is None or wanted in known:
        return wanted or own.queue
    context.unknown(QUEUE_UNKNOWN, context.where("queue"), "queue", wanted, sorted(known))
    return own.queue


def _report_sweep_uncapped_by_cluster(context: JobResolution, at_once: int) -> None:
    """Report that the cluster cannot limit the trials of a sweep; only its own Kueue does."""
    from gangplan.rules.sweeps import SWEEP_NEEDS_KUEUE  # few workspaces have sweeps

    name, gang = context.cluster.name, context.cluster.spec.gang
    message = f"maxConcurrent is {at_once}, but gang of {name} is {gang}: all trials would start at once"
    help = "Choose a cluster with gang: kueue, or write a spec for each run."
    if gang == "kueue":
        message = f"{name} hands runs to other clusters, which have no queue for this sweep"
        help = "Name the clusters themselves under clusters of the template."
    context.report(SWEEP_NEEDS_KUEUE, context.where("maxConcurrent"), message, help)
