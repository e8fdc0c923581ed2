"""Team: who owns a namespace, what it may use, and its defaults, in specs/<team>/team.yaml."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gangplan.model.job import Posture
from gangplan.spec.base import (
    ApiVersion,
    Cpu,
    DurationSeconds,
    EnvName,
    Memory,
    Name,
    ScalarText,
    SecretName,
    Strict,
)
from gangplan.spec.base import (
    Day as Day,
)
from gangplan.spec.identity import Identity
from gangplan.spec.job import Priority, Regime
from gangplan.spec.pods import AccessMode as AccessMode

GroupName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][-A-Za-z0-9_.@/=, ]*$", max_length=253)]


class Defaults(Strict):
    """Values for fields that a spec omits."""

    image: Name | None = Field(None, description="Image by catalog name.", examples=["deepspeed"])
    workers: int | None = Field(None, ge=1, le=500, description="Workers.", examples=[4])
    gpus: int | None = Field(None, ge=0, le=16, description="GPUs per worker.", examples=[1])
    gpu_model: Name | None = Field(None, description="GPU model for jobs with GPUs.", examples=["a100-80gb"])
    cpu: Cpu | None = Field(None, description="CPU cores per worker.", examples=[8])
    memory: Memory | None = Field(None, description="Memory per worker.", examples=["64Gi"])
    priority: Priority | None = Field(None, description="Queue priority.", examples=["normal"])
    timeout: DurationSeconds | None = Field(
        None, description="Longest time a run may take.", examples=["12h"]
    )
    grace_period: DurationSeconds | None = Field(
        None, description="How long ranks may keep running after SIGTERM, from 30s to 1h.", examples=["5m"]
    )
    log_retention: DurationSeconds | None = Field(
        None, description="How long the log store should keep the logs of a run.", examples=["30d"]
    )
    retries: int | None = Field(None, ge=0, le=3, description="Restarts after a failure.", examples=[0])
    posture: Posture | None = Field(None, description="Network posture.", examples=["restricted"])
    egress: tuple[Name, ...] | None = Field(
        None, max_length=32, description="Endpoints that every run may reach.", examples=[["s3"]]
    )
    env: dict[EnvName, ScalarText] = Field(
        {},
        max_length=64,
        description="Environment variables; a spec's own take precedence.",
        examples=[{"NCCL_DEBUG": "WARN"}],
    )


Clusters = Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)] | None


class Claim(Strict):
    """A PersistentVolumeClaim in the team's namespace, which exists or which gangplan creates."""

    claim_name: SecretName | None = Field(
        None,
        description="The claim's name in the cluster; omitted: the same name.",
        examples=["financial-docs-v2"],
    )
    access_modes: Annotated[tuple[AccessMode, ...], Field(min_length=1)] = Field(
        description="How many nodes may mount it, as Kubernetes writes it.", examples=[["ReadWriteMany"]]
    )
    read_only: bool = Field(False, description="Mount it read-only.", examples=[True])
    encrypted: bool = Field(
        False,
        description="Whether its data is encrypted at rest; for a claim that gangplan creates, the storage class says so.",
        examples=[True],
    )
    size: Memory | None = Field(
        None,
        description="Size of a claim that gangplan creates; omitted: the claim already exists.",
        examples=["2Ti"],
    )
    data_size: Memory | None = Field(
        None,
        description="How much data it holds; above 1Ti, runs that mount it get a warning that recommends a bucket (claim-size).",
        examples=["800Gi"],
    )
    retention: DurationSeconds | None = Field(
        None,
        description="How long its data is kept before it is deleted; kept as a label on a claim that gangplan creates. GDPR asks for it.",
        examples=["365d"],
    )
    storage_class: SecretName | None = Field(
        None,
        description="Storage class of a claim that gangplan creates; omitted: the cluster's default.",
        examples=["cephfs-encrypted"],
    )
    clusters: Clusters = Field(
        None,
        description="Clusters where it is; omitted: every cluster of the team.",
        examples=[["onprem-a100"]],
    )


