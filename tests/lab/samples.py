"""Small objects for the lab's own tests: a queue, an MPI runtime, a run."""

from __future__ import annotations

from typing import Any

from .client import Client, Object

QUEUE = "kueue.x-k8s.io/queue-name"
TRAINER = "trainer.kubeflow.org/v1alpha1"


def queue(api: Client, name: str, cpu: str = "40", memory: str = "160Gi") -> list[Object]:
    """Return a namespace, a flavor of all nodes, a cluster queue and a local queue, all with one name."""
    version = api.resource("ClusterQueue").api_version
    quotas = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": memory}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": quotas}]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {}},
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": selector, "resourceGroups": [group]},
        },
        {
            "apiVersion": version,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": name},
            "spec": {"clusterQueue": name},
        },
    ]


def runtime(namespace: str, name: str) -> Object:
    """Return an Open MPI runtime: workers that serve, and a launcher that starts when they are ready."""
    serve = {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]}
    launch = {"command": ["/bin/sh", "-c"]}
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    launcher: Object = {
        "name": "launcher",
        "dependsOn": [{"name": "node", "status": "Ready"}],
        "template": {"metadata": {"labels": step}, "spec": _job(launch)},
    }
    mpi = {
        "mpiImplementation": "OpenMPI",
        "numProcPerNode": 1,
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "runLauncherAsNode": True,
    }
    jobs: Object = {
        "network": {"publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
        "replicatedJobs": [{"name": "node", "template": {"spec": _job(serve)}}, launcher],
    }
    return {
        "apiVersion": TRAINER,
        "kind": "TrainingRuntime",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"trainer.kubeflow.org/framework": "mpi"},
        },
        "spec": {"mlPolicy": {"numNodes": 1, "mpi": mpi}, "template": {"spec": jobs}},
    }


def run(namespace: str, name: str, *, nodes: int = 3, cpu: str = "4", queue: str | None = None) -> Object:
    """Return a run of the runtime with the same name as the namespace, in its queue."""
    trainer: dict[str, Any] = {
        "numNodes": nodes,
        "numProcPerNode": 2,
        "args": ["exec mpirun /home/mpiuser/pi"],
        "resourcesPerNode": {"requests": {"cpu": cpu, "memory": "8Gi"}},
    }
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": namespace}
    return {
        "apiVersion": TRAINER,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace, "labels": {QUEUE: queue or namespace}},
        "spec": {"runtimeRef": reference, "trainer": trainer},
    }


def _job(command: Object) -> Object:
    """Return the Job part of a replicated job with one container."""
    container = {
        "name": "node",
        "image": "registry.example.com/acme/openmpi:5.0",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        **command,
    }
    pod = {"restartPolicy": "Never", "securityContext": {"fsGroup": 1000}, "containers": [container]}
    return {"backoffLimit": 0, "template": {"spec": pod}}
