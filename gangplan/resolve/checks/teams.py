"""Checks of teams on a cluster: their priorities and limits."""

from __future__ import annotations

from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.clusters import LIMITS_CONTRADICT
from gangplan.rules.specs import PRIORITY_UNKNOWN
from gangplan.workspace import suggest_nearest


def check_cluster_file_teams(notes: ClusterCheck) -> None:
    """Check that priorities of teams exist, and that a namespace may have the pods of the largest run."""
    limits = notes.spec.limits
    for name, team in notes.spec.teams.items():
        for index, priority in enumerate(team.priorities or ()):
            if priority not in limits.priorities:
                notes.report(
                    PRIORITY_UNKNOWN,
                    ("teams", name, "priorities", index),
                    f"priority '{priority}' does not exist on this cluster",
                    suggest_nearest(priority, limits.priorities),
                )
    if limits.workers + 1 > limits.objects.pods:
        notes.report(
            LIMITS_CONTRADICT,
            ("limits", "objects", "pods"),
            f"a run may have {limits.workers} workers and a launcher, a namespace only {limits.objects.pods} pods",
            f"Write pods: {limits.workers + 1} or more, or lower limits.workers.",
        )
