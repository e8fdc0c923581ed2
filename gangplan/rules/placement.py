"""Where a run is sent (docs/node-fit.md)."""

from __future__ import annotations

from gangplan.rules.model import WARNING, Example, Rule

GPUS_FORGOTTEN = Rule(
    "gpus-forgotten",
    WARNING,
    ("Workers without GPUs take nodes with GPUs, because no other node is large enough."),
    why=(
        "A spec without gpus is a CPU job, and gangplan sends it to nodes without GPUs as long as a "
        "worker fits there. A job that needs more memory or cores than such a node has is mostly a GPU "
        "job whose gpus field was left out; the run would occupy GPU nodes and compute on their CPUs."
    ),
    fix=(
        "Set gpus, or request no more than a node without GPUs has. Write gpus: 0 if you want none, and "
        "placement: {nodePool: ...} if you do want these nodes."
    ),
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before=("cpu: 8\nmemory: 320Gi"),
        after=("gpus: 2\ncpu: 8\nmemory: 320Gi"),
        old=("gpus: 2\ncpu: 8\nmemory: 32Gi"),
        changes=(("overlays/lab/cluster.yaml", "cpu: {count: 4,", "cpu: {labels: {pool: cpu}, count: 4,"),),
    ),
)
