"""The cloud identities of a team's pods, and the cloud that a cluster uses for them."""

from typing import Annotated, Literal

from pydantic import Field

from gangplan.spec.base import Name, Strict

Uuid = Annotated[
    str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", max_length=36)
]


class AwsIdentity(Strict):
    """A role of AWS, which pods assume by IAM roles for service accounts."""

    role: Annotated[
        str,
        Field(pattern=r"^arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", max_length=2048),
    ] = Field(description="ARN of the role.", examples=["arn:aws:iam::123456789012:role/team-nlp"])


class GcpIdentity(Strict):
    """A service account of Google Cloud, which pods use by Workload Identity Federation for GKE."""

    service_account: Annotated[
        str,
        Field(
            pattern=r"^[a-z][-a-z0-9]{4,28}[a-z0-9]@[-a-z0-9.:]+\.iam\.gserviceaccount\.com$", max_length=253
        ),
    ] = Field(
        description="Address of the service account.",
        examples=["team-nlp@example-project.iam.gserviceaccount.com"],
    )


class AzureIdentity(Strict):
    """A client of Azure, which pods use by Microsoft Entra Workload ID."""

    client_id: Uuid = Field(
        description="Client id of the managed identity.", examples=["11111111-2222-3333-4444-555555555555"]
    )
    tenant_id: Uuid | None = Field(
        None,
        description="Tenant of the client; omitted: that of the cluster's webhook.",
        examples=["66666666-7777-8888-9999-000000000000"],
    )


class Identity(Strict):
    """The identity of pods in each cloud; a cluster uses the one of its own cloud."""

    aws: AwsIdentity | None = Field(
        None,
        description="Role on clusters of AWS.",
        examples=[{"role": "arn:aws:iam::123456789012:role/team-nlp"}],
    )
    gcp: GcpIdentity | None = Field(
        None,
        description="Service account on clusters of Google Cloud.",
        examples=[{"serviceAccount": "team-nlp@example-project.iam.gserviceaccount.com"}],
    )
    azure: AzureIdentity | None = Field(
        None,
        description="Client on clusters of Azure.",
        examples=[{"clientId": "11111111-2222-3333-4444-555555555555"}],
    )


class WorkloadIdentity(Strict):
    """Which cloud gives identities to pods of the cluster, and which endpoints they must reach for that."""

    provider: Literal["aws", "gcp", "azure"] = Field(
        description="Cloud whose webhook (AWS, Azure) or metadata server (Google Cloud) the cluster has.",
        examples=["aws"],
    )
    egress: tuple[Name, ...] = Field(
        (),
        max_length=8,
        description="Endpoints, by their names in egress, where tokens are exchanged: sts.REGION.amazonaws.com or login.microsoftonline.com, and the cloud's own services. Runs of teams with an identity reach them, and on Google Cloud the metadata server.",
        examples=[["sts"]],
    )
