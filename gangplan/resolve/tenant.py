"""Teams on clusters: what each needs there to run at all."""

from __future__ import annotations

from gangplan.model.identity import TRAINING_ACCOUNT
from gangplan.model.job import Egress
from gangplan.model.manager import ManagerSettings
from gangplan.model.quantity import Quantity
from gangplan.model.site import (
    ClaimToMake,
    DebugGrant,
    ExternalSecretStore,
    GroupMember,
    PodSecurityLevel,
    StoredSecret,
    Tenant,
    TenantQueue,
    VolumeToMake,
)
from gangplan.model.version import parse_version
from gangplan.resolve.backstop import resolve_namespace_limits
from gangplan.resolve.cloud import resolve_team_cloud_identity
from gangplan.resolve.counted import list_counted_resources
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.resolve.site import compute_team_maximum_by_resource, has_cronjobs
from gangplan.spec.cluster import Cluster
from gangplan.spec.manager import manager_settings_of
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.queues import TeamQueue
from gangplan.spec.team import Claim, Team
from gangplan.waivers import Subject, list_waived_policies
from gangplan.workspace import ClusterFile, TeamFile, Workspace


def resolve_tenants_without_sweeps(workspace: Workspace, cluster_name: str) -> list[Tenant]:
    """Return the teams that a cluster lists, sorted by name; a team without a readable file is left out."""
    cluster = workspace.clusters[cluster_name]
    platform = resolve_platform_of_cluster_file(cluster)
    most = compute_team_maximum_by_resource(workspace, cluster_name)
    tenants = []
    for name, queue in sorted(cluster.spec.teams.items()):
        team = workspace.teams.get(name)
        if team is None:
            continue
        own = resolve_namespace_limits(
            cluster.spec,
            queue,
            _resolve_resource_quota_amounts(most[name], manager_settings_of(cluster.spec)),
        )
        tenants.append(
            Tenant(
                team=name,
                namespace=namespace_of(cluster.spec, name, team.spec),
                source=team.document.file,
                platform=platform,
                service_account=TRAINING_ACCOUNT,
                pull_secrets=tuple(
                    one for one in team.spec.pull_secrets if _is_there(team.spec, one, cluster_name)
                ),
                queues=_list_tenant_local_queues(queue) if platform.kueue else (),
                cluster_queue=queue.cluster_queue or name,
                contact=team.spec.contact or "",
                cost_centre=team.spec.cost_centre or "",
                description=team.spec.description or "",
                hard=own.hard,
                bounds=own.bounds,
                forbidden_priorities=own.forbidden_priorities,
                members=_list_tenant_group_members(team.spec),
                debuggers=_list_tenant_debug_grants(team.spec),
                claims=_list_claims_to_make(cluster.spec, cluster_name, team.spec),
                volumes=_list_tenant_volumes(cluster.spec, name, team.spec),
                store=_resolve_tenant_secret_store(cluster.spec, cluster_name, team.spec, name),
                is_gitops_only=cluster.spec.gitops_only,
                regimes=tuple(sorted({*team.spec.compliance, *queue.compliance})),
                waived=list_waived_policies(workspace.waivers, Subject(cluster_name, name)),
                pod_security=_resolve_tenant_pod_security(queue),
                identity=resolve_team_cloud_identity(cluster.spec, name, team.spec),
                schedules=_resolve_run_creator_egress(cluster.spec),
            )
        )
    return tenants


def _resolve_run_creator_egress(cluster: Cluster) -> tuple[Egress, ...]:
    """Return how pods that create runs reach the API server; empty if there are none."""
    if cluster.schedules is None or not has_cronjobs(cluster):
        return ()
    return tuple(
        Egress(name, one.cidr, one.excluding, one.ports)
        for name in cluster.schedules.egress
        for one in cluster.egress.get(name, ())
    )


def _resolve_resource_quota_amounts(
    most: dict[str, Quantity], manager: ManagerSettings
) -> dict[str, Quantity]:
    """Return the amounts that a ResourceQuota bounds: no resources that Kueue's quotas count in another way.

    A queue may admit any amount of those.
    """
    counted = list_counted_resources(most, manager)
    return {resource: amount for resource, amount in most.items() if resource in counted}


