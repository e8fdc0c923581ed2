"""Pod Security levels that the platform grants teams: raised, expired, or needed by no run.

The platform grants the level, like a namespace: the cluster's file states it with a reason and a last day.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator

from gangplan.findings import Finding
from gangplan.rules.grants import POD_SECURITY_EXPIRED, POD_SECURITY_RAISED, POD_SECURITY_UNNEEDED
from gangplan.rules.model import NOTE
from gangplan.rules.security import HOST_ACCESS
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.queues import PodSecurity
from gangplan.workspace import ClusterFile, Workspace


def resolve_raised_team_pod_security_levels(cluster: ClusterFile) -> Iterator[Finding]:
    """Yield the levels weaker than restricted, each with its reason, so that readers of a report see them."""
    for team, stated in _list_stated_levels(cluster):
        message = (
            f"the namespace of team {team} enforces Pod Security {stated.level} instead of restricted until"
            f" {stated.until}: {' '.join(stated.reason.split()).rstrip('.')}"
        )
        yield Finding(
            POD_SECURITY_RAISED,
            cluster.document.where(("teams", team, "podSecurity", "level")),
            message,
            "Remove podSecurity as soon as the reason is gone.",
            level=NOTE if stated.level == "baseline" else None,
        )


def find_expired_team_pod_security_levels(
    workspace: Workspace, today: datetime.date, teams: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield levels whose last day is over. Namespace labels do not expire, so somebody must remove them."""
    for cluster in workspace.clusters.values():
        for team, stated in _list_stated_levels(cluster):
            if (not teams or team in teams) and datetime.date.fromisoformat(stated.until) < today:
                yield Finding(
                    POD_SECURITY_EXPIRED,
                    cluster.document.where(("teams", team, "podSecurity", "until")),
                    f"the namespace of team {team} may enforce Pod Security {stated.level} only until"
                    f" {stated.until}, and today is {today}",
                    "Remove podSecurity and render, or set a later day.",
                )


def find_unneeded_team_pod_security_levels(
    workspace: Workspace, findings: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield levels that no run of the team needs, judged by the findings about all runs."""
    used = {
        (cluster, one.object_ref.split("/")[1])
        for one in findings
        if one.rule == HOST_ACCESS
        for cluster in one.clusters
    }
    for name, cluster in workspace.clusters.items():
        for team, stated in _list_stated_levels(cluster):
            file = workspace.teams.get(team)
            space = namespace_of(cluster.spec, team, file.spec) if file else team
            if (name, space) not in used:
                yield Finding(
                    POD_SECURITY_UNNEEDED,
                    cluster.document.where(("teams", team, "podSecurity"), key=True),
                    f"no run of team {team} on {name} needs Pod Security {stated.level}",
                    "Remove podSecurity, so that the namespace enforces restricted.",
                )


def _list_stated_levels(cluster: ClusterFile) -> Iterator[tuple[str, PodSecurity]]:
    for team, queue in cluster.spec.teams.items():
        if queue.pod_security is not None:
            yield team, queue.pod_security
