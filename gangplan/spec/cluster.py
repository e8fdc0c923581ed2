"""Cluster: facts and limits of one cluster, in overlays/<cluster>/cluster.yaml, which the platform owns."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from gangplan.spec.admission import AdmissionCheck, KueueSettings
from gangplan.spec.base import (
    ApiVersion,
    Cidr,
    DurationSeconds,
    EnvName,
    LabelKey,
    LabelValue,
    Name,
    ScalarText,
    SecretName,
    Strict,
    build_helpful_error,
)
from gangplan.spec.fabrics import Fabric
from gangplan.spec.identity import WorkloadIdentity
from gangplan.spec.job import Priority
from gangplan.spec.nodes import NodePool, TopologyLevel
from gangplan.spec.params import PolicyParam
from gangplan.spec.pods import PodVolume
from gangplan.spec.queues import Cohort, MultiKueue, Preemption, TeamQueue
from gangplan.spec.team import AccessMode, Defaults

# A registry, with or without a path.
Registry = Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?$", max_length=255)]
Version = Annotated[str, Field(pattern=r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]


class Versions(Strict):
    """What is installed on the cluster. It decides how objects are written."""

    kubernetes: Version = Field(description="Kubernetes version.", examples=["1.34.4"])
    trainer: Version | None = Field(
        None,
        description="Kubeflow Trainer version; omitted: not installed, and runs are MPIJobs of the MPI operator.",
        examples=["2.3.0"],
    )
    jobset: Version | None = Field(
        None, description="JobSet version; omitted: the one that Trainer pins.", examples=["0.12.0"]
    )
    kueue: Version | None = Field(
        None, description="Kueue version; omitted: no Kueue on this cluster.", examples=["0.19.2"]
    )
    openshift: Version | None = Field(
        None, description="OpenShift version; omitted: not OpenShift.", examples=["4.19"]
    )
    mpi_operator: Version | None = Field(
        None,
        description="MPI operator version, for runs with backend: mpijob; omitted: not installed. This or trainer is required.",
        examples=["0.8.2"],
    )
    argocd: Version | None = Field(
        None,
        description="Argo CD version that syncs this cluster; omitted: another engine.",
        examples=["3.5.1"],
    )
    flux: Version | None = Field(
        None, description="Flux version that syncs this cluster; omitted: another engine.", examples=["2.9.0"]
    )
    gpu_operator: Version | None = Field(
        None, description="NVIDIA GPU operator version; omitted: not installed.", examples=["25.10.0"]
    )
    external_secrets: Version | None = Field(
        None,
        description="External Secrets Operator version, where secretStore is set; omitted: any with API v1.",
        examples=["2.9.0"],
    )

    @model_validator(mode="after")
    def _something_starts_runs(self) -> Self:
        if self.trainer is None and self.mpi_operator is None:
            raise build_helpful_error(
                "versions_controller",
                "neither trainer nor mpiOperator is stated, so nothing would start a run",
                'Add trainer: "2.3.0", or mpiOperator: "0.8.2" where runs are MPIJobs.',
            )
        return self


class Mirror(Strict):
    """A registry through which another one is pulled."""

    source: Registry = Field(
        description="Registry, or registry and path, as the catalog writes it.",
        examples=["registry.example.com"],
    )
    mirror: Registry = Field(description="What to write instead.", examples=["mirror.example.eu/training"])

    @model_validator(mode="after")
    def _a_path_stays_a_path(self) -> Self:
        if "/" in self.source and "/" not in self.mirror:
            raise build_helpful_error(
                "mirror_path",
                f"mirror '{self.mirror}' has no path, so the image {self.source} would have no name there",
                f"Write the path as well, such as {self.mirror}/{self.source.partition('/')[2]}, or a source without one.",
            )
        return self


class EgressTarget(Strict):
    """A destination outside the cluster."""

    cidr: Cidr = Field(description="Address range.", examples=["10.20.0.0/16"])
    excluding: tuple[Cidr, ...] = Field(
        (), max_length=32, description="Ranges inside it that stay closed.", examples=[["10.20.1.0/24"]]
    )
    ports: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65535)], ...], Field(min_length=1, max_length=32)
    ] = Field(description="TCP ports.", examples=[[443]])


class Dns(Strict):
    """Where pods resolve names."""

    namespace: Name = Field(description="Namespace of the DNS pods.", examples=["kube-system"])
    labels: dict[LabelKey, LabelValue] = Field(
        min_length=1, description="Labels of the DNS pods.", examples=[{"k8s-app": "kube-dns"}]
    )
    ports: Annotated[tuple[int, ...], Field(min_length=1, max_length=8)] = Field(
        description="Ports of the DNS pods (not of their Service).", examples=[[53]]
    )
    addresses: tuple[Cidr, ...] = Field(
        (),
        max_length=8,
        description="Addresses that answer on port 53 without being pods, such as NodeLocal DNSCache, which runs in the nodes' own network.",
        examples=[["169.254.20.10/32"]],
    )


def _validate_proxy_address(value: str) -> str:
    """Return the address of a proxy after checking that its host and port can be read, because network
    policies use them."""
    try:
        _ = urlsplit(value).port
    except ValueError:
        raise build_helpful_error(
            "proxy_address",
            f"'{value}' is not the address of a proxy",
            "Write its scheme, name and port, such as http://proxy.example.com:3128.",
        ) from None
    return value


ProxyAddress = Annotated[str, AfterValidator(_validate_proxy_address), Field(max_length=512)]


class Proxy(Strict):
    """The HTTP proxy by which runs reach the internet, if their egress names internet or the proxy."""

    http: ProxyAddress = Field(description="Address for http.", examples=["http://proxy.example.com:3128"])
    https: ProxyAddress = Field(description="Address for https.", examples=["http://proxy.example.com:3128"])
    addresses: tuple[Cidr, ...] = Field(
        (),
        max_length=8,
        description="Addresses of the proxy, for network policies, which cannot use names; omitted: those in http and https, where they are addresses.",
        examples=[["10.1.2.3/32"]],
    )
    no_proxy: tuple[str, ...] = Field(
        (),
        max_length=64,
        description="Names and ranges reached directly; names inside the cluster and what a run reaches directly are added.",
        examples=[[".example.com"]],
    )


class StorageClass(Strict):
    """A storage class and its capabilities."""

    access_modes: Annotated[tuple[AccessMode, ...], Field(min_length=1)] = Field(
        description="How many nodes may mount its volumes.", examples=[["ReadWriteMany"]]
    )
    encrypted: bool = Field(False, description="Whether data is encrypted at rest.", examples=[True])
    zone: Name | None = Field(
        None,
        description="The only zone that its volumes can be mounted in; omitted: all.",
        examples=["eu-1a"],
    )
    default: bool = Field(
        False, description="Whether claims that name no class get this one.", examples=[True]
    )


class SecretStore(Strict):
    """The store from which the External Secrets Operator reads the teams' secrets."""

    name: SecretName = Field(description="Name of the store.", examples=["vault"])
    kind: Literal["ClusterSecretStore", "SecretStore"] = Field(
        "ClusterSecretStore", description="Kind of the store.", examples=["ClusterSecretStore"]
    )
    path: Annotated[str, Field(max_length=512)] = Field(
        "{team}/{secret}",
        description="Key of a secret in the store; {team}, {namespace} and {secret} are filled in.",
        examples=["kv/training/{team}/{secret}"],
    )
    refresh: DurationSeconds = Field(3600, description="How often secrets are refreshed.", examples=["1h"])