def _list_tenant_local_queues(queue: TeamQueue) -> tuple[TenantQueue, ...]:
    """Return the LocalQueues: the team's own, then the others by name."""
    names = dict.fromkeys((queue.queue, *sorted(queue.local_queues)))
    stated = queue.local_queues
    return tuple(TenantQueue(name, stated[name].weight if name in stated else None) for name in names)


def _list_tenant_group_members(team: Team) -> tuple[GroupMember, ...]:
    groups = team.groups
    personas = (
        ("viewer", groups.viewers),
        ("data-scientist", groups.data_scientists),
        ("mlops", groups.mlops),
        ("admin", groups.admins),
    )
    return tuple(GroupMember(group, persona) for persona, names in personas for group in names)


def _list_tenant_debug_grants(team: Team) -> tuple[DebugGrant, ...]:
    grants = (DebugGrant(one.group, one.until, one.reason) for one in team.debuggers)
    return tuple(dict.fromkeys(grants))


def _resolve_tenant_pod_security(queue: TeamQueue) -> PodSecurityLevel:
    if queue.pod_security is None:
        return PodSecurityLevel()
    stated = queue.pod_security
    return PodSecurityLevel(stated.level, " ".join(stated.reason.split()), stated.until)


def _list_claims_to_make(cluster: Cluster, cluster_name: str, team: Team) -> tuple[ClaimToMake, ...]:
    """Return the claims with a size. `check_teams_in_cluster_files` checks that a storage class can provision them."""
    return tuple(
        ClaimToMake(
            claim.claim_name or name,
            claim.size,
            claim.access_modes,
            claim.storage_class or find_default_class(cluster) or "",
            claim.retention,
        )
        for name, claim in sorted(team.claims.items())
        if claim.size is not None and is_claim_on_cluster(claim, cluster_name)
    )


def is_claim_on_cluster(claim: Claim, cluster_name: str) -> bool:
    """Return whether a claim is on a cluster of its team."""
    return claim.clusters is None or cluster_name in claim.clusters


def count_team_claims_on_cluster(cluster: ClusterFile, team: TeamFile) -> int:
    """Return how many claims of storage classes and volumes a team's namespace has, without those of runs."""
    made = sum(
        one.size is not None and is_claim_on_cluster(one, cluster.name) for one in team.spec.claims.values()
    )
    return made + len(cluster.spec.teams[team.name].persistent_volumes)


def _list_tenant_volumes(cluster: Cluster, name: str, team: Team) -> tuple[VolumeToMake, ...]:
    if not cluster.teams[name].persistent_volumes:
        return ()
    from gangplan.resolve.persistent import resolve_team_persistent_volumes  # few teams have one

    return tuple(resolve_team_persistent_volumes(cluster, name, team))


def find_default_class(cluster: Cluster) -> str | None:
    """Return the storage class of claims that name none."""
    return next((name for name, kind in cluster.storage_classes.items() if kind.default), None)


def _resolve_tenant_secret_store(
    cluster: Cluster, cluster_name: str, team: Team, name: str
) -> ExternalSecretStore | None:
    """Return the team's secrets in the cluster's store: declared, of connections, and for pulling."""
    store = cluster.secret_store
    if store is None:
        return None
    namespace = namespace_of(cluster, name, team)
    plain = {*team.secrets, *(one.secret for one in team.connections.values() if one.secret)}
    stored = tuple(
        StoredSecret(
            secret,
            store.path.format(team=name, namespace=namespace, secret=secret),
            secret in team.pull_secrets,
        )
        for secret in sorted({*plain, *team.pull_secrets})
        if _is_there(team, secret, cluster_name)
    )
    version = cluster.versions.external_secrets
    return ExternalSecretStore(
        store.name, store.kind, store.refresh, stored, parse_version(version) if version else None
    )


def _is_there(team: Team, secret: str, cluster_name: str) -> bool:
    """Return whether the cluster has a secret of the team."""
    return cluster_name in team.only_on.get(secret, (cluster_name,))
