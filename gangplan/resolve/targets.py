"""The clusters that a spec runs on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gangplan.findings import Finding
from gangplan.rules.specs import CLUSTER_NOT_CHOSEN, CLUSTER_UNKNOWN, TEAM_NOT_ON_CLUSTER
from gangplan.spec.declare import suggest_known_or_new
from gangplan.workspace import OVERLAYS, Spec, Workspace


def resolve_target_clusters(workspace: Workspace, spec: Spec) -> tuple[tuple[str, ...], list[Finding]]:
    """Return the clusters that a spec runs on: its own list, the team's, else the team's only cluster."""
    team = workspace.teams.get(spec.source.team)
    if spec.spec.clusters is not None:
        findings = [
            Finding(
                CLUSTER_UNKNOWN,
                spec.document.where(("clusters", index)),
                f"cluster '{name}' is not declared in overlays/",
                suggest_known_or_new("cluster", name, workspace.clusters),
            )
            for index, name in enumerate(spec.spec.clusters)
            if name not in workspace.clusters and name not in workspace.unread
        ]
        findings = findings or _check_cluster_lists_team(workspace, spec.source.team)
        named = tuple(name for name in dict.fromkeys(spec.spec.clusters) if name in workspace.clusters)
        return (() if findings else named), findings
    if team is None:
        return (), []
    if nowhere := _check_cluster_lists_team(workspace, team.name):
        return (), nowhere
    if team.spec.clusters is not None:
        return tuple(name for name in team.spec.clusters if name in workspace.clusters), []
    admitting = [name for name, cluster in workspace.clusters.items() if team.name in cluster.spec.teams]
    if workspace.unread and len(admitting) != 1:
        return (), []  # an unreadable cluster file might list the team
    if len(admitting) == 1:
        return tuple(admitting), []
    message = f"team {team.name} may run on {len(admitting)} clusters ({', '.join(admitting)}), and neither the spec nor the team chooses one"
    choices = " or ".join(f"clusters: [{name}]" for name in admitting)
    help = f"Add {choices} to the spec, or to team.yaml."
    return (), [Finding(CLUSTER_NOT_CHOSEN, spec.document.where(()), message, help)]


def _check_cluster_lists_team(workspace: Workspace, name: str) -> list[Finding]:
    """Return the finding that no cluster lists a team, at the team's file: one for all its specs."""
    team = workspace.teams.get(name)
    is_listed = any(name in cluster.spec.teams for cluster in workspace.clusters.values())
    if team is None or is_listed or workspace.unread:  # an unreadable file might list it
        return []
    wanted = [one for one in team.spec.clusters or () if one in workspace.clusters] or [*workspace.clusters]
    message = f"no cluster lists team {name}, so none of its jobs can run"
    return [
        Finding(
            TEAM_NOT_ON_CLUSTER,
            team.document.where(()),
            message,
            f"{suggest_cluster_entry_for_team(workspace, name, wanted)}.",
        )
    ]


def suggest_cluster_entry_for_team(workspace: Workspace, team: str, clusters: Sequence[str]) -> str:
    """Return what to add to a cluster file for a team, with the queue that most of its teams have."""
    queues = Counter(one.queue for one in workspace.clusters[clusters[0]].spec.teams.values())
    queue = next((name for name, _ in queues.most_common(1)), "training")
    place = clusters[0] if len(clusters) == 1 else "<cluster>"
    named = "" if len(clusters) == 1 else f" ({', '.join(clusters)})"
    line = f"{team}: {{queue: {queue}}} under teams: in {OVERLAYS}/{place}/cluster.yaml"
    return f"Add {line}{named}, or ask {'its' if len(clusters) == 1 else 'the'} owner to"
