"""Node pools and the cluster's layout, as a cluster file describes them."""

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from gangplan.model.quantity import Quantity
from gangplan.spec.base import Cpu, LabelKey, LabelValue, Memory, Name, Strict, build_helpful_error
from gangplan.spec.node_parts import Autoscale, Daemons, LocalDisk, Numa
from gangplan.spec.prices import PoolPrice
from gangplan.spec.words import LABEL_KEY

# Labels that every kubelet sets on its node (kubernetes v1.34,
# staging/src/k8s.io/api/core/v1/well_known_labels.go).
ARCH_LABEL, OLD_ARCH_LABEL = "kubernetes.io/arch", "beta.kubernetes.io/arch"

ResourceName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=253
    ),
]


# The page size of huge pages, which is the end of their resource's name: hugepages-2Mi.
PageSize = Annotated[str, Field(pattern=r"^[1-9][0-9]*(Ki|Mi|Gi)$", max_length=16)]


def key_by_resource(
    disk: Quantity | None, huge_pages: dict[str, Quantity], devices: dict[str, int]
) -> dict[str, Quantity]:
    """Return disk, huge pages and devices by the names of their Kubernetes resources, in that order."""
    amounts = {"ephemeral-storage": disk} if disk is not None else {}
    amounts |= {f"hugepages-{size}": amount for size, amount in sorted(huge_pages.items())}
    return amounts | {name: Quantity.of(count) for name, count in sorted(devices.items())}


def find_spec_field_of_resource(resource: str) -> tuple[str, ...]:
    """Return the field of such a resource, which is the same in a spec and a node pool; the inverse of
    `key_by_resource`."""
    if resource == "ephemeral-storage":
        return ("disk",)
    size = resource.removeprefix("hugepages-")
    return ("hugePages", size) if size != resource else ("devices", resource)


class Taint(Strict):
    """A taint of a pool's nodes; pods sent there tolerate it."""

    key: LabelKey = Field(description="Taint key.", examples=["nvidia.com/gpu"])
    value: LabelValue | None = Field(None, description="Taint value; omitted: any.", examples=["present"])
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="Taint effect.", examples=["NoSchedule"]
    )


DeviceClassName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]


class PoolGpu(Strict):
    """GPUs of each node in a pool."""

    model: Name = Field(description="Model name that specs use.", examples=["a100-80gb"])
    count: int = Field(ge=1, le=64, description="GPUs (or MIG slices) per node.", examples=[8])
    resource: ResourceName = Field(
        "nvidia.com/gpu", description="Extended resource name.", examples=["nvidia.com/gpu"]
    )
    device_class: DeviceClassName | None = Field(
        None,
        description="DeviceClass whose extendedResourceName is the resource, if dynamic resource allocation provides the GPUs (Kubernetes 1.36); omitted: a device plugin does.",
        examples=["gpu.nvidia.com"],
    )
    mig: Annotated[str, Field(pattern=r"^[1-7]g\.[0-9]+gb$")] | None = Field(
        None, description="MIG slice that the resource represents; omitted: whole GPUs.", examples=["1g.10gb"]
    )
    shared: bool = Field(
        False,
        description="True: each card is offered several times, by time slicing or MPS; two of these GPUs can be the same card. Implied by a resource name that ends in .shared.",
        examples=[True],
    )
    driver: Annotated[str, Field(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){1,3}$")] | None = Field(
        None,
        description="GPU driver on the nodes; omitted: not compared with images.",
        examples=["570.124.06"],
    )

    @property
    def is_shared(self) -> bool:
        """Whether two of them can be the same card. NVIDIA's device plugin can show this in the resource's
        name (k8s-device-plugin, sharing.timeSlicing.renameByDefault)."""
        return self.shared or self.resource.endswith(".shared")


def _detect_single_or_list_form(value: object) -> str:
    """Return which of the two forms is meant, so that an error is reported for that form only."""
    return SEVERAL_FORM_TAG if isinstance(value, tuple) else SINGLE_FORM_TAG


