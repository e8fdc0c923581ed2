"""The backends of a run, and a table of what differs between TrainJobs and MPIJobs.

All code that depends on the backend reads this table (docs/decisions/: backends). Fields of MPIJobs:
mpi-operator v0.7.0 to v0.8.2 (pkg/apis/kubeflow/v2beta1, pkg/controller/mpi_job_controller.go); of TrainJobs:
Trainer v2.1 to v2.3 with JobSet v0.10 to v0.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from gangplan.records import dataclass

BackendName = Literal["trainjob", "mpijob"]

# The runtimes that a TrainJob may refer to: one in its namespace, as gangplan renders it, or one of the
# cluster.
RUNTIME_KIND, SHARED_RUNTIME_KIND = "TrainingRuntime", "ClusterTrainingRuntime"
RUNTIME_KINDS = (RUNTIME_KIND, SHARED_RUNTIME_KIND)
# The label of all runs that a schedule started. The schedule uses it to find those that are not over.
SCHEDULE_LABEL = "gangplan.dev/schedule"


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of object from which a controller creates the pods of a run.

    `stated` is the key in `versions` of a cluster file, `controller` the controller's name in messages. Pods
    carry `run_label` with the run's name and `role_label` with the value that `roles` has for launcher and
    worker. `suspended` is the path of the spec field that suspends a run, `ends` the conditions of success
    and failure, `beside` the suffix that makes the longest pod name of each role. `holder` is the kind of the
    object that contains the pod templates, `index_label` the label that numbers the pods of a role, `workers`
    the path of their number in an object of `kind`, and `manager` the value of `managedBy` where the
    backend's own controller creates the pods.

    `by_jobset`: a JobSet creates its Jobs, so the launcher waits for the workers, all of them are retried
    together, and only Jobs have deadlines if the controller supports none. `sets_environment`: the controller
    passes the workers' host names to the image's MPI, and hides the GPUs from a launcher without ranks.
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
        """The kind with its article: a TrainJob, an MPIJob."""
        return f"{'an' if self.kind[0] in 'AEIMO' else 'a'} {self.kind}"

    @property
    def group(self) -> str:
        """The API group: trainer.kubeflow.org."""
        return self.api_version.partition("/")[0]

    @property
    def resource(self) -> str:
        """The name in kubectl and ResourceQuotas: trainjobs.trainer.kubeflow.org."""
        return f"{self.plural}.{self.group}"

    def role(self, name: str) -> str:
        """Return the value of `role_label` for `launcher` or `worker`; other roles keep their names."""
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
    RUNTIME_KIND,
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
    # Host names. The launcher's is also the name of its Job (newLauncherJob, newWorker).
    (("launcher", "-launcher"), ("worker", "-worker-{last}")),
    "MPIJob",
    "training.kubeflow.org/replica-index",
    ("spec", "mpiReplicaSpecs", "Worker", "replicas"),
    "kubeflow.org/mpi-operator",
    by_jobset=False,
    sets_environment=True,
)
# A TrainJob that a schedule starts. Its pods are recognised by their runtime, which exists before the run
# does.
DATED_TRAINJOB = replace(TRAINJOB, run_label="gangplan.dev/run")
# Labels that Trainer reads: which part of a run a job is, and which framework its SDK sees in a runtime.
ANCESTOR_LABEL, RUNTIME_FRAMEWORK_LABEL = (
    f"{TRAINJOB.group}/trainjob-ancestor-step",
    f"{TRAINJOB.group}/framework",
)
BACKENDS: Mapping[str, Backend] = {one.name: one for one in (TRAINJOB, MPIJOB)}
BACKEND_BY_KIND: Mapping[str, Backend] = {one.kind: one for one in BACKENDS.values()}
# By the kind of the object that contains the pod templates.
BACKEND_BY_HOLDER: Mapping[str, Backend] = {one.holder: one for one in BACKENDS.values()}


def backend_of(bodies: Iterable[Mapping[str, Any]]) -> Backend | None:
    """Return the backend of a run from its objects; None if none of them is a run."""
    return next((BACKEND_BY_KIND[body["kind"]] for body in bodies if body["kind"] in BACKEND_BY_KIND), None)


def role_of(name: str) -> str:
    """Return the role (launcher or worker) of pods from a controller's name for it; empty for other pods."""
    return next((role for made in BACKENDS.values() for role, own in made.roles if own == name), "")


def title_of(name: str) -> str:
    """Return what messages call the pods of that name: launcher, workers, pods of 'tokens'."""
    return {"launcher": "launcher", "worker": "workers"}.get(role_of(name), f"pods of '{name}'")
