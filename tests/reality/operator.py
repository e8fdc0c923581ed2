"""What the MPI operator creates for a rendered MPIJob: pods, hostfile, variables.

mpi-operator v0.8.2, pkg/controller/mpi_job_controller.go (newConfigMap, newWorker, newLauncherPodTemplate),
repeated here from its source; nothing is taken from gangplan but the rendered objects.
"""

from __future__ import annotations

from typing import Any

from gangplan.generators.scripts import SCRIPTS_FOLDER
from tests.kubelet import expand_local_container_like_kubelet, read_config_map_for_local_mount
from tests.reality import pods as made

Body = dict[str, Any]

VARIABLES: dict[str, dict[str, str]] = {
    "OpenMPI": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": "{slots}",
    },
    "Intel": {
        "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
        "I_MPI_PERHOST": "{slots}",
    },
    "MPICH": {
        "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
        "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10",
    },
}
WORKER = {"K_MPI_JOB_ROLE": "worker"}
NO_GPUS = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}


def cluster(found: list[Body], job: Body) -> made.Cluster:
    """Return the pods of an MPIJob in the same order as for other runs: workers, then the launcher."""
    spec, name, namespace = job["spec"], job["metadata"]["name"], job["metadata"]["namespace"]
    slots, family, runs = (
        spec["slotsPerWorker"],
        spec["mpiImplementation"],
        spec.get("runLauncherAsWorker", False),
    )
    told = {key: value.format(slots=slots) for key, value in VARIABLES[family].items()}
    told |= {"K_MPI_JOB_ROLE": "launcher"} | ({} if runs else NO_GPUS)
    replicas = spec["mpiReplicaSpecs"]
    pods: list[made.Pod] = []
    for index in range(replicas["Worker"]["replicas"]):
        host, number = f"{name}-worker-{index}", len(pods) + 1
        address = f"10.77.{number // 250}.{number % 250 + 1}"
        pods.append(_pod(replicas["Worker"]["template"], "worker", host, job, address, WORKER, found))
    number = len(pods) + 1
    address = f"10.77.{number // 250}.{number % 250 + 1}"
    launcher = _pod(
        replicas["Launcher"]["template"], "launcher", f"{name}-launcher", job, address, told, found
    )
    named = [launcher.name] if runs else []
    named += [pod.name for pod in pods]
    line = "{0}.{1}.{2}.svc slots={3}\n" if family == "OpenMPI" else "{0}.{1}.{2}.svc:{3}\n"
    return made.Cluster(
        pods=[*pods, launcher],
        hostfile="".join(line.format(one, name, namespace, slots) for one in named),
        keys=spec["sshAuthMountPath"],
        slots=slots,
        policies=[body for body in found if body["kind"] == "NetworkPolicy"],
        starts_together=True,
    )


def _pod(
    template: Body, role: str, host: str, job: Body, address: str, told: dict[str, str], found: list[Body]
) -> made.Pod:
    """Return a pod; the operator's variables come last, so that they win."""
    container = expand_local_container_like_kubelet(template["spec"]["containers"][0])
    name = job["metadata"]["name"]
    made.fill(template["spec"]["containers"][0], container["env"], host, address)
    container["env"] |= told
    labels = {
        **template["metadata"].get("labels", {}),
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/job-role": role,
        "training.kubeflow.org/operator-name": "mpi-operator",
    }
    annotation = template["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/networks", "")
    networks = annotation.count(",") + 1 if annotation else 0
    _, scripts = read_config_map_for_local_mount(template["spec"], SCRIPTS_FOLDER, found)
    namespace = job["metadata"]["namespace"]
    return made.Pod(host, role, name, namespace, address, labels, container, scripts, networks)