# Tags of the two forms; with their brackets they cannot be names of fields (gangplan.spec.load).
SINGLE_FORM_TAG, SEVERAL_FORM_TAG = "(one)", "(several)"
# As Multus reads it (k8s.v1.cni.cncf.io, v4): without a namespace, the network is in the pod's own.
NetworkName = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?(@[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        max_length=253,
    ),
]
Networks = Annotated[
    Annotated[NetworkName, Tag(SINGLE_FORM_TAG)]
    | Annotated[tuple[NetworkName, ...], Field(min_length=1, max_length=64), Tag(SEVERAL_FORM_TAG)],
    Discriminator(_detect_single_or_list_form),
]


class PoolRdma(Strict):
    """RDMA devices of each node in a pool: all of them, or those of one rail."""

    resource: ResourceName = Field(
        description="Extended resource name of the RDMA device plugin; with deviceClass, the name under which quotas count the devices.",
        examples=["rdma/ib"],
    )
    count: int = Field(
        ge=1, le=1000, description="Devices that the plugin or driver offers per node.", examples=[8]
    )
    device_class: DeviceClassName | None = Field(
        None,
        description="DeviceClass of the devices, if dynamic resource allocation provides them: workers get them by a claim (Kubernetes 1.34, Kueue 0.18); omitted: a device plugin does.",
        examples=["mrdma.google.com"],
    )
    shared: bool = Field(
        False,
        description="True: a worker can use only one of these devices, because they all represent the same card: virtual functions of one port, or places at a shared device plugin. The count is then how many pods of a node can have one.",
        examples=[True],
    )
    network: Networks | None = Field(
        None,
        description="NetworkAttachmentDefinition that pods attach to, as namespace/name (without a namespace: in their own), once for each of their devices; of a list, the devices take one each in turn, and a shared device takes all.",
        examples=["default/ib-fabric"],
    )
    interface: str | None = Field(
        None,
        max_length=15,
        pattern=r"^[^\s,=^/:]+$",
        description="Network interface of this fabric inside pods, with an address of its own; NCCL's sockets and MPI's TCP use it in addition to RDMA. Omitted: they stay on eth0. It is not the name of a card; see hcas.",
        examples=["net1"],
    )
    hcas: tuple[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+)?$", max_length=63)], ...
    ] = Field(
        (),
        max_length=64,
        description="Cards as ibv_devinfo lists them in pods, with a port if it is not the first: NCCL and UCX use only these. Use it only for names that are the same on every node, not for virtual functions. Omitted: all that a pod sees.",
        examples=[["mlx5_0", "mlx5_1"]],
    )

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that pods attach to, as a list in either form."""
        if self.network is None:
            return ()
        return (self.network,) if isinstance(self.network, str) else self.network

    @property
    def most(self) -> int:
        """How many devices one worker can use."""
        return 1 if self.shared else self.count


Rails = Annotated[
    Annotated[PoolRdma, Tag(SINGLE_FORM_TAG)]
    | Annotated[tuple[PoolRdma, ...], Field(min_length=1, max_length=16), Tag(SEVERAL_FORM_TAG)],
    Discriminator(_detect_single_or_list_form),
]


class NodePool(Strict):
    """Nodes of one shape."""

    count: int = Field(ge=0, le=100_000, description="Nodes in the pool.", examples=[8])
    cpu: Cpu = Field(description="Allocatable CPU cores per node.", examples=[124])
    memory: Memory = Field(description="Allocatable memory per node.", examples=["1900Gi"])
    gpu: PoolGpu | None = Field(
        None, description="GPUs per node; omitted: none.", examples=[{"model": "a100-80gb", "count": 8}]
    )
    arch: Literal["amd64", "arm64"] | None = Field(
        None,
        description="Processor architecture; omitted: that of the label kubernetes.io/arch, or amd64.",
        examples=["arm64"],
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
    location: Literal["on-prem", "cloud"] | None = Field(
        None,
        description="Where the pool is, if not where the cluster is; its labels must then select it.",
        examples=["cloud"],
    )
    capacity: Literal["on-demand", "spot"] = Field(
        "on-demand", description="Whether the provider can reclaim the nodes.", examples=["spot"]
    )
    network_gbps: int | None = Field(
        None, ge=1, le=10_000, description="Network bandwidth per node in Gbit/s.", examples=[100]
    )
    rdma: Rails | None = Field(
        None,
        description="RDMA devices; a list where each rail is a resource of its own; omitted: none.",
        examples=[{"resource": "rdma/ib", "count": 8}],
    )
    fabric: Name | None = Field(
        None,
        description="Fabric of the cluster's fabrics: what else workers of runs with RDMA get here; omitted: their devices alone.",
        examples=["efa"],
    )
    disk: Memory | None = Field(
        None,
        description="Allocatable ephemeral storage per node: what logs, images and scratch disks share; omitted: not stated, and no run can request any.",
        examples=["1700Gi"],
    )
    local_disk: LocalDisk | None = Field(
        None,
        description="Disks inside each node (NVMe) that scratch: {medium: local} is made of; omitted: none.",
        examples=[{"storageClass": "topolvm-nvme", "size": "7Ti"}],
    )
    huge_pages: dict[PageSize, Memory] = Field(
        {},
        max_length=4,
        description="Huge pages per node, by page size; the pool's memory excludes them.",
        examples=[{"2Mi": "64Gi"}],
    )
    devices: dict[ResourceName, Annotated[int, Field(ge=1, le=1000)]] = Field(
        {},
        max_length=16,
        description="Other devices per node, neither GPUs nor RDMA, by the resource that their plugin offers.",
        examples=[{"example.com/fpga": 2}],
    )
    topology: bool = Field(
        False, description="Whether Kueue places pods here by the cluster's topology.", examples=[True]
    )
    daemons: Daemons | None = Field(
        None,
        description="What DaemonSets request on each node; omitted: nothing.",
        examples=[{"cpu": 2, "memory": "8Gi"}],
    )
    numa: Numa | None = Field(
        None,
        description="NUMA nodes, where the kubelet aligns pods to them; omitted: it does not.",
        examples=[{"nodes": 2, "policy": "single-numa-node"}],
    )
    autoscale: Autoscale | None = Field(
        None,
        description="How far the pool can grow; omitted: its size is fixed.",
        examples=[{"most": 32, "provisioningClass": "best-effort-atomic-scale-up.autoscaling.x-k8s.io"}],
    )
    price: PoolPrice | None = Field(
        None, description="What it costs, for reports.", examples=[{"perGpuHour": "1.5625"}]
    )

    @model_validator(mode="after")
    def _one_architecture(self) -> Self:
        said = {label: self.labels[label] for label in (ARCH_LABEL, OLD_ARCH_LABEL) if label in self.labels}
        for label, value in said.items():
            if value != self.processor:
                raise build_helpful_error(
                    "pool_arch",
                    f"its processors are {self.processor}, and the label {label} says {value}",
                    "Correct one of them: no node is both.",
                )
        return self

    @property
    def processor(self) -> str:
        """The architecture of its nodes: as stated, as their label says, or amd64."""
        return self.arch or self.labels.get(ARCH_LABEL) or self.labels.get(OLD_ARCH_LABEL) or "amd64"

    @property
    def is_asked_for(self) -> bool:
        """Whether Kueue requests nodes from the autoscaler before it admits a run."""
        return self.autoscale is not None and self.autoscale.provisioning_class is not None

    @property
    def rails(self) -> tuple[PoolRdma, ...]:
        """The RDMA devices by resource, in the order of the file, as a list in either form."""
        if self.rdma is None:
            return ()
        return self.rdma if isinstance(self.rdma, tuple) else (self.rdma,)

    @property
    def others(self) -> dict[str, Quantity]:
        """What one node offers besides CPU, memory, GPUs and RDMA devices, by resource."""
        return key_by_resource(self.disk, self.huge_pages, self.devices)

    @property
    def offered(self) -> dict[str, Quantity]:
        """Everything that one node offers besides CPU and memory, by resource."""
        offered = {self.gpu.resource: Quantity.of(self.gpu.count)} if self.gpu else {}
        offered |= {rail.resource: Quantity.of(rail.count) for rail in self.rails}
        return offered | self.others


class TopologyLevel(Strict):
    """One level of the cluster's layout; levels are listed from the widest to the narrowest."""

    name: Name = Field(description="Level name that specs use.", examples=["rack"])
    label: Annotated[str, Field(pattern=LABEL_KEY, max_length=63)] = Field(
        description="Node label of the level; at most 63 characters (a limit of Kueue's Workload).",
        examples=["topology.example.com/rack"],
    )
    nodes: int | None = Field(
        None, ge=1, description="Nodes in one domain of this level; omitted: not known.", examples=[8]
    )
