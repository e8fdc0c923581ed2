"""Checks of team files against cluster files: claims to create, secrets, connections, debug grants."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from gangplan.findings import Finding
from gangplan.resolve import cloud
from gangplan.resolve.grants import check_team_namespaces, check_team_regime_coverage
from gangplan.resolve.tenant import find_default_class, is_claim_on_cluster
from gangplan.rules.teams import (
    CLAIM_TWICE,
    CLAIM_WITHOUT_SIZE,
    CLAIMS_TOO_MANY,
    CONNECTION_INCOMPLETE,
    GRANT_EXPIRED,
    GRANT_IN_PROD,
    SECRET_PATH,
    SECRET_PATH_SHARED,
    STORAGE_ACCESS_MODE,
    STORAGE_CLASS_UNKNOWN,
    STORAGE_DEFAULT_TWICE,
    STORAGE_NO_DEFAULT,
)
from gangplan.spec.team import Claim
from gangplan.workspace import ClusterFile, TeamFile, Workspace, suggest_nearest

PLACEHOLDERS = ("team", "namespace", "secret")


def check_teams_in_cluster_files(workspace: Workspace) -> list[Finding]:
    """Check for everything that prevents a team's objects on its clusters."""
    findings = [*check_team_namespaces(workspace), *check_team_regime_coverage(workspace)]
    catalog, document = workspace.catalog, workspace.catalog_document
    if catalog is not None and document is not None and catalog.requirements is not None:
        from gangplan.resolve.image_requirements import check_catalog_requirements  # few catalogs state any

        findings += check_catalog_requirements(catalog, document)
    for cluster in workspace.clusters.values():
        findings += [*_check_cluster_default_storage_class(cluster), *_check_cluster_secret_path(cluster)]
        findings += cloud.check_cluster_cloud_identities(cluster)
        if has_levels(cluster):
            from gangplan.resolve.pod_security import (
                resolve_raised_team_pod_security_levels,
            )  # few clusters have one

            findings += resolve_raised_team_pod_security_levels(cluster)
    for team in workspace.teams.values():
        clusters = [one for one in workspace.clusters.values() if team.name in one.spec.teams]
        findings += [*_check_team_claims(team, clusters), *_check_team_debug_grants_in_prod(team, clusters)]
        if team.spec.only_on:
            from gangplan.resolve.there import find_names_undeclared_by_team  # few teams have any

            findings += find_names_undeclared_by_team(team)
        findings += [
            *cloud.check_team_cloud_identity(team, clusters, workspace.unread),
            *_check_team_connections(team, clusters, workspace.unread),
        ]
    return findings


def check_expired_team_grants(
    workspace: Workspace, today: datetime.date, teams: Collection[str] = ()
) -> list[Finding]:
    """Return findings about expired debug grants and Pod Security levels, and about outdated scans of images.

    RBAC and labels do not expire, so somebody must remove them.
    """
    catalog, document = workspace.catalog, workspace.catalog_document
    scans = []
    if catalog is not None and document is not None and catalog.requirements is not None:
        from gangplan.resolve.image_requirements import find_outdated_image_scans  # few catalogs state any

        scans = find_outdated_image_scans(catalog, document, today, workspace.root)
    grants = [
        Finding(
            GRANT_EXPIRED,
            team.document.where(("debuggers", index, "until")),
            f"group '{grant.group}' may open a shell in pods of team {team.name} only until {grant.until}, "
            f"and today is {today}",
            "Remove the grant and render, or set a later day.",
        )
        for team in workspace.teams.values()
        if not teams or team.name in teams
        for index, grant in enumerate(team.spec.debuggers)
        if datetime.date.fromisoformat(grant.until) < today
    ]
    if not any(map(has_levels, workspace.clusters.values())):
        return [*scans, *grants]
    from gangplan.resolve.pod_security import find_expired_team_pod_security_levels  # few clusters have one

    return [*scans, *grants, *find_expired_team_pod_security_levels(workspace, today, teams)]