class Monitoring(Strict):
    """The Prometheus and Grafana of the cluster."""

    namespace: Name = Field(
        "monitoring",
        description="Namespace for alert rules and dashboards.",
        examples=["monitoring"],
    )
    rule_labels: dict[LabelKey, LabelValue] = Field(
        {},
        max_length=8,
        description="Labels by which Prometheus finds its rules.",
        examples=[{"release": "prometheus"}],
    )
    dashboard_labels: dict[LabelKey, LabelValue] = Field(
        {"grafana_dashboard": "1"},
        max_length=8,
        description="Labels by which Grafana's sidecar finds dashboards.",
        examples=[{"grafana_dashboard": "1"}],
    )
    all_namespaces: bool = Field(
        False,
        description="OpenShift only: whether user-workload-monitoring-config lists the namespace in namespacesWithoutLabelEnforcement, so that its rules see other namespaces too.",
        examples=[True],
    )
    pending: DurationSeconds = Field(
        1800, description="Waiting longer than this in a queue raises an alert.", examples=["30m"]
    )


class ObjectLimits(Strict):
    """How many objects one team's namespace may contain at once."""

    pods: int = Field(1000, ge=2, le=100_000, description="Pods that have not ended.", examples=[1000])
    runs: int = Field(500, ge=1, le=100_000, description="TrainJobs, ended ones included.", examples=[500])
    claims: int = Field(50, ge=0, le=10_000, description="PersistentVolumeClaims.", examples=[50])


