"""Rules about other jobs of a team that workers should be near to, or apart from."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

NEIGHBOUR_UNKNOWN = Rule(
    "neighbour-unknown",
    WARNING,
    "The team has no job of this name.",
    why=(
        "Pods are found by the label gangplan.dev/job, which is the name of the spec's file unless the spec "
        "has a name of its own. If no pod has it, near and apart have no effect."
    ),
    fix="Correct the name.",
)

NEIGHBOUR_UNUSABLE = Rule(
    "neighbour-unusable",
    ERROR,
    "The workers cannot be near to this job, or apart from it.",
    why=(
        "A job is not its own neighbour: spread says how close its workers are. Where Kueue places pods by "
        "topology, it chooses nodes without looking at other pods, and a worker that must not be there would "
        "wait until the deadline."
    ),
    fix="Write spread, or name a pool without topology.",
)
