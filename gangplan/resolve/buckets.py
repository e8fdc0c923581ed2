"""Cloud buckets mounted as folders.

Cloud Storage FUSE creates a volume for one pod: driver and attributes of its inline volumes, and the
annotation by which GKE adds its container to a pod, are those of GKE's page "Mount Cloud Storage buckets as
CSI ephemeral volumes". Mountpoint for S3 supports only existing volumes (static provisioning, its README),
and so does Blob CSI as AKS documents it: these go through a claim.
"""

from __future__ import annotations

from gangplan.findings import Location
from gangplan.model.identity import TRAINING_ACCOUNT
from gangplan.model.job import EnvVar, InlineVolume, Mount, Origins, PulledImage, ValueOrigin
from gangplan.model.pods import GCSFUSE
from gangplan.model.trial import PartOrigins
from gangplan.resolve.cloud import resolve_run_identity
from gangplan.resolve.context import JobResolution
from gangplan.rules.specs import BUCKET_WITHOUT_IDENTITY
from gangplan.spec.team import Connection


def can_mount_as_folder(connection: Connection) -> bool:
    """Return whether a connection can be mounted as a folder without a claim."""
    return connection.mount == "gcsfuse"


def resolve_bucket_mount(
    context: JobResolution,
    name: str,
    connection: Connection,
    path: str,
    image: PulledImage | None,
    where: Location,
) -> Mount:
    """Return the mount of a Google Cloud bucket, and report a run that has no identity to open it with."""
    identity = resolve_run_identity(context)
    account = context.spec.spec.service_account
    if identity is None and account not in (None, TRAINING_ACCOUNT):
        context.report(
            BUCKET_WITHOUT_IDENTITY,
            where,
            f"'{name}' is a bucket of Google Cloud, and the identity of team {context.team.name} belongs to its own account, not to '{account}'",
            "Remove serviceAccount, or fetch the bucket through a claim.",
        )
    elif identity is None or identity.provider != "gcp":
        context.report(
            BUCKET_WITHOUT_IDENTITY,
            where,
            f"'{name}' is a bucket of Google Cloud, but the pods of team {context.team.name} have no identity there"
            f" on cluster {context.cluster.name}",
            "State workloadIdentity: {provider: gcp} for the cluster and identity: {gcp: ...} for the team.",
        )
    options = ["implicit-dirs"]
    if image is not None:
        options += [f"uid={image.uid}", f"gid={image.gid}"]
    if connection.prefix.strip("/"):
        options.append(f"only-dir={connection.prefix.strip('/')}")
    attributes = (("bucketName", connection.bucket), ("mountOptions", ",".join(options)))
    volume = f"bucket-{name}"[:63].rstrip("-")
    inline = InlineVolume(name, GCSFUSE, attributes)
    origins = _list_bucket_mount_origins(context, name)
    return Mount(volume, path, inline=inline, read_only=connection.read_only, origins=origins)


def _list_bucket_mount_origins(context: JobResolution, name: str) -> PartOrigins:
    in_data = name in context.spec.spec.data
    asked = ValueOrigin("spec", ("data", name) if in_data else ("checkpoint", "path"))
    around = (asked.aside(), ValueOrigin("spec", ("checkpoint", "to"), is_direct=False))
    bucket, prefix, read_only, driver = (
        ValueOrigin("team", ("connections", name, field))
        for field in ("bucket", "prefix", "readOnly", "mount")
    )
    return {
        "bucketName": (bucket, *around),
        "mountOptions": (prefix, ValueOrigin("job", ("image",), is_direct=False), *around),
        "readOnly": (read_only, *around),
        "driver": (driver, *around),
        "mountPath": (asked, *around),
        "": (ValueOrigin("", because="a volume is named after its connection"), *around),
    }


S3_URL = "S3_URL"


def resolve_bucket_env(name: str, connection: Connection) -> tuple[EnvVar, ...]:
    """Return the address and keys of a bucket as AWS tools and SDKs read them, and its URL as S3_URL."""

    def said(*fields: str) -> Origins:
        return tuple(ValueOrigin("team", ("connections", name, field)) for field in fields)

    secret = connection.secret or ""
    found = [
        EnvVar("AWS_ENDPOINT_URL", connection.endpoint or "", origins=said("endpoint")),
        EnvVar(
            S3_URL,
            f"s3://{connection.bucket}/{connection.prefix.strip('/')}".rstrip("/"),
            origins=said("bucket", "prefix"),
        ),
        EnvVar("AWS_REGION", connection.region or "", origins=said("region")),
        *(
            EnvVar(key, secret=secret, key=key, origins=said("secret"))
            for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        ),
    ]
    return tuple(one for one in found if one.value or one.secret)
