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

from gangplan.rules.backends import MPIJOB_REFUSED
from gangplan.validate.apiserver import pods
from gangplan.validate.apiserver.forms import Body, Found, Path, is_label_1035, is_subdomain, problem
from gangplan.validate.problems import Problem
from gangplan.validate.replicas import LAUNCHER, REPLICAS, WORKER, Replicas, replicas_of

POLICY: Path = ("spec", "runPolicy")
CLEANING = ("All", "None", "Running")
RESTARTS = ("Never", "OnFailure")
MANAGERS = ("kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue")
# Volumes that the operator adds (setupSSHOnPod, newLauncherPodTemplate), and objects that only it may have
# created: suffix of the name, by kind.
KEYS, CONFIG = "ssh-auth", "mpi-job-config"
VOLUMES = {"launcher": (KEYS, CONFIG), "worker": (KEYS,)}
MADE = {"ConfigMap": "-config", "Secret": "-ssh", "Service": "", "Job": "-launcher"}
QUEUE = "kueue.x-k8s.io/queue-name"


def mpi_job(body: Body, others: Sequence[Body]) -> Found:
    """Check an MPIJob; `others` are the other good objects of the run."""
    spec = body["spec"]
    roles = {one.role: one for one in replicas_of(body)}
    queue = (body["metadata"].get("labels") or {}).get(QUEUE)
    if queue is not None and not is_subdomain(queue):
        yield problem(("metadata", "labels", QUEUE), f"'{queue}' cannot be the name of a queue")
    yield from _name(body, roles.get("worker"))
    yield from _numbers(spec)
    yield from _run_policy(spec.get("runPolicy") or {})
    if "launcher" not in roles:
        yield _refused((*REPLICAS, LAUNCHER), "there is no launcher", f"Write mpiReplicaSpecs.{LAUNCHER}.")
    for name in spec["mpiReplicaSpecs"]:
        if name not in (LAUNCHER, WORKER):
            message = f"'{name}' is neither {LAUNCHER} nor {WORKER}: the operator makes no pods of it"
            yield _refused((*REPLICAS, name), message, "Remove it.")
    for one in roles.values():
        yield from _role(one)
    yield from _taken(body, others)


def _refused(at: Path, message: str, help: str = "") -> Problem:
    return Problem(at, message, help, MPIJOB_REFUSED)


def _name(body: Body, worker: Replicas | None) -> Found:
    """Check that the host names of the last worker and of the launcher are DNS-1035 labels."""
    name = body["metadata"]["name"]
    last = max((worker.stated or 0) if worker else 0, 1) - 1
    for host in (f"{name}-worker-{last}", f"{name}-launcher"):
        if not is_label_1035(host):
            message = f"a pod would be called '{host}', which is no DNS label of at most 63 characters"
            yield _refused(("metadata", "name"), message, "Shorten the job's name.")
            return


def _numbers(spec: Body) -> Found:
    if spec.get("slotsPerWorker", 1) < 0:
        yield _refused(("spec", "slotsPerWorker"), "a number of slots is not negative")
    policy = spec.get("launcherCreationPolicy", "AtStartup")
    if policy not in ("AtStartup", "WaitForWorkersReady"):
        message = (
            f"'{policy}' is neither AtStartup nor WaitForWorkersReady; the operator takes it for the second"
        )
        yield _refused(("spec", "launcherCreationPolicy"), message)


def _run_policy(policy: Body) -> Found:
    clean = policy.get("cleanPodPolicy", "None")
    if clean not in CLEANING:
        message = f"'{clean}' is no cleanPodPolicy: {', '.join(CLEANING)}"
        yield _refused((*POLICY, "cleanPodPolicy"), message)
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        if policy.get(name, 0) < 0:
            yield _refused((*POLICY, name), f"{name} is not negative")
    manager = policy.get("managedBy")
    if manager is not None and manager not in MANAGERS:
        message = f"'{manager}' is no manager of MPIJobs: {' or '.join(MANAGERS)}"
        yield _refused((*POLICY, "managedBy"), message, "Remove managedBy.")


def _role(one: Replicas) -> Found:
    """Check number, restart policy and pods of a role."""
    if one.role == "launcher" and one.stated not in (None, 1):
        yield _refused(
            (*one.path, "replicas"), f"a run has one launcher, not {one.stated}", "Write replicas: 1."
        )
    if one.role == "worker" and (one.stated is None or one.stated <= 0):
        help = "Write how many, or leave Worker out."
        yield _refused((*one.path, "replicas"), "at least 1 worker is expected where there are any", help)
    restart = one.spec.get("restartPolicy", "Never")
    if restart not in RESTARTS:
        message = f"'{restart}' is no restartPolicy of these pods: {' or '.join(RESTARTS)}"
        yield _refused((*one.path, "restartPolicy"), message)
    spec = one.template.get("spec") or {}
    if not spec.get("containers"):
        at: Path = (*one.at, "spec", "containers")
        yield _refused(at, "at least one container is expected", "Write one that runs the program.")
        return
    yield from _pod(one, spec)


def _pod(one: Replicas, spec: Body) -> Found:
    """Check the pods as the API server does once they are created."""
    at: Path = (*one.at, "spec")
    yield from pods.pod(at, spec, VOLUMES[one.role])
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume["name"] in VOLUMES[one.role]:
            message = (
                f"the operator adds a volume '{volume['name']}' of its own, and no pod has two of one name"
            )
            yield problem((*at, "volumes", index, "name"), message, "Call it otherwise.")


def _taken(body: Body, others: Sequence[Body]) -> Found:
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
            yield _refused(("metadata", "name"), message, f"Give the {other['kind']} another name.")
