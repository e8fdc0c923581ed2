"""The environment of the launch: what each MPI family needs beyond what Trainer injects."""

from __future__ import annotations

from gangplan.model.job import EnvVar, Job
from gangplan.plan.command import HOSTFILE, HYDRA_HOSTFILE

_SSH_ARGS = "-o ConnectionAttempts=10"


def launcher_env(job: Job) -> tuple[EnvVar, ...]:
    """Variables for the launcher's container, the job's own included, sorted by name."""
    variables = {variable.name: variable for variable in job.env}
    for name, value in (*_family_env(job), *_transport_env(job)):
        variables[name] = EnvVar(name, value)
    return tuple(variables[name] for name in sorted(variables))


def worker_env(job: Job) -> tuple[EnvVar, ...]:
    """Variables for the workers' containers: the job's own, for people and for torch."""
    variables = {variable.name: variable for variable in job.env}
    if not job.uses_mpi:
        for name, value in _transport_env(job):
            variables[name] = EnvVar(name, value)
    return tuple(variables[name] for name in sorted(variables))


def _family_env(job: Job) -> list[tuple[str, str]]:
    if job.image.mpi is None:
        return []
    if job.image.mpi.family == "IntelMPI":
        return [
            ("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
            ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", _SSH_ARGS),
            ("I_MPI_HYDRA_HOST_FILE", HYDRA_HOSTFILE),
            # Hydra tells workers to call back by the bare host name, which other pods cannot resolve;
            # with an interface it passes the address (Intel MPI 2021.18, MPICH 5.0.2).
            ("I_MPI_HYDRA_IFACE", "eth0"),
            ("I_MPI_PERHOST", str(job.slots)),
            *([("I_MPI_PIN", "off")] if job.bind_to == "none" else []),
        ]
    if job.image.mpi.family == "MPICH":
        return [
            ("HYDRA_HOST_FILE", HYDRA_HOSTFILE),
            ("HYDRA_IFACE", "eth0"),
            ("HYDRA_LAUNCHER", "ssh"),
            ("HYDRA_LAUNCHER_EXTRA_ARGS", _SSH_ARGS),
        ]
    return _open_mpi_env(job)


def _open_mpi_env(job: Job) -> list[tuple[str, str]]:
    """Open MPI 4 reads what Trainer injects. Open MPI 5 reads none of it and would run on the launcher
    alone (trainer#4028), so its runtime PRRTE gets its own names.

    In restricted postures only the launcher may open SSH sessions, so the tree spawn over workers
    (from 65 hosts on) is switched off.
    """
    major = job.image.mpi.major if job.image.mpi else 5
    direct = job.posture != "default"
    if major < 5:
        return [("OMPI_MCA_plm_rsh_no_tree_spawn", "1")] if direct else []
    return [
        ("PRTE_MCA_plm_ssh_args", _SSH_ARGS),
        ("PRTE_MCA_prte_default_hostfile", HOSTFILE),
        *([("PRTE_MCA_plm_ssh_no_tree_spawn", "1")] if direct else []),
    ]


def _transport_env(job: Job) -> list[tuple[str, str]]:
    """IMP-16: keep traffic on TCP where the spec asks for it."""
    if job.transport != "tcp":
        return []
    nccl = [("NCCL_IB_DISABLE", "1")] if job.gpus else []
    if job.image.mpi is None:
        return nccl
    by_family = {
        "OpenMPI": [("OMPI_MCA_btl", "tcp,self"), ("OMPI_MCA_pml", "ob1")],
        "IntelMPI": [("FI_PROVIDER", "tcp")],
        "MPICH": [("FI_PROVIDER", "tcp"), ("UCX_TLS", "tcp,self")],
    }
    return [*by_family[job.image.mpi.family], *nccl]
