"""Objects that controllers create from the objects of a run, one of each kind and role.

They are as the API server first gets them, and policies judge them too. Values that only a cluster knows are
filled with placeholders (uid, the end of a pod's name). Sources: Kubeflow Trainer v2.1 to v2.3
(pkg/runtime/framework/plugins/jobset), JobSet v0.12 (pkg/controllers/jobset_controller.go:
labelAndAnnotateObject, constructHeadlessSvc), Kubernetes v1.34 (pkg/controller/job, cronjob), mpi-operator
v0.8.2 (pkg/controller/mpi_job_controller.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gangplan.findings import FieldPath
from gangplan.model.backend import BACKEND_BY_KIND, MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.replicas import (
    JOB_NAME_LABEL,
    OPERATOR_LABEL,
    OPERATOR_NAME,
    ROLE_LABEL,
    list_mpijob_replicas,
)

TRAINER = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"
JOBSET = "system:serviceaccount:jobset-system:jobset-controller-manager"
MPI = "system:serviceaccount:mpi-operator:mpi-operator"
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
CRON, JOB = (f"system:serviceaccount:kube-system:{name}-controller" for name in ("cronjob", "job"))
NAMES = {
    TRAINER: "Trainer",
    JOBSET: "JobSet",
    MPI: "the MPI operator",
    KUEUE: "Kueue",
    CRON: "Kubernetes",
    JOB: "Kubernetes",
}
UID = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class MadeObject:
    """An object that a controller creates as `user`.

    Its fields come from the body at `index`, below the path `prefix`.
    """

    body: Body
    user: str
    index: int
    prefix: FieldPath
    is_whole: bool = True  # False: only its name and owner are known

    @property
    def maker(self) -> str:
        """The controller's name as people know it."""
        return NAMES[self.user]


def list_objects_made_by_controllers(bodies: Sequence[Body]) -> list[MadeObject]:
    """Return all objects that controllers create from these, each before those created from it in turn."""
    found: list[MadeObject] = []
    for index, body in enumerate(bodies):
        found += _build_objects_made_by_controller(body, bodies, index, ())
        if body["kind"] in BACKEND_BY_KIND:
            found += _list_objects_made_next_to_pods(body, bodies, index)
    return found


def _list_objects_made_next_to_pods(body: Body, bodies: Sequence[Body], index: int) -> Iterator[MadeObject]:
    """Yield objects created for a run in addition to its pods, by name and owner only."""
    name, kind = body["metadata"]["name"], body["kind"]
    maker, config, secret = _SKETCHES[kind](body, bodies)
    for user, version, of, own in (
        (maker, "v1", "ConfigMap", config),
        (maker, "v1", "Secret", secret),
        (KUEUE, "kueue.x-k8s.io/v1beta2", "Workload", f"{kind.lower()}-{name}-aaaaa"),
    ):
        if own:
            yield MadeObject(
                _build_object_made_from_template(version, of, own, body, {}, {}),
                user,
                index,
                (),
                is_whole=False,
            )


def _name_trainjob_side_objects(body: Body, bodies: Sequence[Body]) -> tuple[str, str, str]:
    """Return who creates the objects next to the pods, and the names of a ConfigMap and a Secret."""
    name, reference = body["metadata"]["name"], body["spec"]["runtimeRef"]["name"]
    named = (one.get("spec") or {} for one in bodies if one["metadata"]["name"] == reference)
    if any("mpi" in (spec.get("mlPolicy") or {}) for spec in named):
        return TRAINER, f"{name}-mpi-hostfile", f"{name}-mpi-ssh-auth"
    return TRAINER, f"{name}-runtime-snapshot", ""


def _name_mpijob_side_objects(body: Body, _: Sequence[Body]) -> tuple[str, str, str]:
    name = body["metadata"]["name"]
    return MPI, f"{name}-config", f"{name}-ssh"


_SKETCHES: Mapping[str, Callable[[Body, Sequence[Body]], tuple[str, str, str]]] = {
    TRAINJOB.kind: _name_trainjob_side_objects,
    MPIJOB.kind: _name_mpijob_side_objects,
}


def _build_objects_made_by_controller(
    body: Body, bodies: Sequence[Body], index: int, prefix: FieldPath
) -> Iterator[MadeObject]:
    """Yield what is created from an object whose fields are below `prefix`."""
    make = _MAKERS.get(body["kind"])
    return make(body, bodies, index, prefix) if make else iter(())


def _build_objects_made_from_cronjob(
    body: Body, bodies: Sequence[Body], index: int, prefix: FieldPath
) -> Iterator[MadeObject]:
    name = f"{body['metadata']['name']}-29000000"
    at: FieldPath = (*prefix, "spec", "jobTemplate")
    yield from _build_job_and_pod(body["spec"]["jobTemplate"], name, body, CRON, index, at, {})


def _build_pod_made_from_job(
    body: Body, bodies: Sequence[Body], index: int, prefix: FieldPath
) -> Iterator[MadeObject]:
    name = body["metadata"]["name"]
    labels = {"batch.kubernetes.io/job-name": name, "job-name": name}
    labels |= {"batch.kubernetes.io/controller-uid": UID, "controller-uid": UID}
    labels["batch.kubernetes.io/job-completion-index"] = "0"
    at = (*prefix, "spec", "template")
    made = _build_object_made_from_template(
        "v1", "Pod", f"{name}-0-aaaaa", body, body["spec"].get("template") or {}, labels
    )
    yield MadeObject(made, JOB, index, at)


