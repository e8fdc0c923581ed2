"""The pods of an MPIJob, role by role: how many, from which template, and where the template is.

Source: mpi-operator v0.7.0 to v0.8.2, pkg/apis/kubeflow/v2beta1/default.go (defaults: 1 launcher, 0 workers)
and Kueue v0.15.2 to v0.19.2, pkg/controller/jobs/mpijob (launcher first, and 1 for both).
"""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.records import dataclass

REPLICAS_PATH: FieldPath = ("spec", "mpiReplicaSpecs")
MPI_LAUNCHER, MPI_WORKER = "Launcher", "Worker"
# Labels that the operator adds to pods (v2beta1/constants.go).
JOB_NAME_LABEL = "training.kubeflow.org/job-name"
ROLE_LABEL = "training.kubeflow.org/job-role"
INDEX_LABEL = "training.kubeflow.org/replica-index"
OPERATOR_LABEL, OPERATOR_NAME = "training.kubeflow.org/operator-name", "mpi-operator"


@dataclass(frozen=True, slots=True)
class Replicas:
    """The pods of one role.

    `role` is launcher or worker, `stated` their number if the object has one.
    """

    role: str
    stated: int | None
    spec: Body
    path: FieldPath

    @property
    def count(self) -> int:
        """How many pods the operator creates."""
        return self.stated if self.stated is not None else int(self.role == "launcher")

    @property
    def queued(self) -> int:
        """How many pods Kueue counts."""
        return 1 if self.stated is None else self.stated

    @property
    def template(self) -> Body:
        """The pods' template."""
        found: Body = self.spec.get("template") or {}
        return found

    @property
    def at(self) -> FieldPath:
        """The path of the pods' template."""
        return (*self.path, "template")


def list_mpijob_replicas(job: Body) -> list[Replicas]:
    """Return launcher and workers of an MPIJob, if present; the operator ignores entries with other names."""
    specs = job["spec"].get("mpiReplicaSpecs") or {}
    return [
        Replicas(role, specs[name].get("replicas"), specs[name], (*REPLICAS_PATH, name))
        for name, role in ((MPI_LAUNCHER, "launcher"), (MPI_WORKER, "worker"))
        if specs.get(name) is not None
    ]


def runs_ranks(job: Body) -> bool:
    """Return whether the launcher is one of the hosts that run ranks."""
    return bool(job["spec"].get("runLauncherAsWorker"))
