"""Teams on clusters: what each needs there to run at all."""

from __future__ import annotations

from gangplan.model.site import Site, Tenant
from gangplan.resolve.platform import resolve_platform
from gangplan.workspace import Workspace

# The service account that every training pod runs as; it has no token and no rights.
SERVICE_ACCOUNT = "training"


def resolve_tenants(workspace: Workspace, cluster_name: str) -> list[Tenant]:
    """The teams that a cluster lists, sorted by name; a team without a readable file is left out."""
    cluster = workspace.clusters[cluster_name]
    platform = resolve_platform(cluster)
    tenants = []
    for name, queue in sorted(cluster.spec.teams.items()):
        team = workspace.teams.get(name)
        if team is None:
            continue
        tenants.append(
            Tenant(
                team=name,
                namespace=team.spec.namespace or name,
                source=team.document.file,
                platform=platform,
                service_account=SERVICE_ACCOUNT,
                pull_secrets=team.spec.pull_secrets,
                queue=queue.queue if platform.kueue else "",
                cluster_queue=queue.cluster_queue or name,
                contact=team.spec.contact or "",
                cost_centre=team.spec.cost_centre or "",
                description=team.spec.description or "",
            )
        )
    return tenants


def resolve_site(workspace: Workspace, cluster_name: str) -> Site:
    """The cluster itself."""
    cluster = workspace.clusters[cluster_name]
    return Site(cluster.document.file, resolve_platform(cluster), cluster.spec.limits.priorities)
