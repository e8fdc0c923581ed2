"""PersistentVolumes that the platform defines for a team, and the objects that they become.

Mountpoint for S3 (awslabs/mountpoint-s3-csi-driver, docs/CONFIGURATION.md): static provisioning only, storage
class "", a claimRef both ways, a handle that is unique in the cluster, options `region`, `prefix`,
`allow-other` (needed by users other than root), `allow-delete`, `allow-overwrite`, `read-only`;
`authenticationSource: pod` is IRSA of the pod's service account, and `driver` is the default. Blob CSI
(kubernetes-sigs/blob-csi-driver, docs/driver-parameters.md and docs/workload-identity-static-pv-mount.md,
from v1.24): storageAccount, containerName, `clientID` for the pod's identity, a handle without '#' and '/',
`-o allow_other`, and blobfuse2's `--subdirectory=`. FSx for Lustre (kubernetes-sigs/aws-fsx-csi-driver,
examples/kubernetes/static_provisioning): the file system's id as handle, dnsname and mountname as attributes.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.identity import CloudIdentity
from gangplan.model.quantity import parse_memory_quantity
from gangplan.model.site import VolumeToMake
from gangplan.resolve.cloud import resolve_team_cloud_identity
from gangplan.spec.cluster import Cluster
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.persistent import PersistentVolume
from gangplan.spec.team import Claim, Connection, Team

# The mount type of a bucket and its CSI driver, by the type of its connection.
FOLDERS = {"s3": ("mountpoint-s3", "s3.csi.aws.com"), "azure-blob": ("blob", "blob.csi.azure.com")}
# Buckets have no known size; Blob CSI needs a large one (AKS, "Create a static persistent volume").
ENDLESS = parse_memory_quantity("1Pi")
# The prefix of names that Argo CD's project lets guardrails give to volumes.
PREFIX = "gangplan-"


def is_bucket(connection: Connection | None) -> bool:
    """Return whether a connection is a bucket that a PersistentVolume mounts as a folder."""
    if connection is None or connection.claim is not None:
        return False
    return connection.type in FOLDERS and connection.mount == FOLDERS[connection.type][0]


def build_bucket_claim(connection: Connection) -> Claim:
    """Return the claim of a bucket, as a team's file would state it."""
    mode = "ReadOnlyMany" if connection.read_only else "ReadWriteMany"
    return Claim.model_validate({"accessModes": (mode,), "readOnly": connection.read_only})


def resolve_team_persistent_volumes(cluster: Cluster, name: str, team: Team) -> Iterator[VolumeToMake]:
    """Yield a team's volumes on a cluster, by name, if its file has a claim or connection for them."""
    namespace, identity = namespace_of(cluster, name, team), resolve_team_cloud_identity(cluster, name, team)
    for key, stated in sorted(cluster.teams[name].persistent_volumes.items()):
        connection, claim = team.connections.get(key), team.claims.get(key)
        volume = f"{PREFIX}{namespace}.{key}"
        if connection is not None and is_bucket(connection):
            yield _resolve_bucket_volume(key, volume, stated, connection, identity)
        elif claim is not None:
            yield VolumeToMake(
                key,
                volume,
                claim.claim_name or key,
                claim.access_modes,
                stated.size or ENDLESS,
                stated.driver or "",
                stated.handle or "",
                tuple(sorted(stated.attributes.items())),
                stated.mount_options,
                stated.fs_type or "",
                stated.secret or "",
                (stated.nfs.server, stated.nfs.path) if stated.nfs else None,
                claim.retention,
            )


def _resolve_bucket_volume(
    key: str, volume: str, stated: PersistentVolume, connection: Connection, identity: CloudIdentity | None
) -> VolumeToMake:
    build = _resolve_mountpoint_options if connection.type == "s3" else _resolve_azure_blob_options
    options, attributes = build(stated, connection, identity)
    return VolumeToMake(
        key,
        volume,
        key,
        build_bucket_claim(connection).access_modes,
        stated.size or ENDLESS,
        stated.driver or FOLDERS[connection.type][1],
        stated.handle or volume,
        tuple(sorted({**attributes, **stated.attributes}.items())),
        (*options, *stated.mount_options),
        stated.fs_type or "",
        stated.secret or "",
        retention_s=connection.retention,
    )


Facts = tuple[list[str], dict[str, str]]


def _resolve_mountpoint_options(
    stated: PersistentVolume, connection: Connection, identity: CloudIdentity | None
) -> Facts:
    """Return the options and attributes of an S3 bucket."""
    options = ["allow-other"]
    options += [f"region {connection.region}"] if connection.region else []
    if prefix := connection.prefix.strip("/"):
        options.append(f"prefix {prefix}/")
    options += ["read-only"] if connection.read_only else ["allow-delete", "allow-overwrite"]
    attributes = {"authenticationSource": stated.authentication, "bucketName": connection.bucket}
    if connection.endpoint:
        options.append(f"endpoint-url {connection.endpoint}")
    return options, attributes


def _resolve_azure_blob_options(
    stated: PersistentVolume, connection: Connection, identity: CloudIdentity | None
) -> Facts:
    """Return the options and attributes of an Azure container."""
    options = ["-o allow_other"]
    options += ["-o ro"] if connection.read_only else []
    if prefix := connection.prefix.strip("/"):
        options.append(f"--subdirectory={prefix}/")
    attributes = {"containerName": connection.bucket, "protocol": "fuse2"}
    attributes["storageAccount"] = stated.account or ""
    if stated.authentication == "pod" and identity is not None:
        attributes["clientID"] = identity.name
    return options, attributes