def has_levels(cluster: ClusterFile) -> bool:
    """Return whether a cluster's file states Pod Security levels."""
    return any(queue.pod_security for queue in cluster.spec.teams.values())


def check_unneeded_team_pod_security_levels(
    workspace: Workspace, findings: Iterable[Finding]
) -> list[Finding]:
    """Return findings about Pod Security levels that no run needs, judged by the findings about all runs."""
    if not any(map(has_levels, workspace.clusters.values())):
        return []
    from gangplan.resolve.pod_security import find_unneeded_team_pod_security_levels  # few clusters have one

    return list(find_unneeded_team_pod_security_levels(workspace, findings))


def _check_cluster_default_storage_class(cluster: ClusterFile) -> Iterator[Finding]:
    defaults = [name for name, kind in cluster.spec.storage_classes.items() if kind.default]
    for name in defaults[1:]:
        yield Finding(
            STORAGE_DEFAULT_TWICE,
            cluster.document.where(("storageClasses", name, "default")),
            f"storage class '{name}' cannot be the default: '{defaults[0]}' already is",
            "Keep default: true on only one of them.",
        )


def _check_cluster_secret_path(cluster: ClusterFile) -> Iterator[Finding]:
    """Check that all placeholders of the path are known, and that they distinguish secrets and teams."""
    store = cluster.spec.secret_store
    if store is None:
        return
    where, known = cluster.document.where(("secretStore", "path")), "Known: {team}, {namespace}, {secret}."
    names = re.findall(r"\{([^{}]*)\}", store.path)
    rest = re.sub(r"\{[^{}]*\}", "", store.path)
    unknown = [name for name in names if name not in PLACEHOLDERS]
    for name in dict.fromkeys(unknown):
        yield Finding(SECRET_PATH, where, f"'{{{name}}}' in the path is unknown", known)
    if "{" in rest or "}" in rest:
        yield Finding(SECRET_PATH, where, f"'{store.path}' has an unmatched brace", known)
    elif "secret" not in names and not unknown:
        message = f"'{store.path}' is the same for every secret"
        yield Finding(SECRET_PATH, where, message, "Add {secret} to the path.")
    elif not {"team", "namespace"} & {*names} and not unknown:
        message = f"'{store.path}' is the same for every team: each can read the secrets of all"
        yield Finding(SECRET_PATH_SHARED, where, message, "Add {team} or {namespace} to the path.")


def _check_team_claims(team: TeamFile, clusters: list[ClusterFile]) -> Iterator[Finding]:
    made: dict[tuple[str, str], str] = {}
    count: Counter[str] = Counter()
    for name, claim in team.spec.claims.items():
        if claim.size is None:
            if claim.storage_class is not None:
                where = team.document.where(("claims", name, "storageClass"))
                message = f"claim '{name}' has a storage class but no size, so gangplan does not create it"
                yield Finding(
                    CLAIM_WITHOUT_SIZE, where, message, "Add size: to create it, or remove storageClass."
                )
            continue
        real = claim.claim_name or name
        there = [cluster for cluster in clusters if is_claim_on_cluster(claim, cluster.name)]
        twice = next((made[one.name, real] for one in there if (one.name, real) in made), None)
        full = [one for one in there if count[one.name] == one.spec.limits.objects.claims]
        if twice is not None:
            where = team.document.where(("claims", name, "size"))
            message = f"claim '{real}' is already created by '{twice}'"
            yield Finding(CLAIM_TWICE, where, message, "Keep size and storageClass on only one of them.")
        elif full:
            few, most = full[0], count[full[0].name]
            yield Finding(
                CLAIMS_TOO_MANY,
                team.document.where(("claims", name), key=True),
                f"claim '{name}' is one more than the {most} that a namespace of cluster {few.name} may hold",
                f"Remove a claim, or raise limits.objects.claims in {few.document.file}.",
            )
        for cluster in there:
            if made.setdefault((cluster.name, real), name) == name:
                count[cluster.name] += 1
            yield from _check_team_claim_storage_class(team, name, claim, cluster)


