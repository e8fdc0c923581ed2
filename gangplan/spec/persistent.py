"""PersistentVolumes of a team on a cluster, for existing storage: buckets and file systems."""

from typing import Annotated, Literal

from pydantic import Field

from gangplan.spec.base import Memory, SecretName, Strict
from gangplan.spec.pods import CsiDriver, VolumeAttributes

# This does not include the limits of single drivers: Blob CSI refuses '#' and '/'.
VolumeHandle = Annotated[str, Field(min_length=1, max_length=253)]


class Nfs(Strict):
    """A folder of an NFS server, which the kubelet mounts without a driver."""

    server: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:%\[\]-]+$", max_length=253)] = Field(
        description="Name or address of the server.", examples=["nfs.example.com"]
    )
    path: Annotated[str, Field(pattern=r"^/", max_length=1024)] = Field(
        description="Folder that the server exports.", examples=["/exports/corpus"]
    )


class PersistentVolume(Strict):
    """Existing storage for which gangplan creates a PersistentVolume and a claim. Its data outlives both."""

    driver: CsiDriver | None = Field(
        None,
        description="CSI driver that mounts it; omitted: that of the connection's type, s3.csi.aws.com or blob.csi.azure.com.",
        examples=["fsx.csi.aws.com"],
    )
    handle: VolumeHandle | None = Field(
        None,
        description="Identifier that the driver uses, such as the id of a file system; omitted for buckets: a unique name.",
        examples=["fs-0123456789abcdef0"],
    )
    attributes: VolumeAttributes = Field(
        {},
        description="Attributes that the driver gets, in addition to those of a bucket.",
        examples=[{"dnsname": "fs-0123456789abcdef0.fsx.eu-central-1.amazonaws.com", "mountname": "fsx"}],
    )
    nfs: Nfs | None = Field(
        None,
        description="Instead of driver: a folder of an NFS server.",
        examples=[{"server": "nfs.example.com", "path": "/exports/corpus"}],
    )
    bucket: Annotated[str, Field(min_length=3, max_length=63)] | None = Field(
        None,
        description="Bucket or container of the team's connection, as the team's file names it; it states which one the platform means.",
        examples=["lidar-training-data"],
    )
    account: Annotated[str, Field(pattern=r"^[a-z0-9]{3,24}$")] | None = Field(
        None, description="Storage account of an Azure container.", examples=["examplelidar"]
    )
    authentication: Literal["pod", "driver"] = Field(
        "pod",
        description="Who opens a bucket: the team's identity in the cloud, or the driver by credentials of its own, which may reach other buckets, too.",
        examples=["driver"],
    )
    secret: SecretName | None = Field(
        None,
        description="Secret of the team's namespace that the driver gets on the node (nodeStageSecretRef).",
        examples=["blob-key"],
    )
    mount_options: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        (),
        max_length=32,
        description="Mount options in addition to those that a bucket needs.",
        examples=[["uid=1000", "gid=1000"]],
    )
    fs_type: Annotated[str, Field(pattern=r"^[a-z0-9]+$", max_length=32)] | None = Field(
        None, description="File system on it; omitted: the driver's default.", examples=["lustre"]
    )
    size: Memory | None = Field(
        None,
        description="Size that is shown; drivers of buckets do not enforce it. Omitted: 1Pi for buckets.",
        examples=["1200Gi"],
    )
    encrypted: bool = Field(
        False,
        description="Whether the bucket's data is encrypted at rest; of other storage, the team's claim says so.",
        examples=[True],
    )
