"""Cluster: facts and limits of one cluster. Stands in overlays/<cluster>/cluster.yaml, owned by the platform."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gangplan.spec.base import (
    ApiVersion,
    Cidr,
    Cpu,
    EnvName,
    LabelKey,
    LabelValue,
    Memory,
    Name,
    Strict,
    Text,
)
from gangplan.spec.catalog import Repository
from gangplan.spec.team import Defaults

Version = Annotated[str, Field(pattern=r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]
ResourceName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=253
    ),
]


class Versions(Strict):
    """What runs on the cluster. API spellings are chosen from this."""

    kubernetes: Version = Field(description="Kubernetes version.", examples=["1.34.4"])
    trainer: Version = Field(description="Kubeflow Trainer version.", examples=["2.3.0"])
    jobset: Version | None = Field(
        None, description="JobSet version; omitted: the one that Trainer pins.", examples=["0.12.0"]
    )
    kueue: Version | None = Field(
        None, description="Kueue version; omitted: no Kueue on this cluster.", examples=["0.19.2"]
    )
    openshift: Version | None = Field(
        None, description="OpenShift version; omitted: not OpenShift.", examples=["4.19"]
    )


class Taint(Strict):
    """A taint that nodes of a pool carry; pods sent there tolerate it."""

    key: LabelKey = Field(description="Taint key.", examples=["nvidia.com/gpu"])
    value: LabelValue | None = Field(None, description="Taint value; omitted: any.", examples=["present"])
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="Taint effect.", examples=["NoSchedule"]
    )


class PoolGpu(Strict):
    """GPUs of each node in a pool."""

    model: Name = Field(description="Model name that specs use.", examples=["a100-80gb"])
    count: int = Field(ge=1, le=64, description="GPUs (or MIG slices) per node.", examples=[8])
    resource: ResourceName = Field(
        "nvidia.com/gpu", description="Extended resource name.", examples=["nvidia.com/gpu"]
    )
    mig: Annotated[str, Field(pattern=r"^[1-7]g\.[0-9]+gb$")] | None = Field(
        None, description="MIG slice that the resource stands for; omitted: whole GPUs.", examples=["1g.10gb"]
    )


class PoolRdma(Strict):
    """RDMA devices of each node in a pool."""

    resource: ResourceName = Field(
        description="Extended resource name of the RDMA device plugin.", examples=["rdma/ib"]
    )
    network: str | None = Field(
        None,
        max_length=253,
        description="NetworkAttachmentDefinition that pods attach to, as namespace/name.",
        examples=["default/ib-fabric"],
    )
    interface: str | None = Field(
        None, max_length=15, description="Fast interface inside pods.", examples=["net1"]
    )


class NodePool(Strict):
    """Nodes of one shape."""

    count: int = Field(ge=0, le=100_000, description="Nodes in the pool.", examples=[8])
    cpu: Cpu = Field(description="Allocatable CPU cores per node.", examples=[124])
    memory: Memory = Field(description="Allocatable memory per node.", examples=["1900Gi"])
    gpu: PoolGpu | None = Field(
        None, description="GPUs per node; omitted: none.", examples=[{"model": "a100-80gb", "count": 8}]
    )
    labels: dict[LabelKey, LabelValue] = Field(
        {},
        max_length=8,
        description="Labels that select this pool's nodes.",
        examples=[{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}],
    )
    taints: tuple[Taint, ...] = Field(
        (),
        max_length=8,
        description="Taints of this pool's nodes.",
        examples=[[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]],
    )
    capacity: Literal["on-demand", "spot"] = Field(
        "on-demand", description="Whether nodes can be taken away.", examples=["spot"]
    )
    network_gbps: int | None = Field(
        None, ge=1, le=10_000, description="Network bandwidth per node in Gbit/s.", examples=[100]
    )
    rdma: PoolRdma | None = Field(
        None, description="RDMA devices; omitted: none.", examples=[{"resource": "rdma/ib"}]
    )
    topology: bool = Field(
        False, description="Whether Kueue places pods here by the cluster's topology.", examples=[True]
    )


class TopologyLevel(Strict):
    """One level of the cluster's layout, from the widest to the narrowest."""

    name: Name = Field(description="Level name that specs use.", examples=["rack"])
    label: Annotated[str, Field(max_length=63)] = Field(
        description="Node label of the level; at most 63 characters (a limit of Kueue's Workload).",
        examples=["topology.example.com/rack"],
    )
    nodes: int | None = Field(
        None, ge=1, description="Nodes in one domain of this level; omitted: not known.", examples=[8]
    )


class Mirror(Strict):
    """A registry that another one is pulled through."""

    source: Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?$")] = Field(
        description="Registry, or registry and path, as the catalog writes it.",
        examples=["registry.example.com"],
    )
    mirror: Repository = Field(description="What to write instead.", examples=["mirror.example.eu/training"])


