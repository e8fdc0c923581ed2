"""Fabrics: what the workers of a run with RDMA get from their nodes, as a cluster file describes it.

A fabric belongs to the platform: a spec says `network: {rdma: required}` or nothing.
"""

from typing import Annotated, Literal, TypeVar, cast

from pydantic import AfterValidator, Field

from gangplan.spec.base import (
    Cidr,
    Cpu,
    EnvName,
    LabelKey,
    Memory,
    MountPath,
    Name,
    ScalarText,
    Strict,
    build_helpful_error,
)
from gangplan.spec.nodes import PageSize
from gangplan.spec.words import DNS_LABEL

Preset = Literal[
    "aws-efa",
    "azure-infiniband",
    "gke-rdma",
    "gke-tcpx",
    "gke-tcpxo",
    "oci-roce",
    "oci-roce-vf",
    "sriov",
]
Capability = Annotated[str, Field(pattern=r"^[A-Z][A-Z_]*[A-Z]$", max_length=63)]
ImageReference = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-zA-Z0-9._/:-]*(@sha256:[0-9a-f]{64})?$", max_length=512)
]
# Prefixes of annotations that gangplan sets itself, or that affect queues.
_OWN = ("gangplan.dev/", "kueue.x-k8s.io/", "openshift.io/required-scc", "cluster-autoscaler.kubernetes.io/")
# Multus reads it (k8s.v1.cni.cncf.io, v4); every network in it becomes an interface in addition to the
# cluster's.
NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"


def _validate_node_path(path: str) -> str:
    """Return an absolute path on a node, as the kubelet accepts it, after checking that it has no '..'."""
    if not path.startswith("/") or ".." in path.split("/"):
        help = "Write an absolute path without '..'."
        raise build_helpful_error("path", f"'{path}' is not an absolute path on a node", help)
    return path


def _validate_annotation_key(key: str) -> str:
    if key == NETWORKS_ANNOTATION:
        help = "Write network at the pool's rdma."
        raise build_helpful_error(
            "annotation", f"{NETWORKS_ANNOTATION} is made of the networks of the pool's devices", help
        )
    if key.startswith(_OWN):
        raise build_helpful_error("annotation", f"{key} belongs to the platform's controllers", "Remove it.")
    return key


def _validate_linux_capability(name: str) -> str:
    if name == "ALL" or name.startswith("CAP_"):
        help = "Write the capability without CAP_, such as IPC_LOCK." if name != "ALL" else "Name each one."
        raise build_helpful_error("capability", f"'{name}' is not one capability", help)
    return name


NodePath = Annotated[str, AfterValidator(_validate_node_path), Field(max_length=512)]
Capabilities = Annotated[
    tuple[Annotated[Capability, AfterValidator(_validate_linux_capability)], ...], Field(max_length=16)
]


# The name of a folder: the volume is named `fabric-` and this name, and has at most 63 characters.
Folder = Annotated[str, Field(pattern=DNS_LABEL, max_length=56)]


class HostPath(Strict):
    """A folder, file or device of the node."""

    path: NodePath = Field(description="Where it is on the node.", examples=["/dev/infiniband"])
    mount: MountPath | None = Field(
        None,
        description="Where workers see it; omitted: workers do not, only the containers that mount it.",
        examples=["/dev/infiniband"],
    )
    read_only: bool = Field(
        True,
        description="Whether it is mounted read-only; devices can still be used.",
        examples=[False],
    )
    type: (
        Literal[
            "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"
        ]
        | None
    ) = Field(None, description="What the kubelet makes sure of; omitted: nothing.", examples=["Directory"])


