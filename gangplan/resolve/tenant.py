"""Teams on clusters: what each needs there to run at all."""

from __future__ import annotations

from gangplan.model.site import ClaimToMake, DebugGrant, GroupMember, Store, StoredSecret, Tenant
from gangplan.model.version import parse_version
from gangplan.resolve.backstop import backstop
from gangplan.resolve.platform import resolve_platform
from gangplan.resolve.site import most_by_team
from gangplan.spec.cluster import Cluster
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.team import Team
from gangplan.waivers import Subject, marks
from gangplan.workspace import Workspace

# The service account that every training pod runs as; it has no token and no rights.
SERVICE_ACCOUNT = "training"


def resolve_tenants(workspace: Workspace, cluster_name: str) -> list[Tenant]:
    """The teams that a cluster lists, sorted by name; a team without a readable file is left out."""
    cluster = workspace.clusters[cluster_name]
    platform = resolve_platform(cluster)
    most = most_by_team(workspace, cluster_name)
    tenants = []
    for name, queue in sorted(cluster.spec.teams.items()):
        team = workspace.teams.get(name)
        if team is None:
            continue
        own = backstop(cluster.spec, queue, most[name])
        tenants.append(
            Tenant(
                team=name,
                namespace=namespace_of(cluster.spec, name, team.spec),
                source=team.document.file,
                platform=platform,
                service_account=SERVICE_ACCOUNT,
                pull_secrets=team.spec.pull_secrets,
                queue=queue.queue if platform.kueue else "",
                cluster_queue=queue.cluster_queue or name,
                contact=team.spec.contact or "",
                cost_centre=team.spec.cost_centre or "",
                description=team.spec.description or "",
                hard=own.hard,
                bounds=own.bounds,
                forbidden_priorities=own.forbidden_priorities,
                members=_members(team.spec),
                debuggers=_debuggers(team.spec),
                claims=_claims(cluster.spec, team.spec),
                store=_store(cluster.spec, team.spec, name),
                is_gitops_only=cluster.spec.gitops_only,
                regimes=tuple(sorted({*team.spec.compliance, *queue.compliance})),
                waived=marks(workspace.waivers, Subject(cluster_name, name)),
            )
        )
    return tenants


def _members(team: Team) -> tuple[GroupMember, ...]:
    groups = team.groups
    personas = (
        ("viewer", groups.viewers),
        ("data-scientist", groups.data_scientists),
        ("mlops", groups.mlops),
        ("admin", groups.admins),
    )
    return tuple(GroupMember(group, persona) for persona, names in personas for group in names)


def _debuggers(team: Team) -> tuple[DebugGrant, ...]:
    grants = (DebugGrant(one.group, one.until, one.reason) for one in team.debuggers)
    return tuple(dict.fromkeys(grants))


def _claims(cluster: Cluster, team: Team) -> tuple[ClaimToMake, ...]:
    """The claims with a size. Whether a class makes them was found out by `check_tenants`."""
    return tuple(
        ClaimToMake(
            claim.claim_name or name,
            claim.size,
            claim.access_modes,
            claim.storage_class or default_class(cluster) or "",
        )
        for name, claim in sorted(team.claims.items())
        if claim.size is not None
    )


def default_class(cluster: Cluster) -> str | None:
    """The storage class of claims that name none."""
    return next((name for name, kind in cluster.storage_classes.items() if kind.default), None)


def _store(cluster: Cluster, team: Team, name: str) -> Store | None:
    """The team's secrets in the cluster's store: those declared, those of connections, those for pulling."""
    store = cluster.secret_store
    if store is None:
        return None
    namespace = namespace_of(cluster, name, team)
    plain = {*team.secrets, *(connection.secret for connection in team.connections.values())}
    stored = tuple(
        StoredSecret(
            secret,
            store.path.format(team=name, namespace=namespace, secret=secret),
            secret in team.pull_secrets,
        )
        for secret in sorted({*plain, *team.pull_secrets})
    )
    version = cluster.versions.external_secrets
    return Store(store.name, store.kind, store.refresh, stored, parse_version(version) if version else None)
