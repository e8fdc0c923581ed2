"""What workers need on the fabrics of clouds and network operators: published values, each with its source.

The values are those of the manifests named in `source`, read in November 2026, without what belongs to single
tests. Images are left out: the cluster's file names them, with a digest and from its mirrors.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from gangplan.records import dataclass
from gangplan.spec.fabrics import Fabric, merge_spec_models


@dataclass(frozen=True, slots=True)
class FabricPreset:
    """A fabric as published. `devices` is the resource that its pools offer; empty if annotations do that."""

    title: str
    source: str
    devices: str
    values: Mapping[str, Any]


_GIB_LIBRARIES = "/usr/local/nvidia/lib64"
_GPUS = tuple(f"/dev/nvidia{number}" for number in range(8))


def _format_gke_devices(*paths: str) -> str:
    """Return an annotation for GKE's device injector (container-engine-accelerators, nri_device_injector)."""
    return "".join(f"- path: {path}\n" for path in paths)


def _format_gke_interfaces(first: int, *networks: str) -> str:
    """Return the interfaces of a pod with several networks (GKE, multi-network support for pods)."""
    names = {"eth0": "default", **{f"eth{first + at}": network for at, network in enumerate(networks)}}
    parts = (f'{{"interfaceName":"{name}","network":"{network}"}}' for name, network in names.items())
    return f"[{','.join(parts)}]"


_TCPXO_DAEMON = (
    "chmod 755 /fts/entrypoint_rxdm_container.sh && exec /fts/entrypoint_rxdm_container.sh"
    " --num_hops=2 --num_nics=8 --uid= --alsologtostderr"
)

