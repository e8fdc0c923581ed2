"""Rules about runs whose pods are kept after a failure."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, Rule

DEBUG_IN_PROD = Rule(
    "debug-in-prod",
    ERROR,
    "A failed run would keep its nodes in production.",
    why=(
        "Pods kept for inspection hold their GPUs and their team's quota while they do nothing, and anyone who may "
        "open a shell in them sees the data of the run. Production is not the place for either."
    ),
    fix="Remove debug, and reproduce the failure on a cluster whose environment is dev.",
)

DEBUG_UNUSABLE = Rule(
    "debug-unusable",
    ERROR,
    "Pods of this run cannot be kept after a failure.",
    why=(
        "A run that retries, or goes on with fewer workers, replaces the pods that failed: JobSet deletes those "
        "of one try before the next, and a Job that lets single pods fail creates them again."
    ),
    fix="Remove debug, or what the message names.",
)

DEBUG_KEPT = Rule(
    "debug-kept",
    NOTE,
    "A failed run keeps its pods, and what they hold.",
    why=(
        "No one else can use its GPUs or its part of the team's quota until the run ends: on the day that the spec says, "
        "or when its timeout is up. Reviewers of the spec should see this."
    ),
    fix="Remove debug once the cause is known; state: stopped ends a run that is being kept.",
)

DEBUG_OVER = Rule(
    "debug-over",
    ERROR,
    "The last day for keeping failed pods has passed.",
    why=(
        "After that day, pods are no longer kept, so the field suggests something that it does not do. Removing it makes "
        "a new run; if the run is over, archive it instead."
    ),
    fix="Remove debug, set a later day, or write state: archived where the run is over.",
    is_verdict=True,
)

DEBUG_TOO_LONG = Rule(
    "debug-too-long",
    ERROR,
    "Failed pods would be kept for more than two weeks.",
    why=(
        "Every run of the spec that fails until then would hold its nodes for as long as its timeout lets it. Two "
        "weeks are enough to look, and a later day can be set then."
    ),
    fix="Set an earlier day.",
    is_verdict=True,
)
