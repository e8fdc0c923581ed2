"""The environment of the launch: what each MPI family needs beyond what Trainer injects."""

from __future__ import annotations

from gangplan.model.job import EnvVar, Job
from gangplan.plan.command import HOSTFILE, HYDRA_HOSTFILE
from gangplan.plan.traffic import traffic_env

_SSH_ARGS = "-o ConnectionAttempts=10"

# What the NVIDIA container runtime reads; images of CUDA set it to `all` (nvidia-container-toolkit, docs).
GPUS_SHOWN = "NVIDIA_VISIBLE_DEVICES"


def launcher_env(job: Job) -> tuple[EnvVar, ...]:
    """Variables for the launcher's container, the job's own included, sorted by name. The job's own win."""
    hidden = [(GPUS_SHOWN, "void")] if hides_gpus(job) else []
    return _with_defaults(job, [*_family_env(job), *traffic_env(job), *hidden])


def worker_env(job: Job) -> tuple[EnvVar, ...]:
    """Variables for the workers' containers: the job's own, for people and for torch."""
    return _with_defaults(job, [] if job.uses_mpi else traffic_env(job))


def hides_gpus(job: Job) -> bool:
    """Whether a dedicated launcher stands on a node whose GPUs it must not see, for its own it has none."""
    is_dedicated = job.uses_mpi and not job.launcher_runs_ranks
    return is_dedicated and bool(job.launcher_pool.gpu) and all(one.name != GPUS_SHOWN for one in job.env)


def _with_defaults(job: Job, defaults: list[tuple[str, str]]) -> tuple[EnvVar, ...]:
    variables = {name: EnvVar(name, value) for name, value in defaults}
    variables |= {variable.name: variable for variable in job.env}
    return tuple(variables[name] for name in sorted(variables))


def _family_env(job: Job) -> list[tuple[str, str]]:
    if job.image.mpi is None:
        return []
    if job.image.mpi.family == "IntelMPI":
        return _intel_mpi_env(job)
    if job.image.mpi.family == "MPICH":
        return [
            ("HYDRA_HOST_FILE", HYDRA_HOSTFILE),
            ("HYDRA_IFACE", "eth0"),
            ("HYDRA_LAUNCHER", "ssh"),
            ("HYDRA_LAUNCHER_EXTRA_ARGS", _SSH_ARGS),
        ]
    return _open_mpi_env(job)


def _intel_mpi_env(job: Job) -> list[tuple[str, str]]:
    return [
        # Above 16 hosts Hydra starts the others from workers, which restricted postures deny. 0: all from the
        # launcher (Intel MPI 2021.18: 140 of 140; -1 changes nothing). MPICH's Hydra has no such tree.
        *([("I_MPI_HYDRA_BRANCH_COUNT", "0")] if job.posture != "default" else []),
        ("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", _SSH_ARGS),
        ("I_MPI_HYDRA_HOST_FILE", HYDRA_HOSTFILE),
        # Hydra tells workers to call back by the bare host name, which other pods cannot resolve;
        # with an interface it passes the address (Intel MPI 2021.18, MPICH 5.0.2).
        ("I_MPI_HYDRA_IFACE", "eth0"),
        ("I_MPI_PERHOST", str(job.slots)),
        *([("I_MPI_PIN", "off")] if job.bind_to == "none" else []),
    ]


def _open_mpi_env(job: Job) -> list[tuple[str, str]]:
    """Open MPI 4 reads what Trainer injects. Open MPI 5 reads none of it and would run on the launcher
    alone (trainer#4028), so its runtime PRRTE gets its own names.

    In restricted postures only the launcher may open SSH sessions, so the tree spawn over workers
    (from 65 hosts on) is switched off. The binding is for an mpirun of the user's own: pods of one node see
    the same cores, and by default each would put its first rank on the first (4.1.8 and 5.0.11).
    """
    major = job.image.mpi.major if job.image.mpi else 5
    direct = job.posture != "default"
    if major < 5:
        return [
            ("OMPI_MCA_hwloc_base_binding_policy", job.bind_to),
            *([("OMPI_MCA_plm_rsh_no_tree_spawn", "1")] if direct else []),
        ]
    return [
        ("PRTE_MCA_hwloc_default_binding_policy", job.bind_to),
        ("PRTE_MCA_plm_ssh_args", _SSH_ARGS),
        ("PRTE_MCA_prte_default_hostfile", HOSTFILE),
        *([("PRTE_MCA_plm_ssh_no_tree_spawn", "1")] if direct else []),
    ]