class EgressTarget(Strict):
    """One place outside the cluster."""

    cidr: Cidr = Field(description="Address range.", examples=["10.20.0.0/16"])
    excluding: tuple[Cidr, ...] = Field(
        (), max_length=32, description="Ranges inside it that stay closed.", examples=[["10.20.1.0/24"]]
    )
    ports: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65535)], ...], Field(min_length=1, max_length=32)
    ] = Field(description="TCP ports.", examples=[[443]])


class Dns(Strict):
    """Where pods look names up."""

    namespace: Name = Field(description="Namespace of the DNS pods.", examples=["kube-system"])
    labels: dict[LabelKey, LabelValue] = Field(
        min_length=1, description="Labels of the DNS pods.", examples=[{"k8s-app": "kube-dns"}]
    )
    ports: Annotated[tuple[int, ...], Field(min_length=1, max_length=8)] = Field(
        description="Ports of the DNS pods (not of their Service).", examples=[[53]]
    )


class Proxy(Strict):
    """HTTP proxy that runs use for anything outside."""

    http: str = Field(
        max_length=512, description="Address for http.", examples=["http://proxy.example.com:3128"]
    )
    https: str = Field(
        max_length=512, description="Address for https.", examples=["http://proxy.example.com:3128"]
    )
    no_proxy: tuple[str, ...] = Field(
        (),
        max_length=64,
        description="Names and ranges reached directly; cluster-internal ones are added.",
        examples=[[".example.com"]],
    )


class TeamQueue(Strict):
    """A team on this cluster."""

    queue: Name = Field(description="LocalQueue in the team's namespace.", examples=["gpu"])
    cluster_queue: Name | None = Field(
        None, description="ClusterQueue behind it; omitted: the team's name.", examples=["team-nlp"]
    )


class Limits(Strict):
    """What no spec on this cluster may exceed."""

    workers: int = Field(100, ge=1, le=500, description="Workers of one run.", examples=[100])
    timeout_hours: int = Field(
        168, ge=1, le=8760, description="Longest timeout in hours, even with extendedTimeout.", examples=[168]
    )
    priorities: tuple[Literal["low", "normal", "high", "critical"], ...] = Field(
        ("low", "normal", "high"),
        min_length=1,
        description="Priorities that exist here.",
        examples=[["low", "normal", "high"]],
    )


class Cluster(Strict):
    """One cluster."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["Cluster"] = Field(description="Kind of this file.", examples=["Cluster"])
    name: Name | None = Field(
        None, description="Cluster name; it may only repeat the folder's name.", examples=["onprem-a100"]
    )
    description: str | None = Field(
        None, max_length=2048, description="Free text for people.", examples=["The A100 cluster in hall 2"]
    )
    environment: Literal["dev", "prod"] = Field(
        "prod", description="Whether production rules hold.", examples=["prod"]
    )
    versions: Versions = Field(
        description="Versions of what runs here.",
        examples=[{"kubernetes": "1.34.4", "trainer": "2.3.0", "kueue": "0.19.2"}],
    )
    region: Name = Field(description="Region name.", examples=["eu-central"])
    location: Literal["on-prem", "cloud"] = Field(
        description="Where the hardware stands.", examples=["on-prem"]
    )
    air_gapped: bool = Field(
        False,
        description="True: nothing outside is reachable; every image comes from a mirror.",
        examples=[True],
    )
    domain: str = Field(
        "cluster.local", max_length=253, description="DNS domain of the cluster.", examples=["cluster.local"]
    )
    gang: Literal["kueue", "none"] = Field(
        "kueue",
        description="What starts all pods of a run together; none is for dev clusters without Kueue.",
        examples=["kueue"],
    )
    node_pools: dict[Name, NodePool] = Field(
        min_length=1,
        max_length=64,
        description="Node pools by name, in order of preference.",
        examples=[{"a100-80gb": {"count": 8, "cpu": 124, "memory": "1900Gi"}}],
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
    mirrors: tuple[Mirror, ...] = Field(
        (),
        max_length=32,
        description="Registry mirrors; the longest source that fits wins.",
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
    teams: dict[Name, TeamQueue] = Field(
        {}, max_length=512, description="Teams that may run here.", examples=[{"nlp": {"queue": "gpu"}}]
    )
    limits: Limits = Field(Limits(), description="What no spec may exceed here.", examples=[{"workers": 64}])
    defaults: Defaults = Field(
        Defaults(),
        description="Values for fields that neither spec nor team sets.",
        examples=[{"memory": "64Gi"}],
    )
    env: dict[EnvName, Text] = Field(
        {},
        max_length=64,
        description="Environment variables of every run on this cluster.",
        examples=[{"NCCL_SOCKET_IFNAME": "eth0"}],
    )
