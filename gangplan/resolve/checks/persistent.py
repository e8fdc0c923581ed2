"""Checks of PersistentVolumes of teams in a cluster file: each needs its claim or bucket, and its driver."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.cloud import resolve_team_cloud_identity
from gangplan.resolve.persistent import is_bucket
from gangplan.resolve.tenant import count_team_claims_on_cluster
from gangplan.rules.volumes import PERSISTENT_VOLUME_WRONG
from gangplan.spec.persistent import PersistentVolume
from gangplan.spec.team import Claim, Connection
from gangplan.workspace import TeamFile, Workspace, suggest_nearest

CLOUDS = {"s3": "aws", "azure-blob": "azure"}
Wrong = Iterator[tuple[str, str, str]]


def check_cluster_file_persistent_volumes(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check every volume of every team whose file can be read."""
    taken: dict[tuple[str, str], str] = {}
    for team, queue in notes.spec.teams.items():
        file = workspace.teams.get(team)
        if file is None or not queue.persistent_volumes:
            continue
        for name, volume in queue.persistent_volumes.items():
            wrongs = [
                *_find_persistent_volume_mistakes(notes, file, name, volume),
                *_check_cluster_file_volume_handle(volume, f"{team}/{name}", taken),
            ]
            for field, message, help in wrongs:
                path: FieldPath = ("teams", team, "persistentVolumes", name, *([field] if field else []))
                text = f"volume '{name}' of team {team} {message}"
                notes.report(PERSISTENT_VOLUME_WRONG, path, text, help, key=not field)
        _check_cluster_file_claim_count(notes, file)


def _find_persistent_volume_mistakes(
    notes: ClusterCheck, team: TeamFile, name: str, volume: PersistentVolume
) -> Wrong:
    """Yield for each mistake in a volume its field, what is wrong with it, and what to do."""
    connection, claim = team.spec.connections.get(name), team.spec.claims.get(name)
    if connection is not None and is_bucket(connection):
        yield from _check_cluster_file_bucket_volume(notes, team, name, volume, connection)
        if claim is not None:
            yield "", "has the name of a claim, too", f"Rename one of them in {team.document.file}."
    elif claim is not None:
        yield from _check_cluster_file_claim_volume(team, name, volume, claim)
    else:
        known = [*(one for one, of in team.spec.connections.items() if is_bucket(of)), *team.spec.claims]
        message = (
            f"is neither a claim of {team.document.file} nor a connection that mountpoint-s3 or blob mounts"
        )
        yield "", message, suggest_nearest(name, known)


def _check_cluster_file_bucket_volume(
    notes: ClusterCheck, team: TeamFile, name: str, volume: PersistentVolume, connection: Connection
) -> Wrong:
    """Check that a bucket agrees with the team's file and that an identity can open it."""
    if volume.nfs is not None:
        yield "nfs", "is a bucket, which no NFS server exports", "Remove nfs."
    if volume.bucket != connection.bucket:
        stated = f"states bucket '{volume.bucket}'" if volume.bucket else "states no bucket"
        message = f"{stated}, and {team.document.file} names '{connection.bucket}'"
        yield (
            "bucket" if volume.bucket else "",
            message,
            f"Write bucket: {connection.bucket}, if the team may use it.",
        )
    if connection.type == "azure-blob" and volume.account is None:
        yield "", "states no storage account", "Write account: with the name of the container's account."
    if connection.type == "azure-blob" and {"#", "/"} & {*(volume.handle or "")}:
        yield "handle", "has a handle with '#' or '/', which its driver keeps for itself", "Remove them."
    if connection.type != "azure-blob" and volume.account is not None:
        yield "account", "is a bucket of S3, which has no storage account", "Remove account."
    if volume.authentication == "pod":
        identity = resolve_team_cloud_identity(notes.spec, team.name, team.spec)
        cloud = CLOUDS[connection.type]
        if identity is None or identity.provider != cloud:
            message = f"is opened as the team, whose pods have no identity of {cloud} here"
            help = f"State workloadIdentity: {{provider: {cloud}}} and identity of the team, or authentication: driver."
            yield "", message, help


def _check_cluster_file_claim_volume(
    team: TeamFile, name: str, volume: PersistentVolume, claim: Claim
) -> Wrong:
    """Check that a file system has a driver and handle, or a server, and a claim that no class provisions."""
    if claim.size is not None:
        message = (
            f"has a claim with a size in {team.document.file}, for which a storage class makes the volume"
        )
        yield "", message, "Remove size and storageClass there, or this volume."
    for field in ("bucket", "account"):
        if getattr(volume, field) is not None:
            yield field, f"is a claim, not a bucket, and takes no {field}", f"Remove {field}."
    if (volume.nfs is None) == (volume.driver is None):
        yield (
            "",
            "states neither driver nor nfs" if volume.nfs is None else "states both driver and nfs",
            "Write one of them.",
        )
    elif volume.driver is not None and volume.handle is None:
        yield (
            "",
            f"states no handle, by which {volume.driver} knows it",
            "Write handle: with the id of the file system.",
        )
    if volume.size is None:
        yield "", "states no size", "Write size: as large as the file system is."


def _check_cluster_file_volume_handle(
    volume: PersistentVolume, name: str, taken: dict[tuple[str, str], str]
) -> Wrong:
    """Check that handles differ.

    The kubelet treats volumes of a driver with equal handles as one (CONFIGURATION.md of Mountpoint's
    driver).
    """
    if volume.handle is None:
        return
    key = (volume.driver or "", volume.handle)
    if key in taken:
        yield "handle", f"has the handle of {taken[key]}", "Give each volume a handle of its own."
    taken.setdefault(key, name)


def _check_cluster_file_claim_count(notes: ClusterCheck, team: TeamFile) -> None:
    """Check the limit of claims, which counts claims of volumes and those that storage classes provision."""
    volumes = notes.spec.teams[team.name].persistent_volumes
    made = count_team_claims_on_cluster(notes.cluster, team)
    most = notes.spec.limits.objects.claims
    if volumes and made > most:
        notes.report(
            PERSISTENT_VOLUME_WRONG,
            ("teams", team.name, "persistentVolumes"),
            f"team {team.name} has {made} claims with those of its volumes, and a namespace may hold {most}",
            "Remove a volume or a claim, or raise limits.objects.claims.",
            key=True,
        )
