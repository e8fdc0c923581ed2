"""The clusters that a spec runs on."""

from __future__ import annotations

from gangplan.findings import Finding
from gangplan.rules.specs import CLUSTER_NOT_CHOSEN, CLUSTER_UNKNOWN
from gangplan.workspace import Spec, Workspace, nearest


def target_clusters(workspace: Workspace, spec: Spec) -> tuple[tuple[str, ...], list[Finding]]:
    """The clusters that a spec runs on: its own list, the team's, else the team's only cluster."""
    team = workspace.teams.get(spec.source.team)
    if spec.spec.clusters is not None:
        findings = [
            Finding(
                CLUSTER_UNKNOWN,
                spec.document.where(("clusters", index)),
                f"cluster '{name}' is not declared in overlays/",
                nearest(name, workspace.clusters),
            )
            for index, name in enumerate(spec.spec.clusters)
            if name not in workspace.clusters and name not in workspace.unread
        ]
        named = tuple(name for name in dict.fromkeys(spec.spec.clusters) if name in workspace.clusters)
        return (() if findings else named), findings
    if team is None:
        return (), []
    if team.spec.clusters is not None:
        return tuple(name for name in team.spec.clusters if name in workspace.clusters), []
    admitting = [name for name, cluster in workspace.clusters.items() if team.name in cluster.spec.teams]
    if workspace.unread and len(admitting) != 1:
        return (), []  # what an unreadable cluster file would have said is not known
    if len(admitting) == 1:
        return tuple(admitting), []
    message = f"team {team.name} may run on {len(admitting)} clusters ({', '.join(admitting) or 'none'}), and neither the spec nor the team chooses one"
    where = spec.document.where(())
    return (), [
        Finding(CLUSTER_NOT_CHOSEN, where, message, "Add clusters: [NAME] to the spec or to team.yaml.")
    ]
