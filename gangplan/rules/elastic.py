"""Rules about runs that continue with fewer workers."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

ELASTIC_UNUSABLE = Rule(
    "elastic-unusable",
    ERROR,
    "The run cannot go on with fewer workers.",
    why=(
        "Only torchrun starts ranks again with the workers that are left. Trainer gives a run a fixed number "
        "of pods, so quotas and queues count max. A Job that is complete with its first worker, even if "
        "others are missing, needs Kubernetes 1.31."
    ),
    fix="Write workers, or correct what the message names.",
)

ELASTIC_CHECKPOINT = Rule(
    "elastic-checkpoint",
    WARNING,
    "An elastic run loses its work whenever a worker leaves or returns.",
    why=(
        "torchrun ends all ranks and starts them again when the number of workers changes: a program "
        "without a checkpoint starts from the beginning each time."
    ),
    fix="Add checkpoint, and load CHECKPOINT_DIR when the program starts.",
)