def _build_objects_made_from_trainjob(
    job: Body, bodies: Sequence[Body], _: int, __: FieldPath
) -> Iterator[MadeObject]:
    """Yield the JobSet of a TrainJob and its objects.

    The JobSet is the template of the runtime, without the TrainJob's own labels.
    """
    name = job["spec"]["runtimeRef"]["name"]
    for index, runtime in enumerate(bodies):
        if runtime["kind"] == RUNTIME_KIND and runtime["metadata"]["name"] == name:
            at: FieldPath = ("spec", "template")
            template = runtime["spec"].get("template") or {}
            made = _build_object_made_from_template(
                "jobset.x-k8s.io/v1alpha2", "JobSet", job["metadata"]["name"], job, template, {}
            )
            yield MadeObject(made, TRAINER, index, at)
            yield from _build_objects_made_from_jobset(made, bodies, index, at)


def _build_objects_made_from_jobset(
    body: Body, bodies: Sequence[Body], index: int, prefix: FieldPath
) -> Iterator[MadeObject]:
    name = body["metadata"]["name"]
    subdomain = (body["spec"].get("network") or {}).get("subdomain") or name
    service: Body = {
        "spec": {
            "clusterIP": "None",
            "selector": {"jobset.sigs.k8s.io/jobset-name": name},
            "publishNotReadyAddresses": True,
        }
    }
    yield MadeObject(
        _build_object_made_from_template("v1", "Service", subdomain, body, service, {}), JOBSET, index, prefix
    )
    for at, job in enumerate(body["spec"].get("replicatedJobs") or ()):
        labels = {
            "jobset.sigs.k8s.io/jobset-name": name,
            "jobset.sigs.k8s.io/jobset-uid": UID,
            "jobset.sigs.k8s.io/replicatedjob-name": job["name"],
            "jobset.sigs.k8s.io/replicatedjob-replicas": str(job.get("replicas", 1)),
            "jobset.sigs.k8s.io/job-index": "0",
            "jobset.sigs.k8s.io/job-key": UID.replace("-", ""),
            "jobset.sigs.k8s.io/restart-attempt": "0",
        }
        path: FieldPath = (*prefix, "spec", "replicatedJobs", at, "template")
        yield from _build_job_and_pod(
            job["template"], f"{name}-{job['name']}-0", body, JOBSET, index, path, labels
        )


def _build_job_and_pod(
    template: Body,
    name: str,
    owner: Body,
    user: str,
    index: int,
    prefix: FieldPath,
    labels: Mapping[str, str],
) -> Iterator[MadeObject]:
    """Yield a Job and its pod; `labels` are added to both."""
    spec = template.get("spec") or {}
    pod = dict(spec.get("template") or {})
    metadata = pod.get("metadata") or {}
    pod["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}
    made = _build_object_made_from_template(
        "batch/v1", "Job", name, owner, {**template, "spec": {**spec, "template": pod}}, labels
    )
    yield MadeObject(made, user, index, prefix)
    yield from _build_pod_made_from_job(made, (), index, prefix)


def _build_objects_made_from_mpijob(
    body: Body, bodies: Sequence[Body], index: int, __: FieldPath
) -> Iterator[MadeObject]:
    """Yield what the operator creates: a Service, a pod for the workers and a Job for the launcher."""
    name = body["metadata"]["name"]
    shared = {OPERATOR_LABEL: OPERATOR_NAME, JOB_NAME_LABEL: name}
    service: Body = {"spec": {"clusterIP": "None", "selector": shared}}
    yield MadeObject(
        _build_object_made_from_template("v1", "Service", name, body, service, {}), MPI, index, ()
    )
    for one in list_mpijob_replicas(body):
        labels = {**shared, ROLE_LABEL: one.role}
        if one.role == "launcher":
            template = {"spec": {"template": one.template}}
            for made in _build_job_and_pod(template, f"{name}-launcher", body, MPI, index, (), labels):
                yield made if made.body["kind"] == "Job" else MadeObject(made.body, made.user, index, one.at)
        elif one.count:
            pod = _build_object_made_from_template(
                "v1", "Pod", f"{name}-worker-0", body, one.template, labels
            )
            yield MadeObject(pod, MPI, index, one.at)


Maker = Callable[[Body, Sequence[Body], int, FieldPath], Iterator[MadeObject]]
_MAKERS: Mapping[str, Maker] = {
    TRAINJOB.kind: _build_objects_made_from_trainjob,
    MPIJOB.kind: _build_objects_made_from_mpijob,
    "JobSet": _build_objects_made_from_jobset,
    "CronJob": _build_objects_made_from_cronjob,
    "Job": _build_pod_made_from_job,
}


def _build_object_made_from_template(
    version: str, kind: str, name: str, owner: Body, template: Body, labels: Mapping[str, str]
) -> Body:
    """Return an object made from a template, with its owner, and with additional `labels`."""
    given = template.get("metadata") or {}
    metadata: Body = {"name": name, "namespace": owner["metadata"].get("namespace", "default")}
    metadata["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    if all_labels := {**(given.get("labels") or {}), **labels}:
        metadata["labels"] = all_labels
    if notes := given.get("annotations"):
        metadata["annotations"] = dict(notes)
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": template.get("spec") or {}}
