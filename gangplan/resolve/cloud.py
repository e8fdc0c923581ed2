"""The identity of a team's pods in the cloud of a cluster, and the endpoints that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import Finding, Location
from gangplan.model.identity import METADATA_SERVERS, TRAINING_ACCOUNT, CloudIdentity
from gangplan.model.job import Egress
from gangplan.resolve.context import JobResolution
from gangplan.rules.teams import IDENTITY_UNREACHABLE, IDENTITY_UNUSED
from gangplan.spec.cluster import Cluster
from gangplan.spec.declare import suggest_known_or_new
from gangplan.spec.team import Team
from gangplan.workspace import ClusterFile, TeamFile

# The name of GKE's metadata server among the endpoints of runs.
METADATA_SERVER = "metadata-server"


def resolve_team_cloud_identity(cluster: Cluster, name: str, team: Team) -> CloudIdentity | None:
    """Return the identity of a team in the cluster's cloud; the cluster's file may override the team's."""
    answers = cluster.workload_identity
    if answers is None:
        return None
    queue = cluster.teams.get(name)
    stated = (queue.identity if queue else None) or team.identity
    if stated is None:
        return None
    if answers.provider == "aws" and stated.aws:
        return CloudIdentity("aws", stated.aws.role)
    if answers.provider == "gcp" and stated.gcp:
        return CloudIdentity("gcp", stated.gcp.service_account)
    if answers.provider == "azure" and stated.azure:
        return CloudIdentity("azure", stated.azure.client_id, stated.azure.tenant_id or "")
    return None


def resolve_run_identity(context: JobResolution) -> CloudIdentity | None:
    """Return the identity of a run's pods: the team's, unless the run has another service account."""
    if context.spec.spec.service_account not in (None, TRAINING_ACCOUNT):
        return None
    return resolve_team_cloud_identity(context.cluster.spec, context.team.name, context.team.spec)


def resolve_cloud_identity_endpoints(context: JobResolution) -> dict[str, Location]:
    """Return the cluster's endpoints that a run with an identity must reach, with where each is named."""
    cluster = context.cluster
    answers = cluster.spec.workload_identity
    if answers is None or resolve_run_identity(context) is None:
        return {}
    return {
        name: cluster.document.where(("workloadIdentity", "egress", index))
        for index, name in enumerate(answers.egress)
    }


def build_metadata_egress(identity: CloudIdentity | None) -> tuple[Egress, ...]:
    """Return GKE's metadata server, an address of every node but not an endpoint in the cluster's file."""
    if identity is None or identity.provider != "gcp":
        return ()
    return tuple(Egress(METADATA_SERVER, cidr, (), ports) for cidr, ports in METADATA_SERVERS)


def check_cluster_cloud_identities(cluster: ClusterFile) -> Iterator[Finding]:
    """Check that pods can exchange the webhook's tokens, and that identities are of the cluster's cloud."""
    answers = cluster.spec.workload_identity
    if answers is not None:
        for index, name in enumerate(answers.egress):
            if name not in cluster.spec.egress:
                yield Finding(
                    IDENTITY_UNREACHABLE,
                    cluster.document.where(("workloadIdentity", "egress", index)),
                    f"the cluster offers no endpoint '{name}'",
                    suggest_known_or_new("endpoint", name, cluster.spec.egress, cluster.document.file),
                )
        if answers.provider != "gcp" and not answers.egress:
            host = {"aws": "sts.REGION.amazonaws.com", "azure": "login.microsoftonline.com"}[answers.provider]
            yield Finding(
                IDENTITY_UNREACHABLE,
                cluster.document.where(("workloadIdentity",), key=True),
                f"no endpoint is named where pods exchange their tokens ({host})",
                "Add it to egress, and its name here: workloadIdentity.egress.",
            )
    for name, queue in cluster.spec.teams.items():
        if queue.identity and (answers is None or getattr(queue.identity, answers.provider) is None):
            has = f"identities of {answers.provider}" if answers else "no workloadIdentity"
            yield Finding(
                IDENTITY_UNUSED,
                cluster.document.where(("teams", name, "identity"), key=True),
                f"the cluster has {has}, so this is used nowhere",
                "State workloadIdentity, or remove it.",
            )


def check_team_cloud_identity(
    team: TeamFile, clusters: list[ClusterFile], unread: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Report an identity in a cloud that no cluster of the team has; unreadable cluster files may have it."""
    stated = team.spec.identity
    if stated is None or unread & set(team.spec.clusters or unread):
        return
    answering = {one.spec.workload_identity.provider for one in clusters if one.spec.workload_identity}
    for provider in ("aws", "gcp", "azure"):
        if getattr(stated, provider) is not None and provider not in answering:
            yield Finding(
                IDENTITY_UNUSED,
                team.document.where(("identity", provider), key=True),
                f"no cluster of the team has workloadIdentity of {provider}, so this is used nowhere",
                f"Add workloadIdentity: {{provider: {provider}}} to its cluster, or remove it.",
            )