_MOUNTS = {"gcs": "gcsfuse", "s3": "mountpoint-s3", "azure-blob": "blob"}


def _check_team_connections(
    team: TeamFile, clusters: list[ClusterFile], unread: Collection[str]
) -> Iterator[Finding]:
    """Check that every connection has what its type needs to be reached or mounted."""
    for name, one in team.spec.connections.items():
        path: tuple[str | int, ...] = ("connections", name)
        said = help = ""
        is_made = bool(clusters) and all(
            name in cluster.spec.teams[team.name].persistent_volumes for cluster in clusters
        )
        if one.mount is not None and one.mount != _MOUNTS[one.type]:
            said, help = f"{one.mount} does not mount {one.type}", f"Write mount: {_MOUNTS[one.type]}."
        elif one.mount in ("mountpoint-s3", "blob") and one.claim is None:
            if is_made or unread:
                continue  # an unreadable cluster file might state it
            said = f"{one.mount} mounts only volumes that the platform has made"
            help = (
                f"Have the owner of each cluster state it in teams.{team.name}.persistentVolumes; or have a"
                " PersistentVolume made for the bucket, declare its claim in claims, and name it here."
            )
        elif one.type == "s3" and one.claim is None and None in (one.endpoint, one.secret):
            missing = [field for field in ("endpoint", "secret") if getattr(one, field) is None]
            said = f"an S3 connection without a claim needs {' and '.join(missing)}"
            help = "Add them, or the claim through which the bucket is mounted."
        elif one.type != "s3" and one.mount is None and one.claim is None:
            said = f"a connection of type {one.type} has no folder"
            help = f"Write mount: {_MOUNTS[one.type]}."
        if said:
            where = team.document.where(path, key=True)
            yield Finding(CONNECTION_INCOMPLETE, where, f"connection '{name}': {said}", help)


def _check_team_claim_storage_class(
    team: TeamFile, name: str, claim: Claim, cluster: ClusterFile
) -> Iterator[Finding]:
    """Check that a storage class of the cluster can provision the claim."""
    classes = cluster.spec.storage_classes
    wanted = claim.storage_class or find_default_class(cluster.spec)
    if wanted is None:
        yield Finding(
            STORAGE_NO_DEFAULT,
            team.document.where(("claims", name, "size")),
            f"claim '{name}' names no storage class, and cluster {cluster.name} has no default storage class",
            f"Add storageClass: to the claim, or default: true to a class in {cluster.document.file}.",
        )
        return
    if wanted not in classes:
        yield Finding(
            STORAGE_CLASS_UNKNOWN,
            team.document.where(("claims", name, "storageClass")),
            f"storage class '{wanted}' of claim '{name}' is not declared for cluster {cluster.name}",
            suggest_nearest(wanted, classes),
        )
        return
    offered = classes[wanted].access_modes
    for index, mode in enumerate(claim.access_modes):
        if mode not in offered:
            yield Finding(
                STORAGE_ACCESS_MODE,
                team.document.where(("claims", name, "accessModes", index)),
                f"storage class '{wanted}' of cluster {cluster.name} does not offer {mode}",
                f"It offers {', '.join(offered)}.",
            )


def _check_team_debug_grants_in_prod(team: TeamFile, clusters: list[ClusterFile]) -> Iterator[Finding]:
    names = sorted(cluster.name for cluster in clusters if cluster.spec.environment == "prod")
    if not names:
        return
    for index, grant in enumerate(team.spec.debuggers):
        yield Finding(
            GRANT_IN_PROD,
            team.document.where(("debuggers", index)),
            f"group '{grant.group}' may open a shell in production pods of team {team.name} "
            f"({', '.join(names)}) until {grant.until}",
            "Remove the grant as soon as the reason is gone.",
        )