PolicyAction = Literal["Deny", "Warn", "Audit"]
ServiceAccount = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=317)
]


class Policies(Strict):
    """Which policy packs apply on the cluster, and how."""

    packs: tuple[Name, ...] = Field(
        (),
        max_length=64,
        description="Packs by name; docs/policies.md lists those that come with gangplan.",
        examples=[["baseline", "restricted", "images"]],
    )
    actions: dict[Name, PolicyAction] = Field(
        {},
        max_length=256,
        description="What a breach of a policy leads to, in place of what the pack says: Deny (error), Warn (warning), Audit (note).",
        examples=[{"image-scan": "Warn"}],
    )
    params: dict[Name, dict[str, PolicyParam]] = Field(
        {},
        max_length=256,
        description="Parameters of policies, in place of the pack's.",
        examples=[{"run-deadline": {"seconds": 43200}}],
    )
    enforcement: PolicyAction = Field(
        "Deny",
        description="Strongest action that the API server takes on a breach, whatever `actions` and bindings say; `validate` is not affected. Start with Audit or Warn to see what Deny would refuse.",
        examples=["Audit"],
    )
    controllers: tuple[ServiceAccount, ...] = Field(
        (),
        max_length=32,
        description="Controllers whose updates policies leave alone, as NAMESPACE/SERVICEACCOUNT, besides those of Kubernetes, Kueue, Trainer and JobSet as upstream and, on OpenShift, Red Hat's operators install them.",
        examples=[["batch-system/kueue-controller-manager"]],
    )


class Retention(Strict):
    """How long the cluster keeps records of runs."""

    audit: DurationSeconds | None = Field(
        None,
        description="Audit log of the API server; omitted: not stated, and regimes refuse the cluster.",
        examples=["90d"],
    )
    logs: DurationSeconds | None = Field(
        None,
        description="Logs of runs: the longest that the cluster's log store keeps them, and so the most that logRetention may ask for; omitted: not stated, any time.",
        examples=["30d"],
    )


class Support(Strict):
    """Where people turn to."""

    quota: Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=2048)] | None = Field(
        None,
        description="Address at which people ask for quota; findings about quota and `gangplan plan` name it.",
        examples=["https://portal.example.com/quota"],
    )


class Limits(Strict):
    """Limits that no spec on this cluster may exceed."""

    workers: int = Field(100, ge=1, le=500, description="Workers of one run.", examples=[100])
    timeout_hours: int = Field(
        168, ge=1, le=8760, description="Longest timeout in hours, even with extendedTimeout.", examples=[168]
    )
    priorities: tuple[Priority, ...] = Field(
        ("low", "normal", "high"),
        min_length=1,
        description="Priorities that exist here.",
        examples=[["low", "normal", "high"]],
    )
    team_share: int = Field(
        100,
        ge=1,
        le=100,
        description="Largest share of a pool's capacity, in percent, that one team can ever hold, borrowing included.",
        examples=[50],
    )
    trials: int = Field(500, ge=1, le=100_000, description="Trials of one sweep.", examples=[500])
    objects: ObjectLimits = Field(
        ObjectLimits(), description="Objects of one team's namespace.", examples=[{"pods": 1000, "runs": 500}]
    )


