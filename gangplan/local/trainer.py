"""What Kubeflow Trainer adds to a run's pods: the hostfile, and variables for the rendezvous."""

from __future__ import annotations

from collections.abc import Iterable


def build_host_name(run: str, role: str, index: int) -> str:
    """Return a pod's host name (JobSet v0.12: `<run>-<replicated job>-<job>-<pod>`)."""
    return f"{run}-{role}-0-{index}"


def format_hostfile(names: Iterable[str], slots: int) -> str:
    """Return the hostfile of the MPI plugin for names with their subdomain (Trainer v2.3,
    plugins/mpi/mpi.go)."""
    return "".join(f"{name} slots={slots}\n" for name in names)


def build_local_mpi_plugin_variables(slots: int) -> dict[str, str]:
    """Return the launcher's variables that the MPI plugin overwrites (Trainer v2.3, plugins/mpi/mpi.go,
    EnforceMLPolicy)."""
    return {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(slots),
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    }


def build_local_torch_plugin_variables(
    workers: int, slots: int, index: int, address: str, port: int = 29500
) -> dict[str, str]:
    """Return the variables that the torch plugin sets in a worker (Trainer v2.3, plugins/torch/torch.go)."""
    return {
        "PET_NNODES": str(workers),
        "PET_NPROC_PER_NODE": str(slots),
        "PET_NODE_RANK": str(index),
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": str(port),
    }


def build_local_xgboost_plugin_variables(
    workers: int, index: int, address: str, port: int = 29500
) -> dict[str, str]:
    """Return the variables that the xgboost plugin sets in a worker with one GPU or none (Trainer v2.3,
    plugins/xgboost/xgboost.go)."""
    return {
        "DMLC_TRACKER_URI": address,
        "DMLC_TRACKER_PORT": str(port),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_TASK_ID": str(index),
    }


def build_local_jax_plugin_variables(
    workers: int, index: int, address: str, port: int = 29500
) -> dict[str, str]:
    """Return the variables that the jax plugin sets in a worker (Trainer v2.3, plugins/jax/jax.go)."""
    return {
        "JAX_COORDINATOR_ADDRESS": f"{address}:{port}",
        "JAX_NUM_PROCESSES": str(workers),
        "JAX_PROCESS_ID": str(index),
    }
