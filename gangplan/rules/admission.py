"""Rules about admission by Kueue, computed from the built objects (docs/admission.md)."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Deduplication, Rule

OVER_QUOTA = Rule(
    "over-quota",
    ERROR,
    "The run asks for more than the team's queue can ever get.",
    why=(
        "Kueue compares what all pods of the run request, including the launcher, with the most that the "
        "queue can hold when everything else is idle: its own quota, what it may borrow, and what others "
        "lend. A run that needs more waits forever, and nothing that a user would read on the cluster "
        "says so."
    ),
    fix="Use the number of workers from the finding, or ask for a larger quota.",
    is_verdict=True,
    echo=Deduplication.RUN,
)

NO_FLAVOR = Rule(
    "no-flavor",
    ERROR,
    "No flavor of the team's queue accepts the run's pods.",
    why=(
        "Kueue gives every pod set one flavor per group of resources. A flavor is ruled out when the "
        "pods do not tolerate its taints, when their node selector matches other nodes, when they "
        "request a topology that it does not have, or when it has no quota for a resource that they "
        "request. Waiting changes none of that."
    ),
    fix=("Choose a pool that the team has quota on, or correct the queue or the flavor in the overlay."),
    is_verdict=True,
    echo=Deduplication.RUN,
)

NO_TOPOLOGY = Rule(
    "no-topology",
    ERROR,
    "No rack or block of the cluster is large enough for the run.",
    why=(
        "A required topology level means that all workers run in one domain of that level. If even an "
        "empty domain has room for fewer pods than the run has, Kueue never admits the run, however much "
        "quota is free elsewhere. Where an overlay asks for slices, Kueue admits pods beyond the last "
        "whole slice and never gives them a node."
    ),
    fix=("Use the number of workers from the finding, a wider level, or preferred instead of required."),
    is_verdict=True,
    echo=Deduplication.RUN,
)

NEVER_ADMITTED = Rule(
    "never-admitted",
    ERROR,
    "Kueue would never admit the run, or never see it.",
    why=(
        "A queue that is stopped, inactive, or closed to the namespace admits no run. A run whose labels "
        "or annotations a webhook refuses, or whose priority does not exist, never becomes a Workload at "
        "all. The job then stays suspended without an event. If the queue is held for a maintenance or drained "
        "(stopPolicy: Hold, HoldAndDrain), this is a warning, and nothing about stopped runs."
    ),
    fix=("Correct what the message names; queues come from the cluster's overlay and the team's file."),
    is_verdict=True,
    echo=Deduplication.RUN,
)

NEVER_DISPATCHED = Rule(
    "never-dispatched",
    ERROR,
    "No worker cluster of MultiKueue could ever start the run.",
    why=(
        "The cluster that dispatches runs has room for the run and reserves its quota. The copy of the run then "
        "waits on the worker clusters. If the queue or the nodes of none of them can ever take it, it waits there "
        "forever, holds its quota here, and nothing on this cluster says why. This is judged if all worker clusters "
        "are in the workspace."
    ),
    fix="Ask for what one of the worker clusters has, or enlarge the team's quota or the pool there.",
    is_verdict=True,
    echo=Deduplication.RUN,
)

NOT_QUEUED = Rule(
    "not-queued",
    ERROR,
    "The run names no queue on a cluster that has Kueue.",
    why=(
        "Kueue holds back only jobs with the label kueue.x-k8s.io/queue-name, or those in a namespace "
        "with a queue called default. Any other run starts at once, outside every quota, and its pods "
        "take nodes that Kueue has promised to admitted runs."
    ),
    fix="Keep the label that gangplan writes.",
    is_verdict=True,
    echo=Deduplication.RUN,
)