class FabricContainer(Strict):
    """A container next to the workers' program: a daemon of the fabric, or one that prepares the pod."""

    image: ImageReference | None = Field(
        None,
        description="Image, best with its digest; mirrors apply. A preset leaves it to you.",
        examples=[
            "registry.example.com/fabric/daemon@sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
        ],
    )
    command: Annotated[tuple[str, ...], Field(max_length=64)] = Field(
        (), description="Command; omitted: the image's own.", examples=[["/bin/daemon", "--nics=8"]]
    )
    env: dict[EnvName, ScalarText] = Field(
        {},
        max_length=64,
        description="Environment variables.",
        examples=[{"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}],
    )
    mounts: dict[Folder, MountPath] = Field(
        {},
        max_length=16,
        description="Where it sees hostPaths and shared folders, by their names.",
        examples=[{"sys": "/hostsysfs"}],
    )
    capabilities: Capabilities = Field(
        (), description="Capabilities that it adds; by default none.", examples=[["NET_ADMIN"]]
    )
    root: bool = Field(
        False,
        description="Whether it runs as root; only then do its capabilities have an effect.",
        examples=[True],
    )
    privileged: bool = Field(False, description="Whether it is privileged.", examples=[True])
    cpu: Cpu | None = Field(None, description="CPU cores; omitted: 500m.", examples=[1])
    memory: Memory | None = Field(None, description="Memory; omitted: 512Mi.", examples=["1Gi"])


class Fabric(Strict):
    """What workers of runs with RDMA get on pools that name the fabric. Own values extend the preset's."""

    preset: Preset | None = Field(
        None, description="Values to start from; docs/fabrics.md lists them.", examples=["aws-efa"]
    )
    host_network: bool = Field(
        False,
        description="Whether workers use their node's network: one worker per node, no NetworkPolicy applies to it, and its SSH port is open on the node.",
        examples=[True],
    )
    node_addresses: tuple[Cidr, ...] = Field(
        (),
        max_length=16,
        description="With hostNetwork: addresses of the pool's nodes, which launchers may reach from the pod network.",
        examples=[["10.0.16.0/20"]],
    )
    whole_node: bool = Field(
        False,
        description="Whether a worker must take all GPUs of its node; with hostNetwork it must in any case.",
        examples=[True],
    )
    capabilities: Capabilities = Field(
        (), description="Capabilities that workers get in addition; by default none.", examples=[["IPC_LOCK"]]
    )
    memlock: Literal["unlimited", "limited"] = Field(
        "limited",
        description="Limit of locked memory that the nodes' container runtime gives to pods. unlimited: IPC_LOCK is not needed and left out.",
        examples=["unlimited"],
    )
    privileged: bool = Field(
        False,
        description="Whether workers are privileged; needed for devices in hostPaths that no device plugin offers.",
        examples=[True],
    )
    host_paths: dict[Folder, HostPath] = Field(
        {},
        max_length=16,
        description="Folders, files and devices of the node, by name.",
        examples=[{"infiniband": {"path": "/dev/infiniband", "mount": "/dev/infiniband"}}],
    )
    shared: dict[Folder, MountPath] = Field(
        {},
        max_length=8,
        description="Folders of the pod that workers share with the fabric's containers, by name: where workers see them.",
        examples=[{"sockets": "/run/fabric"}],
    )
    huge_pages: dict[PageSize, Memory] = Field(
        {},
        max_length=4,
        description="Huge pages per worker, if the pool states such pages and the spec does not.",
        examples=[{"2Mi": "5Gi"}],
    )
    env: dict[EnvName, ScalarText] = Field(
        {},
        max_length=64,
        description="Environment variables of launcher and workers; those of cluster, team and spec win.",
        examples=[{"FI_PROVIDER": "efa"}],
    )
    annotations: dict[
        Annotated[LabelKey, AfterValidator(_validate_annotation_key)], Annotated[str, Field(max_length=16384)]
    ] = Field(
        {},
        max_length=16,
        description="Annotations of the workers' pods.",
        examples=[{"networking.gke.io/default-interface": "eth0"}],
    )
    setup: dict[Name, FabricContainer] = Field(
        {},
        max_length=8,
        description="Containers that run before the program, one after the other, by name.",
        examples=[
            {
                "prepare": {
                    "image": "registry.example.com/fabric/prepare:1.0",
                    "mounts": {"sockets": "/run/fabric"},
                }
            }
        ],
    )
    sidecars: dict[Name, FabricContainer] = Field(
        {},
        max_length=8,
        description="Containers that run next to the program and end with it, by name.",
        examples=[
            {
                "daemon": {
                    "image": "registry.example.com/fabric/daemon:1.0",
                    "mounts": {"sockets": "/run/fabric"},
                }
            }
        ],
    )
    scc: Name | None = Field(
        None,
        description="OpenShift: SecurityContextConstraints that admit these pods; bind the service account training to them.",
        examples=["hostnetwork-v2"],
    )


SharedModel = TypeVar("SharedModel", bound=Strict)


def merge_spec_models(below: SharedModel, above: SharedModel) -> SharedModel:
    """Return `below` with the fields that `above` sets: mappings are merged key by key, other values are
    replaced."""
    values = {name: getattr(below, name) for name in type(below).model_fields}
    for name in above.model_fields_set:
        values[name] = _merge_spec_model_values(values[name], getattr(above, name))
    written = below.model_fields_set | above.model_fields_set
    return cast(SharedModel, type(below).model_construct(written, **values))


def _merge_spec_model_values(below: object, above: object) -> object:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {
            key: _merge_spec_model_values(below[key], value) if key in below else value
            for key, value in above.items()
        }
    if isinstance(below, Strict) and isinstance(above, Strict):
        return merge_spec_models(below, above)
    return above
