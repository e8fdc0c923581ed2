"""Variables that keep the traffic between ranks on the right network: the fabric or TCP.

A card has two names: that of its RDMA device (`mlx5_0`, port 1), which verbs, NCCL_IB_HCA and UCX use, and
that of its network interface (`net1`), which sockets use. UCX_NET_DEVICES with only an interface means TCP
there, so interfaces are never put into it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.job import EnvVar, Job, Origins, ValueOrigin

# The interface of a pod on the cluster's own network (CNI; HYDRA_IFACE relies on it too).
POD_INTERFACE = "eth0"
# Variables that Open MPI's launchers pass to daemons and ranks by themselves
# (plm_rsh_pass_environ_mca_params, Open MPI 4.1; PRRTE 3 and 4 for both prefixes); everything else needs -x.
_CARRIED = ("OMPI_MCA_", "PRTE_MCA_")

# Origins that decide how ranks are started, and so whether a variable is set at all.
START_ORIGINS = (ValueOrigin("job", ("framework",)).aside(), ValueOrigin("job", ("mpi",)).aside())
_GPUS = ValueOrigin("job", ("gpus",)).aside()
_TCP = (
    ValueOrigin("", because="network.transport in the spec keeps traffic on TCP"),
    ValueOrigin("spec", ("network", "transport")).aside(),
    *START_ORIGINS,
    _GPUS,
)


def build_traffic_env(job: Job) -> list[EnvVar]:
    """Return the variables of the transport and the fabric, each with its origins."""
    return [*_build_tcp_transport_env(job), *_build_fabric_env(job)]


def list_exported_variables(job: Job) -> tuple[str, ...]:
    """Return the names of those variables that Open MPI passes to the ranks only with -x."""
    return tuple(one.name for one in build_traffic_env(job) if not one.name.startswith(_CARRIED))


def _build_tcp_transport_env(job: Job) -> list[EnvVar]:
    """Return variables that keep traffic on TCP (in shared memory inside a worker), if the spec asks for it.

    Open MPI calls its shared memory `vader` in 4 and `sm` in 5.
    """
    if job.transport != "tcp":
        return []
    nccl = [EnvVar("NCCL_IB_DISABLE", "1", origins=_TCP)] if job.gpus else []
    if job.image.mpi is None:
        return nccl
    memory = "vader" if job.image.mpi.major < 5 else "sm"
    by_family = {
        "OpenMPI": [("OMPI_MCA_btl", f"self,{memory},tcp"), ("OMPI_MCA_pml", "ob1")],
        "IntelMPI": [("FI_PROVIDER", "tcp")],
        "MPICH": [("FI_PROVIDER", "tcp"), ("UCX_TLS", "tcp,sm,self")],
    }
    family = (EnvVar(name, value, origins=_TCP) for name, value in by_family[job.image.mpi.family])
    return [*family, *nccl]


def _build_fabric_env(job: Job) -> list[EnvVar]:
    """Return the variables of the pool's fabric, and those that keep other traffic off it."""
    return [
        *_build_nccl_env(job),
        *_build_ucx_env(job),
        *_build_open_mpi_interface_env(job),
        *_build_libfabric_env(job),
    ]


def _build_nccl_env(job: Job) -> Iterator[EnvVar]:
    """Yield the cards and interfaces for NCCL's sockets, exact by `=` (NCCL 2.28, environment variables).

    By default, NCCL takes an interface named ib*, and otherwise the first one; only the pod's own is certain
    to reach every other worker. RCCL reads the same names.
    """
    if not job.gpus:
        return
    if job.fabric.hcas:
        yield _build_fabric_variable(
            "NCCL_IB_HCA", "=" + ",".join(job.fabric.hcas), _build_rdma_field_origin("hcas")
        )
    if names := _format_socket_interfaces(job):
        yield _build_fabric_variable("NCCL_SOCKET_IFNAME", f"={names}", _build_socket_origins(job))


