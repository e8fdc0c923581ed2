"""The pod sets of a run: what Kueue derives from a TrainJob and its runtime, an MPIJob, a JobSet or a Job.

Sources: Kubeflow Trainer v2.2.1 as Kueue v0.19.2 vendors it (pkg/runtime/core/trainingruntime.go,
plugins/mpi, plugins/plainml, plugins/jobset/builder.go), Kueue
pkg/controller/jobs/{trainjob,mpijob,jobset,job}. Kueue counts with its own copy of Trainer, whatever version
runs on the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.validate.apiserver.forms import Body
from gangplan.validate.kueue.merge import merged
from gangplan.validate.kueue.model import NO_WORKLOAD, NeverError, PodSet
from gangplan.validate.world import World

QUEUED = ("TrainJob", "MPIJob", "JobSet", "Job")
# Where the number of workers stands, by kind.
COUNTS: dict[str, tuple[str | int, ...]] = {
    "TrainJob": ("spec", "trainer", "numNodes"),
    "MPIJob": ("spec", "mpiReplicaSpecs", "Worker", "replicas"),
}
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
INITIALIZERS = ("dataset-initializer", "model-initializer")
NODE = "node"  # the replicated job and the container that the trainer's settings go to


def job_of(bodies: Sequence[Body]) -> tuple[int, Body] | None:
    """The object that Kueue queues, and its index."""
    return next(((at, body) for at, body in enumerate(bodies) if body["kind"] in QUEUED), None)


def pod_sets(bodies: Sequence[Body], world: World) -> list[PodSet]:
    """The pod sets of the run among `bodies`, in the order of Kueue's Workload.

    Raises `NeverError` where the runtime does not exist (then the TrainJob itself is refused).
    """
    found = job_of(bodies)
    if found is None:
        return []
    index, body = found
    if body["kind"] == "Job":
        spec = body["spec"]
        return [PodSet("main", _pods(spec), spec["template"], index)]
    if body["kind"] == "MPIJob":
        from gangplan.validate.replicas import replicas_of  # few runs are

        return [PodSet(one.role, one.queued, one.template, index) for one in replicas_of(body)]
    if body["kind"] == "JobSet":
        return [_pod_set(job, job.get("replicas", 1), index) for job in body["spec"]["replicatedJobs"]]
    return _of_train_job(body, bodies, world)


def _pods(spec: Body) -> int:
    """Pods of one Job: at most its completions."""
    parallelism = _number(spec.get("parallelism"), 1)
    return min(parallelism, _number(spec.get("completions"), parallelism))


def _number(value: Any, default: int) -> int:
    return default if value is None else int(value)


def _pod_set(job: Body, replicas: int, index: int) -> PodSet:
    spec = job["template"]["spec"]
    return PodSet(job["name"].lower(), replicas * _pods(spec), spec["template"], index)


def _of_train_job(job: Body, bodies: Sequence[Body], world: World) -> list[PodSet]:
    index, runtime = _runtime(job, bodies, world)
    policy = runtime["spec"].get("mlPolicy")
    trainer = job["spec"].get("trainer") or {}
    found = []
    for source in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        template = _patched(job["spec"], source["name"], source["template"])
        ancestor = ((template.get("metadata") or {}).get("labels") or {}).get(ANCESTOR, "")
        spec = template["spec"]
        count = _count(source["name"], ancestor, spec, policy, trainer)
        fixed = ancestor == "trainer" or ancestor in INITIALIZERS
        pods = spec["template"]
        if ancestor == "trainer" or (source["name"] == NODE and _launcher_runs(policy)):
            pods = _with_resources(pods, trainer.get("resourcesPerNode") or {})
        replicas = 1 if fixed else source.get("replicas", 1)
        found.append(PodSet(source["name"].lower(), replicas * count, pods, index))
    return found


def _runtime(job: Body, bodies: Sequence[Body], world: World) -> tuple[int, Body]:
    reference = job["spec"]["runtimeRef"]
    kind, name = reference.get("kind") or "ClusterTrainingRuntime", reference["name"]
    namespace = job["metadata"].get("namespace") if kind == "TrainingRuntime" else None
    for at, body in enumerate(bodies):
        metadata = body["metadata"]
        if body["kind"] == kind and metadata["name"] == name and metadata.get("namespace") == namespace:
            return at, body
    found = world.at(kind, name, namespace)
    if found is not None:
        return 0, found
    raise NeverError(NO_WORKLOAD, f"runtime '{name}' not found", kind)


def _launcher_runs(policy: Body | None) -> bool:
    return bool(((policy or {}).get("mpi") or {}).get("runLauncherAsNode"))


def _count(name: str, ancestor: str, spec: Body, policy: Body | None, trainer: Body) -> int:
    """Pods of one replicated job: parallelism of the runtime, or the nodes that its policy gives it."""
    count = _number(spec.get("parallelism"), 1)
    if ancestor == "trainer" and policy is not None:
        count = _number(policy.get("numNodes"), 1)
    nodes = trainer.get("numNodes")
    if nodes is None:
        return count
    if policy is not None and policy.get("mpi") is not None:
        if name == NODE:
            return max(int(nodes) - 1, 1) if _launcher_runs(policy) else int(nodes)
        return count
    return int(nodes) if ancestor == "trainer" else count


def _with_resources(pods: Body, resources: Body) -> Body:
    """The trainer's resources replace those of the container `node`, each side where it is given."""
    if not (resources.get("limits") or resources.get("requests")):
        return pods
    containers = [
        {**container, "resources": dict(resources)} if container["name"] == NODE else container
        for container in pods["spec"]["containers"]
    ]
    return {**pods, "spec": {**pods["spec"], "containers": containers}}


def _patched(spec: Body, name: str, template: Body) -> Body:
    """The job template with the TrainJob's patches: runtimePatches (2.2) or podTemplateOverrides (2.1)."""
    for patch in spec.get("runtimePatches") or ():
        inner = ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("spec") or {}
        for job in inner.get("replicatedJobs") or ():
            if job["name"] == name and job.get("template"):
                template = merged(template, job["template"])
    for override in spec.get("podTemplateOverrides") or ():
        if name in [target["name"] for target in override.get("targetJobs") or ()]:
            change = {key: override[key] for key in ("metadata", "spec") if override.get(key)}
            template = merged(template, {"spec": {"template": change}})
    return template


def with_replicas(job: Body, workers: int) -> Body:
    """An MPIJob with another number of workers, the launcher counted where it is one of them."""
    specs = job["spec"]["mpiReplicaSpecs"]
    if not specs.get("Worker"):
        return job
    pods = max(workers - bool(job["spec"].get("runLauncherAsWorker")), 1)
    changed = {**specs, "Worker": {**specs["Worker"], "replicas": pods}}
    return {**job, "spec": {**job["spec"], "mpiReplicaSpecs": changed}}