FABRIC_PRESETS: Mapping[str, FabricPreset] = {
    "aws-efa": FabricPreset(
        "AWS Elastic Fabric Adapter, by the EFA device plugin",
        "aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests/kubernetes/nccl-tests.yaml",
        "vpc.amazonaws.com/efa",
        {"hugePages": {"2Mi": "5120Mi"}, "env": {"FI_EFA_FORK_SAFE": "1", "FI_PROVIDER": "efa"}},
    ),
    "azure-infiniband": FabricPreset(
        "Azure InfiniBand (ND and HB series), by NVIDIA's network operator",
        "Azure/ai-infrastructure-on-azure infrastructure_validations/aks/NCCL/nccl.yaml and helm/nccl-test/values.yaml",
        "rdma/ib",
        {
            "capabilities": ("IPC_LOCK",),
            "env": {"NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_SOCKET_IFNAME": "eth0"},
        },
    ),
    "oci-roce": FabricPreset(
        "OCI RoCE on bare metal, in the nodes' own network",
        "oracle-quickstart/oci-hpc-oke manifests/nccl-tests/host-network/kueue/BM.GPU.H100.8.yaml",
        "",
        {
            "hostNetwork": True,
            "privileged": True,
            "hostPaths": {
                "infiniband": {"path": "/dev/infiniband", "mount": "/dev/infiniband", "readOnly": False}
            },
            "env": {
                "NCCL_IB_GID_INDEX": "3",
                "NCCL_IB_SL": "0",
                "NCCL_IB_SPLIT_DATA_ON_QPS": "0",
                "NCCL_IB_TC": "41",
                "NCCL_IB_TIMEOUT": "22",
                "NCCL_SOCKET_IFNAME": "eth0",
            },
        },
    ),
    "oci-roce-vf": FabricPreset(
        "OCI RoCE by virtual functions, of the SR-IOV network operator",
        "oracle-quickstart/oci-hpc-oke manifests/nccl-tests/virtual-functions/mpi-operator/BM.GPU.H100.8.yaml",
        "nvidia.com/rdma-vf",
        {
            "capabilities": ("IPC_LOCK",),
            "env": {
                "NCCL_IB_GID_INDEX": "3",
                "NCCL_IB_HCA": "mlx5",
                "NCCL_IB_SL": "0",
                "NCCL_IB_SPLIT_DATA_ON_QPS": "0",
                "NCCL_IB_TC": "41",
                "NCCL_IB_TIMEOUT": "22",
                "NCCL_SOCKET_IFNAME": "eth0",
            },
        },
    ),
    "gke-rdma": FabricPreset(
        "GKE GPUDirect-RDMA (A3 Ultra, A4), by several networks per pod",
        "GoogleCloudPlatform/container-engine-accelerators gpudirect-rdma/nccl-test.yaml",
        "",
        {
            "wholeNode": True,
            "hostPaths": {
                "gib": {"path": "/home/kubernetes/bin/gib", "mount": "/usr/local/gib"},
                "nvidia": {"path": "/home/kubernetes/bin/nvidia", "mount": "/usr/local/nvidia"},
            },
            "env": {"LD_LIBRARY_PATH": _GIB_LIBRARIES},
            "annotations": {
                "networking.gke.io/default-interface": "eth0",
                "networking.gke.io/interfaces": _format_gke_interfaces(
                    2, *(f"rdma-{rail}" for rail in range(8))
                ),
            },
        },
    ),
    "gke-tcpx": FabricPreset(
        "GKE GPUDirect-TCPX (A3 High), by several networks per pod and a daemon",
        "GoogleCloudPlatform/container-engine-accelerators gpudirect-tcpx/nccl-test-unprivileged-without-hostnetwork.yaml, nccl-config.yaml",
        "",
        {
            "wholeNode": True,
            "capabilities": ("IPC_LOCK",),
            "hostPaths": {
                "nvidia": {"path": "/home/kubernetes/bin/nvidia/lib64", "mount": _GIB_LIBRARIES},
                "proc": {"path": "/proc/sys", "readOnly": False},
                "sys": {"path": "/sys", "readOnly": False},
                "tcpx": {"path": "/run/tcpx", "mount": "/run/tcpx", "readOnly": False},
            },
            "env": {
                "LD_LIBRARY_PATH": _GIB_LIBRARIES,
                "NCCL_CROSS_NIC": "0",
                "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
                "NCCL_GPUDIRECTTCPX_CTRL_DEV": "eth0",
                "NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS": "500000",
                "NCCL_GPUDIRECTTCPX_RX_BINDINGS": "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191",
                "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "eth1,eth2,eth3,eth4",
                "NCCL_GPUDIRECTTCPX_TX_BINDINGS": "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177",
                "NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX": "/run/tcpx",
                "NCCL_NET_GDR_LEVEL": "PIX",
                "NCCL_NSOCKS_PERTHREAD": "4",
                "NCCL_P2P_NET_CHUNKSIZE": "524288",
                "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
                "NCCL_P2P_PCI_CHUNKSIZE": "524288",
                "NCCL_SOCKET_IFNAME": "eth0",
                "NCCL_SOCKET_NTHREADS": "1",
            },
            "annotations": {
                "devices.gke.io/container.tcpx-daemon": _format_gke_devices(
                    *_GPUS, "/dev/nvidiactl", "/dev/nvidia-uvm"
                ),
                "networking.gke.io/default-interface": "eth0",
                "networking.gke.io/interfaces": _format_gke_interfaces(1, "vpc1", "vpc2", "vpc3", "vpc4"),
            },
            "sidecars": {
                "tcpx-daemon": {
                    "command": (
                        *("/tcpgpudmarxd/build/app/tcpgpudmarxd", "--gpu_nic_preset", "a3vm"),
                        *("--gpu_shmem_type", "fd", "--uds_path", "/run/tcpx"),
                        *("--setup_param", '\\"--verbose 128 2 0 \\"'),
                    ),
                    "env": {"LD_LIBRARY_PATH": _GIB_LIBRARIES},
                    "capabilities": ("NET_ADMIN",),
                    "root": True,
                    "mounts": {
                        "nvidia": _GIB_LIBRARIES,
                        "proc": "/hostprocsysfs",
                        "sys": "/hostsysfs",
                        "tcpx": "/run/tcpx",
                    },
                }
            },
        },
    ),
    "gke-tcpxo": FabricPreset(
        "GKE GPUDirect-TCPXO (A3 Mega), by several networks per pod and a daemon",
        "GoogleCloudPlatform/container-engine-accelerators gpudirect-tcpxo/nccl-test-unprivileged-without-hostnetwork.yaml",
        "",
        {
            "wholeNode": True,
            "hostPaths": {
                "aperture": {
                    "path": "/dev/aperture_devices",
                    "mount": "/dev/aperture_devices",
                    "readOnly": False,
                },
                "nvidia": {"path": "/home/kubernetes/bin/nvidia/lib64", "mount": _GIB_LIBRARIES},
                "proc": {"path": "/proc/sys", "readOnly": False},
                "sys": {"path": "/sys", "readOnly": False},
            },
            "env": {
                "LD_LIBRARY_PATH": _GIB_LIBRARIES,
                "NCCL_FASTRAK_CTRL_DEV": "eth0",
                "NCCL_FASTRAK_IFNAME": "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8",
                "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "/dev/aperture_devices",
                "NCCL_SOCKET_IFNAME": "eth0",
            },
            "annotations": {
                "devices.gke.io/container.tcpxo-daemon": _format_gke_devices(
                    *_GPUS, "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dmabuf_import_helper"
                ),
                "networking.gke.io/default-interface": "eth0",
                "networking.gke.io/interfaces": _format_gke_interfaces(
                    1, *(f"vpc{rail}" for rail in range(1, 9))
                ),
            },
            "sidecars": {
                "tcpxo-daemon": {
                    "command": (
                        "/bin/sh",
                        "-c",
                        _TCPXO_DAEMON,
                    ),
                    "env": {"LD_LIBRARY_PATH": _GIB_LIBRARIES},
                    "capabilities": ("NET_ADMIN", "NET_BIND_SERVICE"),
                    "root": True,
                    "mounts": {"nvidia": _GIB_LIBRARIES, "proc": "/hostprocsysfs", "sys": "/hostsysfs"},
                }
            },
        },
    ),
    "sriov": FabricPreset(
        "InfiniBand or RoCE on premises, by NVIDIA's network operator (virtual functions or shared devices)",
        "Mellanox/network-operator example/rdma-test-pod1.yml and example/sriov-network/sriov-network-pod.yaml",
        "nvidia.com/mlnxnics",
        {"capabilities": ("IPC_LOCK",)},
    ),
}


def complete_fabric(stated: Fabric) -> Fabric:
    """Return a fabric completed with the values of its preset; its own values take precedence."""
    if stated.preset is None:
        return stated
    return merge_spec_models(_load_fabric_preset(stated.preset), stated)


@cache
def _load_fabric_preset(name: str) -> Fabric:
    return Fabric.model_validate(FABRIC_PRESETS[name].values)
