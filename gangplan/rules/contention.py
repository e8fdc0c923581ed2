"""Rules about committed runs of a cluster that affect each other."""

from __future__ import annotations

from gangplan.rules.model import WARNING, Rule

RUNS_BLOCK_RUNS = Rule(
    "runs-block-runs",
    WARNING,
    "Two runs can each hold half of what the other needs.",
    why=(
        "Without gang scheduling, pods of all runs start as they find nodes. When two runs together need "
        "more than there is, each can hold a part and wait for the rest, and neither ever finishes."
    ),
    fix="Let Kueue start each run as a whole (gang: kueue), or run one after the other.",
    waivable=True,
)

PREEMPTIBLE_WITHOUT_CHECKPOINT = Rule(
    "preemptible-without-checkpoint",
    WARNING,
    "The run can be preempted, and it has no checkpoint to resume from.",
    why=(
        "Kueue preempts a run that borrows quota when the owner wants it back, and a low-priority run "
        "when a more important one arrives. It starts the run again later, from scratch."
    ),
    fix=("Add checkpoint: and load CHECKPOINT_DIR when the program starts, or stay within the team's quota."),
    waivable=True,
)
