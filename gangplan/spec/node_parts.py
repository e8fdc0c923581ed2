"""Parts of a node pool other than its size: DaemonSets, growth, NUMA nodes, disks for volumes."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gangplan.spec.base import Cpu, Memory, Strict, build_helpful_error


class Daemons(Strict):
    """What DaemonSets request on each node, which teams cannot use."""

    cpu: Cpu = Field(description="CPU cores per node.", examples=[2])
    memory: Memory = Field(description="Memory per node.", examples=["8Gi"])


class Autoscale(Strict):
    """A pool that grows: Kueue requests nodes before it admits a run, or waiting pods make it grow."""

    most: int = Field(
        ge=1, le=100_000, description="Maximum number of nodes; quotas are shares of these.", examples=[32]
    )
    provisioning_class: (
        Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)] | None
    ) = Field(
        None,
        description="Provisioning class of Kueue's requests to the autoscaler; omitted: nodes come once pods wait for them, as with Karpenter.",
        examples=["best-effort-atomic-scale-up.autoscaling.x-k8s.io"],
    )
    parameters: dict[str, Annotated[str, Field(max_length=255)]] = Field(
        {},
        max_length=100,
        description="Parameters of the provisioning class.",
        examples=[{"ValidUntilSeconds": "600"}],
    )

    @model_validator(mode="after")
    def _somebody_answers(self) -> Self:
        if self.provisioning_class and "karpenter" in self.provisioning_class:
            raise build_helpful_error(
                "autoscale_karpenter",
                "Karpenter answers no ProvisioningRequest, so no run would be admitted (kubernetes-sigs/kueue#5133)",
                "Remove provisioningClass: Karpenter adds nodes once Kueue has admitted a run and its pods wait.",
            )
        if self.parameters and not self.provisioning_class:
            raise build_helpful_error(
                "autoscale_parameters",
                "parameters are those of a provisioning class, and none is stated",
                "Remove parameters, or add provisioningClass.",
            )
        return self


class LocalDisk(Strict):
    """Disks inside the nodes, for volumes that exist while a pod runs."""

    storage_class: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)] = Field(
        description="Storage class that makes volumes of them, on the node of the pod.",
        examples=["topolvm-nvme"],
    )
    size: Memory = Field(description="What one node has for such volumes.", examples=["7Ti"])


class Numa(Strict):
    """The NUMA nodes of each node, and how the kubelet aligns pods of the class Guaranteed to them.

    Source: Kubernetes v1.34 documentation, Control Topology Management Policies on a node.
    """

    nodes: int = Field(2, ge=2, le=16, description="NUMA nodes per node.", examples=[2])
    policy: Literal["none", "best-effort", "restricted", "single-numa-node"] = Field(
        description="The kubelet's topologyManagerPolicy. With single-numa-node, what aligns names must come from one NUMA node, or the kubelet refuses the pod.",
        examples=["single-numa-node"],
    )
    aligns: tuple[Literal["gpus", "cpu", "memory"], ...] = Field(
        ("gpus", "cpu"),
        max_length=3,
        description="What is aligned by NUMA node: gpus, which most device plugins report; cpu where cpuManagerPolicy is static; memory where memoryManagerPolicy is Static.",
        examples=[["gpus", "cpu", "memory"]],
    )