class Schedules(Strict):
    """What starts the runs of jobs with a schedule."""

    backend: Literal["cronjob", "commit"] | None = Field(
        None,
        description="cronjob: a CronJob of the cluster creates dated runs; commit: a scheduled pipeline raises run in Git. Omitted: commit where gitopsOnly, else cronjob.",
        examples=["cronjob"],
    )
    client: Name | None = Field(
        None,
        description="Image of the catalog with kubectl and a shell, that the CronJobs use; always by its digest.",
        examples=["kubectl"],
    )
    egress: tuple[Name, ...] = Field(
        (),
        max_length=8,
        description="Endpoints of egress by which pods reach the API server.",
        examples=[["kubernetes"]],
    )

    def starter(self, gitops_only: bool) -> Literal["cronjob", "commit"]:
        """Return what starts runs: the stated backend, else commits if people may only read the cluster."""
        return self.backend or ("commit" if gitops_only else "cronjob")


class Pipelines(Strict):
    """What creates the runs of jobs that come after others."""

    engine: Literal["job", "tekton", "kfp"] = Field(
        "job",
        description="job: a Job of the cluster waits and creates the run; tekton or kfp: a pipeline that gangplan pipeline writes does.",
        examples=["tekton"],
    )


class Cluster(Strict):
    """One cluster."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["Cluster"] = Field(description="Kind of this file.", examples=["Cluster"])
    name: Name | None = Field(
        None, description="Cluster name; if stated, it must be the folder's name.", examples=["onprem-a100"]
    )
    description: str | None = Field(
        None, max_length=2048, description="Free text for people.", examples=["The A100 cluster in hall 2"]
    )
    context: Annotated[str, Field(min_length=1, max_length=253)] | None = Field(
        None,
        description="Kubeconfig context for this cluster, for commands that look at it; omitted: the one with the cluster's name.",
        examples=["prod-us-cloud"],
    )
    environment: Literal["dev", "prod"] = Field(
        "prod", description="Whether production rules hold.", examples=["prod"]
    )
    versions: Versions = Field(
        description="Versions of what runs here.",
        examples=[{"kubernetes": "1.34.4", "trainer": "2.3.0", "kueue": "0.19.2"}],
    )
    region: Name = Field(description="Region name.", examples=["eu-central"])
    location: Literal["on-prem", "cloud"] = Field(description="Where the hardware is.", examples=["on-prem"])
    air_gapped: bool = Field(
        False,
        description="True: nothing outside is reachable; every image comes from a mirror.",
        examples=[True],
    )
    domain: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)] = Field(
        "cluster.local", description="DNS domain of the cluster.", examples=["cluster.local"]
    )
    cni: Literal["ovn-kubernetes", "openshift-sdn", "calico", "cilium", "other"] = Field(
        "other", description="Network plugin that enforces network policies.", examples=["ovn-kubernetes"]
    )
    certifications: tuple[Name, ...] = Field(
        (), max_length=32, description="What the cluster is certified for.", examples=[["hipaa", "iso-27001"]]
    )
    fips: bool = Field(False, description="Whether nodes run in FIPS mode.", examples=[True])
    network_encrypted: bool = Field(
        False,
        description="Whether traffic between pods is encrypted (IPsec or WireGuard of the network plugin).",
        examples=[True],
    )
    logs_redacted: bool = Field(
        False,
        description="Whether what collects the logs of pods masks personal data in them before it keeps them.",
        examples=[True],
    )
    retention: Retention = Field(
        Retention(), description="How long records are kept.", examples=[{"audit": "90d"}]
    )
    support: Support = Field(
        Support(),
        description="Where users of this cluster get help.",
        examples=[{"quota": "https://portal.example.com/quota"}],
    )
    policies: Policies = Field(
        Policies(), description="Policies that hold here.", examples=[{"packs": ["baseline", "restricted"]}]
    )
    gang: Literal["kueue", "volcano", "coscheduling", "none"] = Field(
        "kueue",
        description="What starts all pods of a run together; none is for dev clusters.",
        examples=["kueue"],
    )
    pods_ready_timeout: DurationSeconds = Field(
        1800,
        description="How long the pods of an admitted run may take to become ready; after that, the run goes back to the queue.",
        examples=["30m"],
    )
    fair_sharing: bool = Field(
        True, description="Whether Kueue shares idle capacity by the teams' weights.", examples=[True]
    )
    gitops_only: bool = Field(
        False,
        description="True: people have read-only access; runs come only from Git.",
        examples=[True],
    )
    node_pools: dict[Name, NodePool] = Field(
        min_length=1,
        max_length=64,
        description="Node pools by name, in order of preference.",
        examples=[
            {
                "cpu": {"count": 4, "cpu": 60, "memory": "240Gi"},
                "a100": {
                    "count": 8,
                    "cpu": 124,
                    "memory": "1900Gi",
                    "gpu": {"model": "a100-80gb", "count": 8},
                },
            }
        ],
    )
    fabrics: dict[Name, Fabric] = Field(
        {},
        max_length=32,
        description="Fabrics by name, which node pools name: what workers of runs with RDMA need of their nodes.",
        examples=[{"efa": {"preset": "aws-efa"}}],
    )
    topology: tuple[TopologyLevel, ...] = Field(
        (),
        max_length=16,
        description="Layout levels, widest first, the host last.",
        examples=[
            [
                {"name": "rack", "label": "topology.example.com/rack"},
                {"name": "host", "label": "kubernetes.io/hostname"},
            ]
        ],
    )
    storage_classes: dict[SecretName, StorageClass] = Field(
        {},
        max_length=64,
        description="Storage classes by name.",
        examples=[{"cephfs": {"accessModes": ["ReadWriteMany"], "encrypted": True, "default": True}}],
    )
    volumes: dict[Name, PodVolume] = Field(
        {},
        max_length=64,
        description="Volumes that are created for one pod and deleted with it, by the name that specs use: inline CSI volumes, and volumes from storage classes.",
        examples=[
            {
                "vault": {
                    "driver": "secrets-store.csi.k8s.io",
                    "attributes": {"secretProviderClass": "nlp-vault"},
                    "readOnly": True,
                },
                "work": {"storageClass": "cephfs-encrypted", "most": "2Ti"},
            }
        ],
    )
    runtime_classes: Annotated[tuple[SecretName, ...], Field(max_length=64)] | None = Field(
        None,
        description="RuntimeClasses that exist here (on the worker clusters, where runs are dispatched); omitted: not stated, and a patch that names one is reported.",
        examples=[["nvidia", "kata"]],
    )
    registries: tuple[Registry, ...] = Field(
        (),
        max_length=64,
        description="Registries, or registries with a path, that images may come from, mirrors included; omitted: any.",
        examples=[["registry.example.com/training"]],
    )
    mirrors: tuple[Mirror, ...] = Field(
        (),
        max_length=32,
        description="Registry mirrors; the longest matching source wins.",
        examples=[[{"source": "registry.example.com", "mirror": "mirror.example.eu/training"}]],
    )
    dns: Dns | None = Field(
        None,
        description="DNS pods; omitted: kube-system's kube-dns, on OpenShift openshift-dns.",
        examples=[{"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}, "ports": [53]}],
    )
    egress: dict[Name, Annotated[tuple[EgressTarget, ...], Field(min_length=1)]] = Field(
        {},
        max_length=64,
        description="Named places outside that runs may ask for.",
        examples=[{"s3": [{"cidr": "10.20.0.0/16", "ports": [443]}]}],
    )
    proxy: Proxy | None = Field(
        None,
        description="HTTP proxy.",
        examples=[{"http": "http://proxy.example.com:3128", "https": "http://proxy.example.com:3128"}],
    )
    cohorts: dict[Name, Cohort] = Field(
        {},
        max_length=64,
        description="Cohorts by name; omitted: one, named training, of all teams.",
        examples=[{"company": {}, "vehicles": {"parent": "company", "weight": 2}}],
    )
    teams: dict[Name, TeamQueue] = Field(
        {},
        max_length=512,
        description="Teams that may run here.",
        examples=[{"nlp": {"queue": "gpu", "quota": {"a100-80gb": {"gpus": 32}}, "weight": 32}}],
    )
    preemption: Preemption = Field(
        Preemption(),
        description="When a waiting run may preempt a running one.",
        examples=[{"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}],
    )
    overcommit: bool = Field(
        False, description="Whether quotas may promise more than the nodes have.", examples=[True]
    )
    keep_runs: bool = Field(
        False,
        description="True: keep runs as they were rendered while their specs stay the same, as render --keep-runs does, in every command and in CI. Take it out again once the earlier runs are over.",
        examples=[True],
    )
    kueue: KueueSettings = Field(
        KueueSettings(),
        description="Settings of Kueue's manager that decide about runs; `gangplan cluster kueue-config` prints its configuration.",
        examples=[{"admissionFairSharing": {"usageHalfLifeTime": "7d"}}],
    )
    admission_checks: dict[Name, AdmissionCheck] = Field(
        {},
        max_length=32,
        description="Admission checks by name, in addition to those that gangplan makes of autoscale and multiKueue.",
        examples=[{"budget": {"controller": "budget.example.com/check", "pools": ["a100-80gb"]}}],
    )
    multi_kueue: MultiKueue | None = Field(
        None,
        description="Worker clusters that this one dispatches runs to; omitted: it runs them itself.",
        examples=[{"clusters": {"eu-airgap": {"kubeconfigSecret": "eu-airgap-kubeconfig"}}}],
    )
    workload_identity: WorkloadIdentity | None = Field(
        None,
        description="How pods get identities of a cloud; omitted: they have none.",
        examples=[{"provider": "aws", "egress": ["sts"]}],
    )
    schedules: Schedules | None = Field(
        None,
        description="How schedules of jobs start runs here; omitted: no job on this cluster may have one.",
        examples=[{"client": "kubectl", "egress": ["kubernetes"]}],
    )
    pipelines: Pipelines | None = Field(
        None,
        description="What creates runs that come after others; omitted: Jobs, where schedules names a client.",
        examples=[{"engine": "tekton"}],
    )
    secret_store: SecretStore | None = Field(
        None,
        description="Store of the External Secrets Operator; omitted: secrets are created by other means.",
        examples=[{"name": "vault", "path": "kv/training/{team}/{secret}"}],
    )
    monitoring: Monitoring | None = Field(
        None,
        description="Where alert rules and dashboards go; omitted: none are rendered.",
        examples=[{"namespace": "monitoring", "ruleLabels": {"release": "prometheus"}}],
    )
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        "USD", description="Currency of prices, as ISO 4217 writes it.", examples=["EUR"]
    )
    limits: Limits = Field(
        Limits(), description="Limits that no spec may exceed here.", examples=[{"workers": 64}]
    )
    defaults: Defaults = Field(
        Defaults(),
        description="Values for fields that neither spec nor team sets.",
        examples=[{"memory": "64Gi"}],
    )
    env: dict[EnvName, ScalarText] = Field(
        {},
        max_length=64,
        description="Environment variables of every run on this cluster.",
        examples=[{"NCCL_SOCKET_IFNAME": "eth0"}],
    )