class Groups(Strict):
    """Groups of the identity provider, by what their members do."""

    data_scientists: tuple[GroupName, ...] = Field(
        (), max_length=32, description="They make, change and watch runs.", examples=[["nlp-scientists"]]
    )
    mlops: tuple[GroupName, ...] = Field(
        (),
        max_length=32,
        description="They also maintain runtimes and read metrics.",
        examples=[["nlp-mlops"]],
    )
    admins: tuple[GroupName, ...] = Field(
        (), max_length=32, description="They also see quota and network policies.", examples=[["nlp-leads"]]
    )
    viewers: tuple[GroupName, ...] = Field(
        (), max_length=32, description="They have read-only access.", examples=[["auditors"]]
    )


class Debugger(Strict):
    """A group that may open a shell in the team's pods until the end of a day."""

    group: GroupName = Field(description="Group of the identity provider.", examples=["nlp-on-call"])
    until: Day = Field(
        description="Last day of the permission, as 2026-12-31; after that day, the check fails until it is removed.",
        examples=["2026-12-31"],
    )
    reason: Annotated[str, Field(min_length=1, max_length=512)] = Field(
        description="Why; kept as an annotation.", examples=["Hang in all-reduce of run llm-7"]
    )


class Connection(Strict):
    """A bucket: one of an S3-compatible store with its keys in a secret, or one of a cloud."""

    type: Literal["s3", "gcs", "azure-blob"] = Field("s3", description="Kind of store.", examples=["s3"])
    endpoint: Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]+)?$")] | None = Field(
        None,
        description="Address of the store; needed for s3 in the environment.",
        examples=["https://s3.example.com"],
    )
    bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")] = Field(
        description="Bucket name.", examples=["lidar-training-data"]
    )
    prefix: str = Field("", max_length=512, description="Path inside the bucket.", examples=["2026/q3"])
    region: str | None = Field(
        None, max_length=63, description="Region name the store expects.", examples=["eu-central-1"]
    )
    secret: SecretName | None = Field(
        None,
        description="Secret with keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; needed for s3 in the environment.",
        examples=["lidar-s3"],
    )
    mount: Literal["gcsfuse", "mountpoint-s3", "blob"] | None = Field(
        None,
        description="What shows the bucket as a folder: gcsfuse by itself, for type gcs on GKE; mountpoint-s3 and blob through a claim.",
        examples=["gcsfuse"],
    )
    read_only: bool = Field(
        False, description="With gcsfuse: mount the bucket's folder read-only.", examples=[True]
    )
    claim: Name | None = Field(
        None,
        description="Claim of the team through which a CSI driver exposes the bucket as files; needed to mount it without gcsfuse, and then the program needs no keys.",
        examples=["lidar-files"],
    )
    egress: Name | None = Field(
        None,
        description="Endpoint name of the cluster through which the store is reached; omitted: its type.",
        examples=["s3"],
    )
    retention: DurationSeconds | None = Field(
        None,
        description="How long its data is kept before it is deleted, as the bucket's lifecycle rules say; omitted: as its claim says. GDPR asks for it.",
        examples=["365d"],
    )
    clusters: Clusters = Field(
        None,
        description="Clusters whose runs may use it; omitted: every cluster of the team.",
        examples=[["onprem-a100"]],
    )

    @property
    def endpoint_name(self) -> str:
        """The endpoint of the cluster through which the store is reached."""
        return self.egress or self.type


