"""Read an MPIJob of kubeflow.org/v2beta1 or kubeflow.org/v1.

v2beta1 is as in mpi-operator v0.8, v1 as in training-operator v1.9 and mpi-operator v0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.account import Account, Node
from gangplan.imports.pods import PodOf, pod_of
from gangplan.imports.policies import pod_restarts, run_policy, suspend
from gangplan.imports.sources import OtherObject
from gangplan.imports.workload import Role, Setting, SourceError, Workload

FAMILIES = {"OpenMPI": "OpenMPI", "Intel": "IntelMPI", "MPICH": "MPICH"}
_BY_THE_RUN = "gangplan starts workers first, and the launcher once all are ready"
# Variables that the controller sets in launchers and workers (mpi-operator v0.8, mpi_job_controller.go).
SETS = frozenset(
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


def read_mpijob(account: Account, others: Sequence[OtherObject] = ()) -> Workload:
    """Return the workload of an MPIJob. Raises ValueError for one without a launcher pod."""
    root = account.root()
    spec = root["spec"]
    replicas = spec["mpiReplicaSpecs"]
    launcher, worker = replicas["Launcher"], replicas["Worker"]
    lead = pod_of(launcher["template"])
    if lead is None and not replicas:
        version = root["apiVersion"].text()
        message = f"{version} of it says its pods in another way, which no operator reads any more"
        raise SourceError(
            message, "Write it for kubeflow.org/v2beta1: spec.mpiReplicaSpecs with Launcher and Worker."
        )
    if lead is None:
        raise ValueError("it has no launcher with a container (spec.mpiReplicaSpecs.Launcher)")
    settings: dict[str, Setting] = {}
    run_policy(spec["runPolicy"], settings)
    _older(spec, settings)
    slots = spec["slotsPerWorker"]
    settings["slots"] = Setting(slots.number() or 1, slots if slots else root)
    slots.mapped("slots")
    workers = pod_of(worker["template"])
    count = worker["replicas"].number()
    roles = _roles(lead, workers, count if count is not None else 0)
    if worker["replicas"]:
        settings["workers"] = Setting(roles[-1].count, worker["replicas"].mapped("workers"))
    launcher["replicas"].same("a run has one launcher")
    for one in (launcher, worker):
        pod_restarts(one["restartPolicy"])
    runs = spec["runLauncherAsWorker"].mapped("launcher.runsRanks").value is True
    spec["launcherCreationPolicy"].dropped(_BY_THE_RUN)
    spec["mpiImplementation"].mapped("images.mpi.implementation")
    spec["sshAuthMountPath"].mapped("images.ssh.keys")
    if workers is not None:
        for name in ("command", "args"):
            workers.main.node[name].dropped("gangplan starts the SSH server of the workers")
    return Workload(
        "MPIJob",
        root.at("metadata", "name").text() or root.at("metadata", "generateName").text(),
        "mpi",
        account,
        roles,
        settings,
        FAMILIES.get(spec["mpiImplementation"].text(), "OpenMPI"),
        spec["sshAuthMountPath"].text(),
        runs and workers is not None,
        sets=SETS,
    )


def _roles(lead: PodOf, workers: PodOf | None, count: int) -> tuple[Role, ...]:
    """Return launcher and workers; a launcher without workers trains by itself."""
    if workers is None or count == 0:
        return (Role("launcher", 1, lead),)
    return (Role("launcher", 1, lead, 0), Role("worker", count, workers))


def _older(spec: Node, settings: dict[str, Setting]) -> None:
    """Map fields outside runPolicy of kubeflow.org/v1 and v1alpha2 (mpi-operator v0.2, v1 types)."""
    for name in ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        node = spec[name]
        if name in ("cleanPodPolicy", "ttlSecondsAfterFinished"):
            node.dropped("the pods of a run end with it")
        elif (number := node.number()) is not None:
            settings.setdefault(
                "timeout" if name == "activeDeadlineSeconds" else "retries", Setting(number, node)
            )
    spec["mainContainer"].dropped("the first container trains")
    suspend(spec["suspend"])
