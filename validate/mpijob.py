"""What the MPI operator refuses in an MPIJob, and in the objects that it would create for it.

The API server accepts the object. The operator reports the problem in an event of type ValidationError,
creates nothing, and does not look again until the object changes.

Source: mpi-operator v0.7.0 to v0.8.2, pkg/apis/kubeflow/validation/validation.go (the same in all of them)
after the defaults of v2beta1/default.go, pkg/controller/mpi_job_controller.go, and the validation of
Kubernetes for the pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.rules.backends import MPIJOB_REFUSED
from gangplan.validate.apiserver import pods
from gangplan.validate.apiserver.forms import FoundProblems, is_dns_1035_label, is_subdomain, report_invalid
from gangplan.validate.problems import Problem
from gangplan.validate.replicas import MPI_LAUNCHER, MPI_WORKER, REPLICAS_PATH, Replicas, list_mpijob_replicas

POLICY: FieldPath = ("spec", "runPolicy")
CLEANING = ("All", "None", "Running")
RESTARTS = ("Never", "OnFailure")
MANAGERS = ("kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue")
# Volumes that the operator adds (setupSSHOnPod, newLauncherPodTemplate), and objects that only it may have
# created: suffix of the name, by kind.
KEYS, CONFIG = "ssh-auth", "mpi-job-config"
VOLUMES = {"launcher": (KEYS, CONFIG), "worker": (KEYS,)}
MADE = {"ConfigMap": "-config", "Secret": "-ssh", "Service": "", "Job": "-launcher"}
QUEUE = "kueue.x-k8s.io/queue-name"


def check_mpi_job(body: Body, others: Sequence[Body]) -> FoundProblems:
    """Check an MPIJob; `others` are the other good objects of the run."""
    spec = body["spec"]
    roles = {one.role: one for one in list_mpijob_replicas(body)}
    queue = (body["metadata"].get("labels") or {}).get(QUEUE)
    if queue is not None and not is_subdomain(queue):
        yield report_invalid(("metadata", "labels", QUEUE), f"'{queue}' cannot be the name of a queue")
    yield from _check_mpijob_host_names(body, roles.get("worker"))
    yield from _check_mpijob_slots_and_launcher_policy(spec)
    yield from _check_mpijob_run_policy(spec.get("runPolicy") or {})
    if "launcher" not in roles:
        yield _report_refused_mpijob(
            (*REPLICAS_PATH, MPI_LAUNCHER), "there is no launcher", f"Write mpiReplicaSpecs.{MPI_LAUNCHER}."
        )
    for name in spec["mpiReplicaSpecs"]:
        if name not in (MPI_LAUNCHER, MPI_WORKER):
            message = f"'{name}' is neither {MPI_LAUNCHER} nor {MPI_WORKER}: the operator makes no pods of it"
            yield _report_refused_mpijob((*REPLICAS_PATH, name), message, "Remove it.")
    for one in roles.values():
        yield from _check_mpijob_replica_spec(one)
    yield from _check_names_needed_by_mpi_operator(body, others)


def _report_refused_mpijob(at: FieldPath, message: str, help: str = "") -> Problem:
    return Problem(at, message, help, MPIJOB_REFUSED)


def _check_mpijob_host_names(body: Body, worker: Replicas | None) -> FoundProblems:
    """Check that the host names of the last worker and of the launcher are DNS-1035 labels."""
    name = body["metadata"]["name"]
    last = max((worker.stated or 0) if worker else 0, 1) - 1
    for host in (f"{name}-worker-{last}", f"{name}-launcher"):
        if not is_dns_1035_label(host):
            message = f"a pod would be called '{host}', which is not a DNS label of at most 63 characters"
            yield _report_refused_mpijob(("metadata", "name"), message, "Shorten the job's name.")
            return


def _check_mpijob_slots_and_launcher_policy(spec: Body) -> FoundProblems:
    if spec.get("slotsPerWorker", 1) < 0:
        yield _report_refused_mpijob(("spec", "slotsPerWorker"), "the number of slots must not be negative")
    policy = spec.get("launcherCreationPolicy", "AtStartup")
    if policy not in ("AtStartup", "WaitForWorkersReady"):
        message = (
            f"'{policy}' is neither AtStartup nor WaitForWorkersReady; the operator takes it for the second"
        )
        yield _report_refused_mpijob(("spec", "launcherCreationPolicy"), message)


def _check_mpijob_run_policy(policy: Body) -> FoundProblems:
    clean = policy.get("cleanPodPolicy", "None")
    if clean not in CLEANING:
        message = f"'{clean}' is not a cleanPodPolicy: {', '.join(CLEANING)}"
        yield _report_refused_mpijob((*POLICY, "cleanPodPolicy"), message)
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        if policy.get(name, 0) < 0:
            yield _report_refused_mpijob((*POLICY, name), f"{name} must not be negative")
    manager = policy.get("managedBy")
    if manager is not None and manager not in MANAGERS:
        message = f"'{manager}' is not a manager of MPIJobs: {' or '.join(MANAGERS)}"
        yield _report_refused_mpijob((*POLICY, "managedBy"), message, "Remove managedBy.")


def _check_mpijob_replica_spec(one: Replicas) -> FoundProblems:
    """Check number, restart policy and pods of a role."""
    if one.role == "launcher" and one.stated not in (None, 1):
        yield _report_refused_mpijob(
            (*one.path, "replicas"), f"a run has one launcher, not {one.stated}", "Write replicas: 1."
        )
    if one.role == "worker" and (one.stated is None or one.stated <= 0):
        help = "Write how many, or leave Worker out."
        yield _report_refused_mpijob((*one.path, "replicas"), "Worker needs at least 1 replica", help)
    restart = one.spec.get("restartPolicy", "Never")
    if restart not in RESTARTS:
        message = f"'{restart}' is not a restartPolicy of these pods: {' or '.join(RESTARTS)}"
        yield _report_refused_mpijob((*one.path, "restartPolicy"), message)
    spec = one.template.get("spec") or {}
    if not spec.get("containers"):
        at: FieldPath = (*one.at, "spec", "containers")
        yield _report_refused_mpijob(
            at, "at least one container is expected", "Write one that runs the program."
        )
        return
    yield from _check_mpijob_replica_pods(one, spec)


def _check_mpijob_replica_pods(one: Replicas, spec: Body) -> FoundProblems:
    """Check the pods as the API server does once they are created.

    The operator gives them the restartPolicy of their role (MPI operator v0.8.2, setRestartPolicy).
    """
    at: FieldPath = (*one.at, "spec")
    restart = one.spec.get("restartPolicy", "Never")
    created = {**spec, "restartPolicy": "Never" if restart == "ExitCode" else restart}
    yield from pods.check_pod_spec(at, created, VOLUMES[one.role])
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume["name"] in VOLUMES[one.role]:
            message = (
                f"the operator adds a volume '{volume['name']}' of its own, and volume names must differ"
            )
            yield report_invalid((*at, "volumes", index, "name"), message, "Choose another name.")


def _check_names_needed_by_mpi_operator(body: Body, others: Sequence[Body]) -> FoundProblems:
    """Check that no object has a name that the operator needs.

    It uses only objects that it created (ErrResourceExists).
    """
    metadata: dict[str, Any] = body["metadata"]
    for other in others:
        suffix = MADE.get(other["kind"])
        if suffix is None or other["metadata"].get("namespace") != metadata.get("namespace"):
            continue
        if other["metadata"]["name"] == f"{metadata['name']}{suffix}":
            message = (
                f"the operator needs the name of {other['kind']} {other['metadata']['name']} for its own"
            )
            yield _report_refused_mpijob(
                ("metadata", "name"), message, f"Give the {other['kind']} another name."
            )
