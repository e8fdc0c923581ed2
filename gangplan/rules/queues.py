"""Rules about Kueue's queues: the queue of a run, and what decides about admission besides quota."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

QUEUE_UNKNOWN = Rule(
    "queue-unknown",
    ERROR,
    "The team has no queue of this name on the cluster.",
    why=(
        "If a run's LocalQueue does not exist, Kueue keeps the run suspended until somebody creates it. The cluster file "
        "lists a team's queue, and further ones in localQueues."
    ),
    fix="Correct the name, remove it to use the team's own queue, or have it added to localQueues.",
)

PODS_READY_EARLY = Rule(
    "pods-ready-early",
    WARNING,
    "Runs go back to the queue before their pods can be ready.",
    why=(
        "Kueue takes the quota away from a run whose pods are not all ready within podsReadyTimeout, and tries again "
        "later. Nodes that come only when pods wait for them take minutes, and an image takes as long as it is large. If "
        "the time is shorter, each attempt ends before its pods start, and no run of the cluster ever does."
    ),
    fix="Write a longer podsReadyTimeout, such as 30m.",
)

USAGE_SHARING_OFF = Rule(
    "usage-sharing-off",
    WARNING,
    "Sharing by usage is configured where Kueue does not do it.",
    why=(
        "Kueue orders the runs of a ClusterQueue by the recent usage of their LocalQueues only where both its manager "
        "has admissionFairSharing and the queue says UsageBasedAdmissionFairSharing. Otherwise, it silently ignores "
        "modes and weights."
    ),
    fix="State both, or neither.",
)

QUEUE_WEIGHTLESS_FIRST = Rule(
    "queue-weightless-first",
    WARNING,
    "A LocalQueue of weight 0 may go first with this Kueue.",
    why=(
        "Weight 0 means that others always go first. Kueue divides the recent usage of a LocalQueue by its weight: of an "
        "idle queue that is 0/0, which is not a number, and which sorts before all others (kueue#13479; in first releases of 0.15 "
        "and 0.16 in no order). Each time the queue has been idle, its runs overtake those of the team's other queues. "
        "Kueue 0.18.5 and 0.19.1 are right."
    ),
    fix="Use Kueue 0.18.5, 0.19.1 or later, or give the queue a small weight, such as 0.001.",
)

CONCURRENT_ADMISSION_VERSION = Rule(
    "concurrent-admission-version",
    ERROR,
    "Runs are set to ask for several pools at once, but this Kueue cannot do that.",
    why=(
        "concurrentAdmissionPolicy of a ClusterQueue came with Kueue 0.18. Older versions drop the field, so the cluster "
        "never matches Git."
    ),
    fix="Remove concurrentAdmission, or use Kueue 0.18 or later.",
)

CONCURRENT_ADMISSION_REFUSED = Rule(
    "concurrent-admission-refused",
    ERROR,
    "Kueue refuses the ClusterQueue with this concurrentAdmission.",
    why=(
        "Kueue's webhook accepts it only with BestEffortFIFO and at most 16 flavors. Constraints need runs that may "
        "move, and must name a flavor of the queue (clusterqueue_webhook.go, Kueue v0.19.2)."
    ),
    fix="Change what the message names.",
)

ADMISSION_CHECK_OWNER = Rule(
    "admission-check-owner",
    ERROR,
    "It is not clear who makes an admission check.",
    why=(
        "A ClusterQueue with a check that does not exist is inactive: no run of any of its teams starts. gangplan makes "
        "the check if its controller is named, and leaves it alone if it is external. Kueue's own controllers "
        "need parameters, which autoscale and multiKueue provide."
    ),
    fix="Name the controller, or write external: true.",
)

ADMISSION_CHECK_NOBODY = Rule(
    "admission-check-nobody",
    ERROR,
    "An admission check names a team that is not on the cluster.",
    why="The check would apply to no runs, or to those of the wrong team.",
    fix="Correct the name, or remove it.",
)

COUNTING_UNUSED = Rule(
    "counting-unused",
    WARNING,
    "No pool offers a resource that is excluded, transformed or weighted.",
    why="It is a typo, or a leftover. Quotas are shares of what node pools state, so nothing of it is ever counted.",
    fix="Correct the name, or remove it.",
)

OUTPUT_NOT_ITS_OWN = Rule(
    "output-not-its-own",
    ERROR,
    "A transformation counts something under the name of a resource that pods ask for.",
    why=(
        "Up to 0.18, chance decides whether Kueue keeps what pods ask for or what the transformation makes "
        "(applyResourceTransformations walks a Go map). Later versions add the two, and no share of nodes equals that sum."
    ),
    fix="Choose another name.",
)

QUOTA_NOT_COUNTED = Rule(
    "quota-not-counted",
    ERROR,
    "Quotas of a pool are shares of a resource that Kueue's manager does not count.",
    why="The queue would admit more runs than nodes can hold. Their pods stay Pending, and others wait behind them.",
    fix="Count the resource, or an output in its place.",
)
