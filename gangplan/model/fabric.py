"""What workers get from their nodes through the fabric of their pool, and the Pod Security level that this
needs."""

from __future__ import annotations

from gangplan.model.quantity import Quantity
from gangplan.records import dataclass

Pairs = tuple[tuple[str, str], ...]

# Pod Security levels, strictest first (k8s.io/pod-security-admission, api/constants.go).
SECURITY_LEVELS = ("restricted", "baseline", "privileged")
# Capabilities that pods may add at the levels baseline and restricted (policy/check_capabilities_*.go).
BASELINE_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
# Types of a hostPath volume other than folders (core/v1 types.go, HostPathType).
FILE_TYPES = frozenset({"File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"})


@dataclass(frozen=True, slots=True)
class FabricVolume:
    """A path of the node, with a type that the kubelet ensures; without a path, an empty folder."""

    name: str
    path: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class FabricMount:
    """A volume of the fabric, by its name in the pod, as mounted into one container."""

    volume: str
    path: str
    read_only: bool = False
    key: str = ""  # always the whole volume, never one file of it


@dataclass(frozen=True, slots=True)
class FabricSideContainer:
    """A container next to the program. With `is_sidecar` it runs as long as the program does, else before
    it."""

    name: str
    image: str
    command: tuple[str, ...]
    env: Pairs
    mounts: tuple[FabricMount, ...]
    capabilities: tuple[str, ...]
    is_root: bool
    is_privileged: bool
    cpu: Quantity
    memory: Quantity
    is_sidecar: bool


@dataclass(frozen=True, slots=True)
class FabricAccess:
    """What a fabric gives a worker in addition to devices; all fields are empty without a fabric.

    `node_addresses` are those of the nodes, for the policies of pods that are not on the node's network.
    """

    name: str = ""
    host_network: bool = False
    node_addresses: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    is_privileged: bool = False
    env: Pairs = ()
    annotations: Pairs = ()
    volumes: tuple[FabricVolume, ...] = ()
    mounts: tuple[FabricMount, ...] = ()
    containers: tuple[FabricSideContainer, ...] = ()
    scc: str = ""

    @property
    def needs(self) -> dict[str, str]:
        """What Pod Security's level restricted refuses, in words, each with the level that admits it."""
        found = {}
        if self.host_network:
            found["the node's network"] = "privileged"
        if self.is_privileged or any(one.is_privileged for one in self.containers):
            found["privileged containers"] = "privileged"
        for name in self.added:
            if name not in RESTRICTED_CAPABILITIES:
                found[f"the capability {name}"] = (
                    "baseline" if name in BASELINE_CAPABILITIES else "privileged"
                )
        for volume in self.volumes:
            if volume.path:
                found[f"{volume.path} of the node"] = "privileged"
        if any(one.is_root for one in self.containers):
            found["a container that runs as root"] = "baseline"
        return found

    @property
    def added(self) -> tuple[str, ...]:
        """The capabilities of workers and of the containers next to them."""
        inner = (name for one in self.containers for name in one.capabilities)
        return tuple(dict.fromkeys((*self.capabilities, *inner)))

    @property
    def level(self) -> str:
        """The strictest Pod Security level that admits it."""
        return max(self.needs.values(), key=SECURITY_LEVELS.index, default=SECURITY_LEVELS[0])


NO_ACCESS = FabricAccess()


@dataclass(frozen=True, slots=True)
class GivenByFabrics:
    """What all fabrics of a cluster's pools give together: addresses, capabilities and paths of its nodes."""

    node_addresses: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A claim of each worker's own: so many devices of a class, which quotas count as `resource`.

    `name` is its name in pods, and the end of the name of its ResourceClaimTemplate; `rail` is the index of
    the pool's devices.
    """

    name: str
    device_class: str
    count: int
    resource: str
    rail: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFabric:
    """The RDMA network of a worker; empty if it has none.

    `resources` are its devices as the pool calls them, of which `claims` come by dynamic resource allocation.
    `networks` are attached in this order, one by one even
    if a name repeats. `interfaces` are names inside pods, `hcas` cards by name and port (`mlx5_0:2`);
    `access` is everything else that the pool's fabric gives.
    """

    resources: tuple[str, ...] = ()
    claims: tuple[DeviceClaim, ...] = ()
    networks: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    hcas: tuple[str, ...] = ()
    access: FabricAccess = NO_ACCESS