def _build_ucx_env(job: Job) -> Iterator[EnvVar]:
    """Yield the cards for UCX, which needs ports (UCX 1.19 only warns about a device that a pod lacks)."""
    if job.image.mpi is not None and job.fabric.hcas:
        cards = [card if ":" in card else f"{card}:1" for card in job.fabric.hcas]
        yield _build_fabric_variable("UCX_NET_DEVICES", ",".join(cards), _build_rdma_field_origin("hcas"))


def _build_open_mpi_interface_env(job: Job) -> Iterator[EnvVar]:
    """Yield the interfaces of Open MPI: daemons use the pod's network, where the launcher is; ranks without
    UCX use the fabric's.

    By default, both try every interface of a pod, including those that its peer cannot reach: Open MPI 4.1.8
    then hangs, 5.0.11 gives up.
    """
    names = _format_socket_interfaces(job)
    if job.image.mpi is None or job.image.mpi.family != "OpenMPI" or not names:
        return
    # PRRTE 3 has its own name for that of the daemons (prte_if_include, Open MPI 5.0.11).
    daemons = "OMPI_MCA_oob_tcp_if" if job.image.mpi.major < 5 else "PRTE_MCA_prte_if"
    why = ValueOrigin("", because="daemons stay on the network that the launcher is on, too")
    of_daemons = (why, ValueOrigin("rails", ("interface",)).aside())
    for name, value, origins in (
        ("OMPI_MCA_btl_tcp_if", names, _build_socket_origins(job)),
        (daemons, POD_INTERFACE, of_daemons),
    ):
        if not _has_excluded_interfaces(job, name):
            yield _build_fabric_variable(f"{name}_include", value, origins)


def _has_excluded_interfaces(job: Job, name: str) -> bool:
    """Return whether the user excludes interfaces; Open MPI ends a run in which both lists are set."""
    option = f"{name.partition('_MCA_')[2]}_exclude"
    words = (*job.mpi_flags, *job.command, *(variable.name for variable in job.env))
    return any(option in word for word in words)


def _build_libfabric_env(job: Job) -> Iterator[EnvVar]:
    """Yield the interface for libfabric's TCP provider, which takes one (fi_tcp(7)).

    By default, ranks of Intel MPI 2021.18 without a fabric hang if a pod has an interface that leads nowhere.
    Daemons always get theirs (HYDRA_IFACE, I_MPI_HYDRA_IFACE).
    """
    if (
        job.image.mpi is not None
        and job.image.mpi.family != "OpenMPI"
        and (names := _format_socket_interfaces(job))
    ):
        yield _build_fabric_variable("FI_TCP_IFACE", names.partition(",")[0], _build_socket_origins(job))


def _format_socket_interfaces(job: Job) -> str:
    """Return the interfaces for sockets: the fabric's; otherwise the pod's own, if it has more than one."""
    if job.fabric.interfaces:
        return ",".join(job.fabric.interfaces)
    return POD_INTERFACE if job.fabric.networks else ""


def _build_rdma_field_origin(field: str) -> Origins:
    """Return the origin of a field of the RDMA devices of the workers' pool."""
    return (ValueOrigin("rails", (field,)),)


def _build_socket_origins(job: Job) -> Origins:
    if job.fabric.interfaces:
        return _build_rdma_field_origin("interface")
    why = "sockets stay on the pod's own network unless the pool names an interface"
    return ValueOrigin("", because=why), *(one.aside() for one in _build_rdma_field_origin("interface"))


def _build_fabric_variable(name: str, value: str, origins: Origins) -> EnvVar:
    """Return a variable of the fabric, with the origins that decide whether it is set."""
    around = (
        ValueOrigin("rails", ("network",)),
        ValueOrigin("spec", ("env", name), f"env in the spec could set {name}"),
        ValueOrigin("spec", ("mpi", "flags")),
        _GPUS,
        *START_ORIGINS,
        ValueOrigin("job", ("worker_pool",)),
    )
    return EnvVar(name, value, origins=(*origins, *(one.aside() for one in around)))
