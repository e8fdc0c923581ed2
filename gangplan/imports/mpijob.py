"""Read an MPIJob of kubeflow.org/v2beta1 or kubeflow.org/v1.

v2beta1 is as in mpi-operator v0.8, v1 as in training-operator v1.9 and mpi-operator v0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.pods import SourcePod, read_imported_pod_template
from gangplan.imports.policies import account_for_restart_policy, account_for_suspend, map_imported_run_policy
from gangplan.imports.sources import OtherObject
from gangplan.imports.workload import PodRole, SourceError, SourceJob, SourceSetting

MPI_IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "Intel": "IntelMPI", "MPICH": "MPICH"}
# Where keys are if sshAuthMountPath is left out: v2beta1 of mpi-operator v0.8 and Trainer v2.3; v1 has no keys.
ROOT_KEYS = "/root/.ssh"
_WITH_KEYS = "kubeflow.org/v2beta1"
_BY_THE_RUN = "gangplan starts workers first, and the launcher once all are ready"
# Variables that the controller sets in launchers and workers (mpi-operator v0.8, mpi_job_controller.go).
MPI_OPERATOR_VARIABLES = frozenset(
    {
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_plm_rsh_args",
        "OMPI_MCA_orte_set_default_slots",
        "I_MPI_HYDRA_HOST_FILE",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
        "I_MPI_PERHOST",
        "HYDRA_HOST_FILE",
        "HYDRA_LAUNCH_EXTRA_ARGS",
        "K_MPI_JOB_ROLE",
        "OMPI_MCA_plm_rsh_agent",
    }
)


def read_imported_mpijob(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of an MPIJob. Raises ValueError for one without a launcher pod."""
    root = account.root()
    spec = root["spec"]
    replicas = spec["mpiReplicaSpecs"]
    launcher, worker = replicas["Launcher"], replicas["Worker"]
    lead = read_imported_pod_template(launcher["template"])
    if lead is None and not replicas:
        version = root["apiVersion"].text()
        message = f"{version} of it says its pods in another way, which no operator reads any more"
        raise SourceError(
            message, "Write it for kubeflow.org/v2beta1: spec.mpiReplicaSpecs with Launcher and Worker."
        )
    if lead is None:
        raise ValueError("it has no launcher with a container (spec.mpiReplicaSpecs.Launcher)")
    settings: dict[str, SourceSetting] = {}
    map_imported_run_policy(spec["runPolicy"], settings)
    _map_older_mpijob_fields(spec, settings)
    slots = spec["slotsPerWorker"]
    settings["slots"] = SourceSetting(slots.count() or 1, slots if slots else root)
    slots.mapped("slots")
    workers = read_imported_pod_template(worker["template"])
    count = worker["replicas"].count()
    roles = _build_mpijob_roles(lead, workers, count if count is not None else 0)
    if worker["replicas"]:
        settings["workers"] = SourceSetting(roles[-1].count, worker["replicas"].mapped("workers"))
    launcher["replicas"].same("a run has one launcher")
    for one in (launcher, worker):
        account_for_restart_policy(one["restartPolicy"])
    runs = spec["runLauncherAsWorker"].mapped("launcher.runsRanks").value is True
    spec["launcherCreationPolicy"].dropped(_BY_THE_RUN)
    spec["mpiImplementation"].mapped("images.mpi.implementation")
    keys = spec["sshAuthMountPath"].mapped("images.ssh.keys")
    if workers is not None and len(roles) == 1:
        for name in ("command", "args"):
            workers.main.node[name].dropped("it has no workers")
    return SourceJob(
        "MPIJob",
        root.at("metadata", "name").text() or root.at("metadata", "generateName").text(),
        "mpi",
        account,
        roles,
        settings,
        MPI_IMPLEMENTATIONS.get(spec["mpiImplementation"].text(), "OpenMPI"),
        keys or None,
        runs and workers is not None,
        sets=MPI_OPERATOR_VARIABLES,
        default_keys=ROOT_KEYS if len(roles) > 1 and root["apiVersion"].text() == _WITH_KEYS else "",
    )


def _build_mpijob_roles(lead: SourcePod, workers: SourcePod | None, count: int) -> tuple[PodRole, ...]:
    """Return launcher and workers; a launcher without workers trains by itself."""
    if workers is None or count == 0:
        return (PodRole("launcher", 1, lead),)
    return (PodRole("launcher", 1, lead, 0), PodRole("worker", count, workers))


def _map_older_mpijob_fields(spec: SourceNode, settings: dict[str, SourceSetting]) -> None:
    """Map fields outside runPolicy of kubeflow.org/v1 and v1alpha2 (mpi-operator v0.2, v1 types)."""
    for name in ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        node = spec[name]
        if name in ("cleanPodPolicy", "ttlSecondsAfterFinished"):
            node.dropped("the pods of a run end with it")
        elif (number := node.number()) is not None:
            settings.setdefault(
                "timeout" if name == "activeDeadlineSeconds" else "retries", SourceSetting(number, node)
            )
    spec["mainContainer"].dropped("the first container trains")
    account_for_suspend(spec["suspend"])
