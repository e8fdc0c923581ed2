"""Check settings of the transport: ranks of different workers must reach each other, and use the fabric they hold.

The names are those of Open MPI 4.1 and 5.0 (components of btl, pml and mtl), UCX 1.19 (UCX_TLS), libfabric 2
(fi_provider(7)), Intel MPI 2021 (I_MPI_FABRICS) and NCCL 2.28 (NCCL_NET, which ends a run whose network it cannot
initialise).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.settings import VariableSetting
from gangplan.rules.settings import RDMA_UNUSED, TRANSPORT_UNAVAILABLE

# What carries messages inside a host alone, and what needs devices of a fabric.
_LOCAL_BTL = frozenset({"self", "sm", "vader", "smcuda"})
_LOCAL_TLS = frozenset(
    {"self", "sm", "shm", "mm", "posix", "sysv", "cma", "knem", "xpmem", "cuda", "cuda_copy", "cuda_ipc"}
) | {"gdr_copy", "rocm", "rocm_copy", "rocm_ipc"}
_DEVICE_MTL = frozenset({"psm", "psm2", "mxm", "portals4"})
_DEVICE_PROVIDERS = frozenset({"verbs", "mlx", "efa", "psm", "psm2", "opx", "cxi", "gni", "usnic"})
_TCP_PROVIDERS = frozenset({"tcp", "sockets", "udp"})
_DEVICE_NETS = re.compile(r"(?:g?ib|ibext\w*|aws libfabric)", re.IGNORECASE)
_OTHER_PML = re.compile(r"\bpml[= ]+(?!ob1\b)\w|MCA_pml=(?!ob1\b)\w")
_UCX_WITHOUT_DEVICES = re.compile(r"ucx_(?:tls|devices)")
_ONE_HOST, _DEVICES = "it works inside one host", "the run has no RDMA devices"


def check_transport(job: Job, setting: VariableSetting) -> Problem | None:
    """Return the problem of a setting that leaves ranks of different workers no way to each other."""
    why = _explain_missing_transport(job, setting) if job.workers > 1 else ""
    if not why or (why == _DEVICES and _may_have_fabric(job)):
        return None
    message = (
        f"with {setting.called} {setting.value}, ranks of different workers cannot reach each other: {why}"
    )
    help = "Remove it."
    if why == _DEVICES:
        help = "Remove it; or write network: {rdma: required}, for a pool that has RDMA."
    return Problem(setting.path, message, help, TRANSPORT_UNAVAILABLE)


def _may_have_fabric(job: Job) -> bool:
    """Return whether workers have RDMA devices, devices that may be some, or access to a fabric of their nodes."""
    fabric = job.fabric
    others = any("/" in name for name, _ in job.resources.others)
    return bool(fabric.resources or fabric.claims or fabric.networks or fabric.access.name or others)


def _explain_missing_transport(job: Job, setting: VariableSetting) -> str:
    """Return why a setting may leave workers apart, or an empty text."""
    name, value = setting.name, setting.value.strip().lower()
    family = job.image.mpi.family if job.uses_mpi and job.image.mpi is not None else ""
    if not value:
        return ""
    if name == "NCCL_NET":
        return _DEVICES if job.gpus and _DEVICE_NETS.fullmatch(value) else ""
    if family == "OpenMPI":
        return _explain_open_mpi_transport(job, name, value)
    if name == "I_MPI_FABRICS" and family == "IntelMPI":
        return _ONE_HOST if value == "shm" else ""
    if name == "FI_PROVIDER" and family:
        names = _read_providers(value)
        return _ONE_HOST if names == {"shm"} else _DEVICES if names <= {*_DEVICE_PROVIDERS, "shm"} else ""
    if name == "UCX_TLS" and family == "MPICH":
        names = _read_names(value)
        if value.startswith("^"):
            return _DEVICES if "tcp" in names else ""
        return "" if names & {"tcp", "all"} else _ONE_HOST if names <= _LOCAL_TLS else _DEVICES
    return ""


def _explain_open_mpi_transport(job: Job, name: str, value: str) -> str:
    """Return why Open MPI cannot leave a host: without devices, UCX gives way to ob1, whose btl must then have tcp.

    For pml ucx, it ends: its default transports are those of InfiniBand and of GPUs (opal_common_ucx.c).
    """
    plain = (f"{one.name}={one.value}" for one in job.env if one.is_plain)
    written = " ".join((*job.mpi_flags, *job.command, *plain))
    names = _read_names(value)
    if name == "OMPI_MCA_btl" and not _OTHER_PML.search(written):
        is_left = ("tcp" in names) is not value.startswith("^")
        return "" if is_left else _DEVICES
    if name == "OMPI_MCA_mtl":
        return _DEVICES if names <= _DEVICE_MTL else ""
    if name == "OMPI_MCA_pml" and names == {"ucx"} and not job.gpus:
        return "" if _UCX_WITHOUT_DEVICES.search(written) else _DEVICES
    return ""


def check_fabric_is_used(job: Job, settings: Sequence[VariableSetting]) -> Iterator[Problem]:
    """Yield a problem of settings that keep all traffic off the RDMA devices of the workers.

    NCCL and MPI have settings of their own; a job of GPUs on MPI alone may use either.
    """
    if not (job.fabric.resources or job.fabric.claims):
        return
    uses_mpi = job.uses_mpi and (not job.gpus or job.image.framework == "mpi")
    off = [
        *([_find_nccl_without_fabric(job, settings)] if job.gpus else []),
        *([_find_mpi_without_fabric(job, settings)] if uses_mpi else []),
    ]
    found = [one for one in off if one is not None]
    if found and len(found) == len(off):
        names = " and ".join(f"{one.called} {one.value}" for one in found)
        keep = "keep" if len(found) > 1 else "keeps"
        message = f"network.rdma gives workers RDMA devices, but {names} {keep} all traffic off them"
        yield Problem(found[0].path, message, "Remove it, or remove network.rdma.", RDMA_UNUSED)


def _find_nccl_without_fabric(job: Job, settings: Sequence[VariableSetting]) -> VariableSetting | None:
    """Return the setting with which NCCL uses sockets; NCCL_IB_DISABLE does nothing to a fabric's own plugin."""
    for one in settings:
        is_off = one.name == "NCCL_IB_DISABLE" and one.value == "1" and not job.fabric.access.name
        if is_off or (one.name == "NCCL_NET" and one.value.lower() == "socket"):
            return one
    return None


def _find_mpi_without_fabric(job: Job, settings: Sequence[VariableSetting]) -> VariableSetting | None:
    """Return the setting with which the image's MPI uses TCP; for Open MPI, ob1 and its btl decide together."""
    if job.image.mpi is None or job.image.mpi.family != "OpenMPI":
        given = (one for one in settings if one.name == "FI_PROVIDER" and one.value)
        return next((one for one in given if _read_providers(one.value.lower()) <= _TCP_PROVIDERS), None)
    is_ob1 = any((one.name, one.value) == ("OMPI_MCA_pml", "ob1") for one in settings)
    given = (one for one in settings if one.name == "OMPI_MCA_btl" and is_ob1)
    return next((one for one in given if "tcp" in _read_names(one.value) <= {*_LOCAL_BTL, "tcp"}), None)


def _read_names(value: str) -> set[str]:
    return {one.strip(" \\").partition(":")[0] for one in value.removeprefix("^").split(",")}


def _read_providers(value: str) -> set[str]:
    """Return the core providers of a list: `verbs;ofi_rxm` is verbs. An excluding list names all others."""
    return {"^"} if value.startswith("^") else {one.partition(";")[0].strip() for one in value.split(",")}
