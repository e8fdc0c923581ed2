"""Rules about quotas, cohorts and preemption in a cluster file."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Deduplication, Rule

COHORT_UNKNOWN = Rule(
    "cohort-unknown",
    ERROR,
    "The cohort is not declared.",
    why=(
        "Kueue creates a cohort for any name that a queue mentions. A typo becomes a cohort of one, "
        "which never borrows."
    ),
    fix="Correct the name, or declare the cohort.",
)

COHORT_MISSING = Rule(
    "cohort-missing",
    ERROR,
    "A team is in no cohort, although the cluster has several.",
    why="The team would be alone and could neither lend nor borrow, which is seldom intended.",
    fix="Name one of the cohorts.",
)

COHORT_CYCLE = Rule(
    "cohort-cycle",
    ERROR,
    "The parents of cohorts form a cycle.",
    why="Kueue accepts such a cycle and makes every queue in it inactive.",
    fix="Remove one of the parents.",
    formerly=("cohort-circle",),
)

COHORT_ROOT_LIMIT = Rule(
    "cohort-root-limit",
    ERROR,
    "A cohort without a parent has a limit for borrowing or lending.",
    why="There is nothing above it to borrow from or lend to, and Kueue refuses the limit.",
    fix="Remove the limit, or name a parent.",
)

COHORT_EMPTY = Rule(
    "cohort-empty",
    WARNING,
    "The cohort has no members.",
    why=(
        "A cohort without queues and without cohorts below it does nothing. It is a leftover or a "
        "typo elsewhere."
    ),
    fix="Remove it, or name it in a team.",
)

QUOTA_EMPTY = Rule(
    "quota-empty",
    ERROR,
    "A quota names no pool.",
    why=("A queue without a single flavor admits nothing at all, and its runs wait without any message."),
    fix="Name a pool and how much of it the team may use, or remove quota to share everything.",
)

QUOTA_MEASURE = Rule(
    "quota-measure",
    ERROR,
    "A quota uses the wrong measure for its pool.",
    why=(
        "A pool with GPUs is divided by GPUs, one without by cores; everything else follows in "
        "proportion. Any other measure would leave the deciding resource without a quota, and Kueue "
        "would admit nothing."
    ),
    fix="State gpus for pools with GPUs and cpu for the others.",
)

QUOTA_POOL_MISSING = Rule(
    "quota-pool-missing",
    ERROR,
    "A limit is set for a pool in which the team has no quota.",
    why=(
        "Kueue reads limits inside a flavor's quota. Without the flavor in the queue, nothing can be "
        "borrowed there."
    ),
    fix="Add the pool to quota, with gpus: 0 if the team owns none of it.",
)

LEND_OVER_QUOTA = Rule(
    "lend-over-quota",
    ERROR,
    "A team lends more than its quota.",
    why=("Kueue refuses a lendingLimit above the nominal quota, and the whole sync of the platform fails."),
    fix="Lower lend to the quota, or leave it out to lend everything.",
)

QUOTA_OVER_CAPACITY = Rule(
    "quota-over-capacity",
    ERROR,
    "The quotas of a pool add up to more than its nodes have.",
    why=(
        "Quota that is promised twice admits two runs, and the second run's pods stay Pending while it "
        "holds its quota."
    ),
    fix="Lower a quota, or set overcommit: true to promise more on purpose.",
    is_verdict=True,
    echo=Deduplication.CAUSE,
)

QUOTA_OVER_POOL = Rule(
    "quota-over-pool",
    ERROR,
    "One quota is larger than its pool.",
    why=(
        "A run may be admitted that no set of nodes can hold; its pods stay Pending while it holds its quota."
    ),
    fix="Lower the quota, or correct the pool's count.",
    is_verdict=True,
)

QUOTA_UNUSED = Rule(
    "quota-unused",
    NOTE,
    "Some of a pool belongs to no team.",
    why=("Kueue admits by quota, so runs never use what no quota covers, however long the queues are."),
    fix="Give it to a team or a cohort.",
)

QUOTA_NEARLY_USED = Rule(
    "quota-nearly-used",
    WARNING,
    "A team uses 90% of its quota or more.",
    why=("The next run of the team will wait. A snapshot of the usage shows it before anybody complains."),
    fix="Raise the quota, or expect runs to wait.",
    untested="it needs a snapshot of a cluster; tests/test_five_teams.py writes one.",
)

TEAM_SHARE = Rule(
    "team-share",
    ERROR,
    "A team may hold more of the cluster than the cluster's policy allows.",
    why=(
        "limits.teamShare limits what one team can hold, including all that it may borrow, so that "
        "no team can take the whole cluster."
    ),
    fix="Lower quota or borrow of the team, or raise teamShare.",
    is_verdict=True,
    waivable=True,
)

HARD_QUOTA_BELOW_QUEUE = Rule(
    "hard-quota-below-queue",
    ERROR,
    "A ResourceQuota is smaller than what the queue may admit.",
    why=(
        "The run is admitted, then the namespace refuses its pods. It holds its quota without ever "
        "starting (kueue#1403)."
    ),
    fix="Raise hardQuota to what the queue may admit, or limit borrow.",
    is_verdict=True,
    echo=Deduplication.CAUSE,
)

HARD_QUOTA_BELOW_RUN = Rule(
    "hard-quota-below-run",
    ERROR,
    "A ResourceQuota has no room for a single run.",
    why=(
        "The API server counts the pods of a run, their limits, its Jobs and its Service, and refuses what "
        "exceeds the quota. The run is admitted, holds its quota in the queue, and never starts."
    ),
    fix="Raise the number in the quota, or remove it.",
    is_verdict=True,
    echo=Deduplication.RUN,
)

PRIORITIES_OUT_OF_ORDER = Rule(
    "priorities-out-of-order",
    ERROR,
    "A patch changes the order of the priorities.",
    why=(
        "Kueue goes by the number of a WorkloadPriorityClass. If low is not below normal, or normal not below "
        "high, runs wait for, or are preempted by, runs that their specs call less important."
    ),
    fix="Keep the order low, normal, high, critical; the numbers themselves may change.",
    is_verdict=True,
)

QUEUE_NAME_TWICE = Rule(
    "queue-name-twice",
    ERROR,
    "Two teams have the same ClusterQueue.",
    why=("They would share one quota, and the second team's objects would replace the first's."),
    fix="Give each team a queue of its own.",
)

PREEMPTION_CONTRADICTS = Rule(
    "preemption-contradicts",
    ERROR,
    "Preemption contradicts itself.",
    why=("Kueue refuses borrowWithinCohort where nothing may be reclaimed within the cohort."),
    fix=("Set reclaimWithinCohort to a value other than Never, or remove borrowWithinCohort."),
)

PREEMPTION_UNUSED = Rule(
    "preemption-unused",
    WARNING,
    "A setting of preemption has no effect under fair sharing.",
    why=("Fair sharing decides by share who gives quota back; Kueue then ignores borrowWithinCohort."),
    fix="Remove it, or switch fair sharing off.",
)

RECLAIM_NEVER = Rule(
    "reclaim-never",
    WARNING,
    "Lent quota does not come back until the borrower has finished.",
    why=("A team whose quota is borrowed waits until the borrower's run ends, which may be days."),
    fix="Use reclaimWithinCohort: Any or LowerPriority.",
)

WEIGHT_NOBODY = Rule(
    "weight-nobody",
    ERROR,
    "The rest of a pool is shared among teams whose weights are all 0.",
    why=(
        "Without stated quotas, a pool is divided by weight. If all weights are 0, nobody gets anything, "
        "and no run is ever admitted."
    ),
    fix="Give one of the teams a weight above 0, or state quotas.",
)
