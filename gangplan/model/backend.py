"""What a run is made of on a cluster: a table of what differs between TrainJobs and MPIJobs.

Whatever asks which one it is asks this table (docs/decisions/: backends). Fields of MPIJobs: mpi-operator
v0.7.0 to v0.8.2 (pkg/apis/kubeflow/v2beta1, pkg/controller/mpi_job_controller.go); of TrainJobs: Trainer v2.1
to v2.3 with JobSet v0.10 to v0.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from gangplan.records import dataclass

BackendName = Literal["trainjob", "mpijob"]

# What the pods of a TrainJob come from: a runtime of its namespace, as gangplan renders it, or one of the
# cluster.
RUNTIME, SHARED_RUNTIME = "TrainingRuntime", "ClusterTrainingRuntime"
RUNTIMES = (RUNTIME, SHARED_RUNTIME)
# The label of all runs that a schedule made, by which it finds those that are not over.
SCHEDULED = "gangplan.dev/schedule"


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of object that a controller makes the pods of a run from.

    `stated` is the key in `versions` of a cluster file, `controller` what people call it. Pods carry
    `run_label` with the run's name and `role_label` with what `roles` has for launcher and worker.
    `suspended` is the path of the field in the spec that holds a run back, `ends` the conditions that end it
    well and badly, `beside` what is appended to the run's name for the longest name of each role's pods.
    `holder` is the kind of the object that holds the templates of pods, `index_label` the label that numbers
    the pods of a role, `workers` the path of their number in an object of `kind`, and `manager` what
    `managedBy` says where its own controller makes the pods.

    `by_jobset`: a JobSet makes its Jobs, so that the launcher waits for workers, all are tried again
    together, and only Jobs have deadlines where its controller knows none. `sets_environment`: the controller
    tells the MPI of the image where the workers are, and hides the GPUs from a launcher without ranks.
    """

    name: BackendName
    kind: str
    api_version: str
    plural: str
    stated: str
    controller: str
    run_label: str
    role_label: str
    roles: tuple[tuple[str, str], ...]
    suspended: tuple[str, ...]
    ends: tuple[str, str]
    beside: tuple[tuple[str, str], ...]
    holder: str
    index_label: str
    workers: tuple[str, ...]
    manager: str
    by_jobset: bool
    sets_environment: bool

    @property
    def title(self) -> str:
        """As part of a sentence: a TrainJob, an MPIJob."""
        return f"{'an' if self.kind[0] in 'AEIMO' else 'a'} {self.kind}"

    @property
    def group(self) -> str:
        """The API group: trainer.kubeflow.org."""
        return self.api_version.partition("/")[0]

    @property
    def resource(self) -> str:
        """As kubectl and ResourceQuotas name it: trainjobs.trainer.kubeflow.org."""
        return f"{self.plural}.{self.group}"

    def role(self, name: str) -> str:
        """The value of `role_label` for `launcher` or `worker`; other roles are called what they are."""
        return dict(self.roles).get(name, name)


TRAINJOB = Backend(
    "trainjob",
    "TrainJob",
    "trainer.kubeflow.org/v1alpha1",
    "trainjobs",
    "trainer",
    "Trainer",
    "jobset.sigs.k8s.io/jobset-name",
    "jobset.sigs.k8s.io/replicatedjob-name",
    (("launcher", "launcher"), ("worker", "node")),
    ("suspend",),
    ("Complete", "Failed"),
    # <run>-<replicated job>-<job>-<pod>-<5 random> (JobSet's webhook, v0.10 to v0.12).
    (("launcher", "-launcher-0-0-abcde"), ("worker", "-node-0-{last}-abcde")),
    RUNTIME,
    "batch.kubernetes.io/job-completion-index",
    ("spec", "trainer", "numNodes"),
    "trainer.kubeflow.org/trainjob-controller",
    by_jobset=True,
    sets_environment=False,
)
MPIJOB = Backend(
    "mpijob",
    "MPIJob",
    "kubeflow.org/v2beta1",
    "mpijobs",
    "mpiOperator",
    "the MPI operator",
    "training.kubeflow.org/job-name",
    "training.kubeflow.org/job-role",
    (("launcher", "launcher"), ("worker", "worker")),
    ("runPolicy", "suspend"),
    ("Succeeded", "Failed"),
    # Host names, of which the launcher's is the name of its Job as well (newLauncherJob, newWorker).
    (("launcher", "-launcher"), ("worker", "-worker-{last}")),
    "MPIJob",
    "training.kubeflow.org/replica-index",
    ("spec", "mpiReplicaSpecs", "Worker", "replicas"),
    "kubeflow.org/mpi-operator",
    by_jobset=False,
    sets_environment=True,
)
# A TrainJob that a schedule makes: its pods are known by their runtime, which is there before the run is.
DATED_TRAINJOB = replace(TRAINJOB, run_label="gangplan.dev/run")
# Labels that Trainer reads: which part of a run a job is, and what its SDK tells runtimes apart by.
ANCESTOR, FRAMEWORK = f"{TRAINJOB.group}/trainjob-ancestor-step", f"{TRAINJOB.group}/framework"
BACKENDS: Mapping[str, Backend] = {one.name: one for one in (TRAINJOB, MPIJOB)}
BY_KIND: Mapping[str, Backend] = {one.kind: one for one in BACKENDS.values()}
# By the kind of the object that holds the templates of pods.
BY_HOLDER: Mapping[str, Backend] = {one.holder: one for one in BACKENDS.values()}


def backend_of(bodies: Iterable[Mapping[str, Any]]) -> Backend | None:
    """The backend of a run by its objects; None where none of them is a run."""
    return next((BY_KIND[body["kind"]] for body in bodies if body["kind"] in BY_KIND), None)


def role_of(name: str) -> str:
    """What pods are by the name that a controller has for them: launcher or worker; empty for others."""
    return next((role for made in BACKENDS.values() for role, own in made.roles if own == name), "")


def title_of(name: str) -> str:
    """How people call the pods of that name: launcher, workers, pods of 'tokens'."""
    return {"launcher": "launcher", "worker": "workers"}.get(role_of(name), f"pods of '{name}'")
