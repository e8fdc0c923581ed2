"""What the controllers of a job's kind make of it: how many pods, and what these say about role and place."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.wild.podfacts import order_of

Object = dict[str, Any]
_ROLE_OF_JOBSET = "jobset.sigs.k8s.io/replicatedjob-name"
_OPERATOR = "training.kubeflow.org/"
# The kinds of the MPI and the training operator: the field with the roles, and the container that trains (the
# first of an MPIJob, whatever its name).
_KINDS = {
    "MPIJob": ("mpiReplicaSpecs", ""),
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "JAXJob": ("jaxReplicaSpecs", "jax"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle"),
}
OPERATED = tuple(_KINDS)


@dataclass(frozen=True)
class Maker:
    """One way to make pods of a job.

    `owner` is the kind that says how many (empty: the job's own), `label` holds the job's name; `role` and
    `place` are read from a pod, and `plain` takes from one what its controller has added.
    """

    owner: str
    label: str
    count: Callable[[Object], int]
    role: Callable[[Object], str]
    place: Callable[[Object], tuple[Any, ...]]
    plain: Callable[[Object, Object], Object]


def maker_of(kind: str) -> Maker:
    """Return how pods are made of a job of a kind."""
    return OPERATOR if kind in _KINDS else JOBSET


def _pods_of_jobset(jobset: Object) -> int:
    """Return how many pods a JobSet has at one time."""
    total = 0
    for one in jobset["spec"]["replicatedJobs"]:
        spec = one["template"]["spec"]
        at_once = spec.get("parallelism", 1)
        total += one.get("replicas", 1) * min(at_once, spec.get("completions", at_once))
    return total


def role_in_jobset(pod: Object) -> str:
    """Return the replicated job of a pod."""
    return str(pod["metadata"]["labels"][_ROLE_OF_JOBSET])


JOBSET = Maker(
    "JobSet",
    "jobset.sigs.k8s.io/jobset-name",
    _pods_of_jobset,
    role_in_jobset,
    order_of,
    lambda pod, job: pod,
)


def _roles(job: Object) -> dict[str, Object]:
    """Return the roles of a job of an operator, by name in lower case."""
    field, _ = _KINDS[job["kind"]]
    return {name.lower(): role for name, role in job["spec"][field].items() if role}


def _pods_of_operator(job: Object) -> int:
    """Return how many pods a job has; an MPIJob that does not count its workers has none."""
    usual = {"worker": 0} if job["kind"] == "MPIJob" else {}
    return sum(role.get("replicas", usual.get(name, 1)) for name, role in _roles(job).items())


def _role_in_operator(pod: Object) -> str:
    labels = pod["metadata"]["labels"]
    return str(labels.get(f"{_OPERATOR}replica-type") or labels[f"{_OPERATOR}job-role"])


def _place_in_operator(pod: Object) -> tuple[Any, ...]:
    return 0, int(pod["metadata"]["labels"].get(f"{_OPERATOR}replica-index", 0)), ""


def _without_what_operators_add(pod: Object, job: Object) -> Object:
    """Return a pod without variables, mounts and init containers that the source does not state.

    The container that trains comes first.
    """
    pod = copy.deepcopy(pod)
    _, trains = _KINDS[job["kind"]]
    pod["spec"]["containers"].sort(key=lambda box: box["name"] != (trains or box["name"]))
    stated = _roles(job)[_role_in_operator(pod)]["template"]["spec"]
    for field in ("containers", "initContainers"):
        theirs = {one["name"]: one for one in stated.get(field) or ()}
        pod["spec"][field] = [box for box in pod["spec"].get(field, ()) if box["name"] in theirs]
        for box in pod["spec"][field]:
            own = theirs[box["name"]]
            _keep_stated(box, own, "env", "name")
            _keep_stated(box, own, "volumeMounts", "mountPath", job["spec"].get("sshAuthMountPath"))
    return pod


def _keep_stated(box: Object, own: Mapping[str, Any], field: str, key: str, also: str | None = None) -> None:
    names = {*(one[key] for one in own.get(field) or ()), also}
    box[field] = [one for one in box.get(field, ()) if one[key] in names]


OPERATOR = Maker(
    "",
    f"{_OPERATOR}job-name",
    _pods_of_operator,
    _role_in_operator,
    _place_in_operator,
    _without_what_operators_add,
)