class Team(Strict):
    """One team: one namespace, one queue per cluster."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["Team"] = Field(description="Kind of this file.", examples=["Team"])
    name: Name | None = Field(
        None, description="Team name; if stated, it must be the folder's name.", examples=["nlp"]
    )
    description: str | None = Field(
        None, max_length=2048, description="Free text for people.", examples=["Language models"]
    )
    namespace: Name | None = Field(
        None,
        description="Namespace of the team; omitted: the team's name. Only the platform can assign a name other than team-<name>, in the cluster file.",
        examples=["team-nlp"],
    )
    contact: str | None = Field(
        None,
        max_length=253,
        description="Who to ask; kept as an annotation.",
        examples=["nlp-leads@example.com"],
    )
    cost_centre: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)] | None
    ) = Field(None, description="Cost centre; kept as a label for chargeback.", examples=["cc-4711"])
    groups: Groups = Field(
        Groups(),
        description="Who the members are; roles in the team's own namespace follow from it.",
        examples=[{"dataScientists": ["nlp-scientists"], "admins": ["nlp-leads"]}],
    )
    debuggers: tuple[Debugger, ...] = Field(
        (),
        max_length=32,
        description="Who may open a shell in pods, and until when.",
        examples=[[{"group": "nlp-on-call", "until": "2026-12-31", "reason": "Hang in all-reduce"}]],
    )
    compliance: tuple[Regime, ...] = Field(
        (),
        max_length=8,
        description="Regimes that all data of the team falls under; every cluster of the team must enforce each by its pack.",
        examples=[["hipaa"]],
    )
    clusters: Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)] | None = Field(
        None, description="Clusters a spec runs on when it names none.", examples=[["onprem-a100"]]
    )
    claims: dict[Name, Claim] = Field(
        {},
        max_length=128,
        description="Claims that specs may mount, by name.",
        examples=[{"financial-docs": {"accessModes": ["ReadWriteMany"]}}],
    )
    connections: dict[Name, Connection] = Field(
        {},
        max_length=128,
        description="Object stores that specs may use, by name.",
        examples=[{"lidar": {"endpoint": "https://s3.example.com", "bucket": "lidar", "secret": "lidar-s3"}}],
    )
    secrets: tuple[SecretName, ...] = Field(
        (),
        max_length=128,
        description="Secrets of the namespace that specs may refer to.",
        examples=[["huggingface"]],
    )
    config_maps: tuple[SecretName, ...] = Field(
        (),
        max_length=128,
        description="ConfigMaps of the namespace that specs may refer to.",
        examples=[["deepspeed-config"]],
    )
    only_on: dict[SecretName, Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)]] = Field(
        {},
        max_length=128,
        description="Secrets and ConfigMaps that exist only on some of the team's clusters, with those clusters.",
        examples=[{"huggingface": ["us-cloud"]}],
    )
    identity: Identity | None = Field(
        None,
        description="Identity of the team's pods in each cloud; a cluster's file may override it.",
        examples=[{"aws": {"role": "arn:aws:iam::123456789012:role/team-nlp"}}],
    )
    pull_secrets: tuple[SecretName, ...] = Field(
        (),
        max_length=16,
        description="Secrets for pulling images, attached to the team's service account.",
        examples=[["registry-pull"]],
    )
    defaults: Defaults = Field(
        Defaults(), description="Values for fields that a spec leaves out.", examples=[{"priority": "normal"}]
    )

    @property
    def is_limited(self) -> bool:
        """Whether anything of the team is limited to some of its clusters."""
        listed = [one.clusters for one in self.claims.values()]
        listed += [one.clusters for one in self.connections.values()]
        return bool(self.only_on) or any(listed)

    @property
    def named_clusters(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """The clusters that the file names, each with its path."""
        blocks: list[tuple[tuple[str, ...], tuple[str, ...] | None]] = [(("clusters",), self.clusters)]
        for block, entries in (("claims", self.claims), ("connections", self.connections)):
            blocks += [((block, name, "clusters"), one.clusters) for name, one in entries.items()]
        blocks += [(("onlyOn", name), listed) for name, listed in self.only_on.items()]
        for path, listed in blocks:
            for index, cluster in enumerate(listed or ()):
                yield (*path, index), cluster
