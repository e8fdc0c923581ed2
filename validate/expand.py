"""The pods that controllers create from the built objects of a run: how many, and from which templates.

All code that needs the pods of a run uses this module. Sources: Kubeflow Trainer v2.1 to v2.3
(pkg/runtime/core/trainingruntime.go, plugins/mpi, plugins/plainml, plugins/torch, plugins/jobset/builder.go),
whose v2.2.1 Kueue v0.19.2 vendors to count with; JobSet v0.10 to v0.12; mpi-operator v0.7.0 to v0.8.2; Kueue
pkg/controller/jobs/{trainjob,mpijob,jobset,job}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.backend import (
    ANCESTOR_LABEL,
    MPIJOB,
    RUNTIME_KIND,
    SHARED_RUNTIME_KIND,
    TRAINJOB,
    title_of,
)
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.jobset import (
    POD_TEMPLATE_PATH,
    REPLICATED_JOBS_PATH,
    WORKER,
    list_replicated_jobs,
    list_train_job_runtime_patches,
)
from gangplan.validate.world import World

# Lists that a patch of a TrainJob merges by key; all others are replaced, among them tolerations (core/v1 of
# Kubernetes, `patchMergeKey` in types.go; apimachinery v0.34, pkg/util/strategicpatch).
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
}
# What a TrainJob sets of the container `node` besides resources, which proofs of requests merge.
_TRAINER_FIELDS = ("image", "env")
_INITIALIZERS = ("dataset-initializer", "model-initializer")


@dataclass(frozen=True, slots=True)
class ExpandedPods:
    """The pods of one replicated job of a JobSet, of one role of an MPIJob, or of a Job.

    Each of `replicas` Jobs creates `each` pods; Kueue counts `queued` of them in all. `template` is the pod
    template with all changes of the TrainJob; it is at `template_at` of object `index`, in `entry`, which is
    at `at`. Pods of a later `stage` start when those of the earlier ones run; those of a later `phase`, when
    they have ended.
    """

    name: str
    replicas: int
    each: int
    queued: int
    template: Body
    entry: Body
    index: int
    at: FieldPath
    template_at: FieldPath
    stage: int = 0
    phase: int = 0

    @property
    def count(self) -> int:
        """How many pods the controllers create."""
        return self.replicas * self.each

    @property
    def title(self) -> str:
        """What users call these pods."""
        return title_of(self.name)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the template."""
        return (self.template.get("metadata") or {}).get("labels") or {}


class MissingRuntimeError(Exception):
    """The runtime that a TrainJob names does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"runtime '{name}' not found")
        self.kind = kind


def job_of(bodies: Sequence[Body]) -> tuple[int, Body] | None:
    """Return the object that creates the pods, with its index."""
    return next(((at, body) for at, body in enumerate(bodies) if body["kind"] in EXPANDERS), None)


def expand_run_into_pods(world: World, bodies: Sequence[Body]) -> list[ExpandedPods]:
    """Return the pods of the run among `bodies`, in the order of its objects; [] without a job.

    Raises MissingRuntimeError (Trainer's webhook then refuses the TrainJob itself).
    """
    found = job_of(bodies)
    if found is None:
        return []
    at, body = found
    index, holder = find_holder_of_pod_templates(world, bodies, at)
    return EXPANDERS[body["kind"]](body, holder, index)


def find_holder_of_pod_templates(world: World, bodies: Sequence[Body], at: int) -> tuple[int, Body]:
    """Return the object that holds the pod templates of the one at index `at`, with its own index.

    Usually it is the same object. Raises MissingRuntimeError.
    """
    body = bodies[at]
    return find_runtime_of_train_job(body, bodies, world) if body["kind"] == TRAINJOB.kind else (at, body)


def find_runtime_of_train_job(job: Body, bodies: Sequence[Body], world: World) -> tuple[int, Body]:
    """Return the runtime of a TrainJob, with its index (0 if it is the cluster's).

    Raises MissingRuntimeError.
    """
    reference = job["spec"]["runtimeRef"]
    kind, name = reference.get("kind") or SHARED_RUNTIME_KIND, reference["name"]
    namespace = job["metadata"].get("namespace") if kind == RUNTIME_KIND else None
    for at, body in enumerate(bodies):
        metadata = body["metadata"]
        if body["kind"] == kind and metadata["name"] == name and metadata.get("namespace") == namespace:
            return at, body
    found = world.at(kind, name, namespace)
    if found is None:
        raise MissingRuntimeError(kind, name)
    return 0, found


def expand_train_job_into_pods(job: Body, runtime: Body, index: int = 0) -> list[ExpandedPods]:
    """Return the pods of a TrainJob with its runtime, which is object `index`."""
    policy = runtime["spec"].get("mlPolicy")
    trainer = job["spec"].get("trainer") or {}
    found = []
    for number, entry in enumerate(list_replicated_jobs(runtime)):
        name = entry["name"]
        template = _expand_train_job_patches(job["spec"], name, entry["template"])
        step = ((template.get("metadata") or {}).get("labels") or {}).get(ANCESTOR_LABEL, "")
        pods = template["spec"]["template"]
        if step == "trainer" or (name == WORKER and _runs_launcher_as_node(policy)):
            pods = _apply_trainer_resources_to_pods(pods, trainer.get("resourcesPerNode") or {})
        replicas = (
            1
            if step == "trainer" or step in _INITIALIZERS
            else _parse_count_or_default(entry.get("replicas"), 1)
        )
        each = _count_expanded_train_job_pods(name, step, template["spec"], policy, trainer)
        at: FieldPath = (*REPLICATED_JOBS_PATH, number)
        found.append(
            ExpandedPods(
                name, replicas, each, replicas * each, pods, entry, index, at, (*at, *POD_TEMPLATE_PATH)
            )
        )
    return _assign_stages_to_expanded_pods(found)


def merge_train_jobs_into_runtimes(bodies: Sequence[Body]) -> Sequence[Body]:
    """Return objects with each runtime as its TrainJob changes it, each at its index: what the pods will be.

    If no TrainJob changes pods, these are the same objects; so they are where its patches have a form that
    the schema refuses, as between two patches of an overlay.
    """
    try:
        jobs = [one for one in bodies if one["kind"] == TRAINJOB.kind and _changes_pods(one["spec"])]
        return [_merge_train_jobs_into_runtime(jobs, body) for body in bodies] if jobs else bodies
    except (AttributeError, KeyError, TypeError):
        return bodies


def _changes_pods(spec: Body) -> bool:
    trainer = spec.get("trainer") or {}
    return any(spec.get(one) for one in ("runtimePatches", "podTemplateOverrides")) or any(
        trainer.get(one) for one in _TRAINER_FIELDS
    )


def _merge_train_jobs_into_runtime(jobs: Iterable[Body], body: Body) -> Body:
    key = body["kind"], body["metadata"]["name"], body["metadata"].get("namespace")
    for job in jobs:
        if key == (RUNTIME_KIND, job["spec"]["runtimeRef"]["name"], job["metadata"].get("namespace")):
            body = _merge_train_job_into_runtime(job["spec"], body)
    return body


def _merge_train_job_into_runtime(spec: Body, runtime: Body) -> Body:
    trainer = spec.get("trainer") or {}
    own = {key: trainer[key] for key in _TRAINER_FIELDS if trainer.get(key)}
    change = {"spec": {"template": {"spec": {"containers": [{"name": WORKER, **own}]}}}}
    entries = []
    for entry in list_replicated_jobs(runtime):
        template = _expand_train_job_patches(spec, entry["name"], entry["template"])
        names = [one["name"] for one in template["spec"]["template"]["spec"]["containers"]]
        if own and WORKER in names:
            template = _merge_runtime_patch(template, change)
        entries.append({**entry, "template": template})
    inner: Any = entries
    for step in reversed(REPLICATED_JOBS_PATH):
        inner = {str(step): inner}
    merged: Body = _merge_runtime_patch(runtime, inner)
    return merged


def _expand_job_pods(job: Body, _: Body, index: int) -> list[ExpandedPods]:
    spec, at = job["spec"], ("spec", "template")
    pods = _compute_job_parallelism(spec)
    return [ExpandedPods("main", 1, pods, pods, spec["template"], job, index, (), at)]


def _expand_jobset_pods(body: Body, _: Body, index: int) -> list[ExpandedPods]:
    return _assign_stages_to_expanded_pods(_expand_replicated_jobs_into_pods(body, index))


def _expand_replicated_jobs_into_pods(body: Body, index: int) -> Iterator[ExpandedPods]:
    for number, entry in enumerate(list_replicated_jobs(body)):
        spec, replicas = entry["template"]["spec"], entry.get("replicas", 1)
        each, at = _compute_job_parallelism(spec), ("spec", REPLICATED_JOBS_PATH[-1], number)
        yield ExpandedPods(
            entry["name"],
            replicas,
            each,
            replicas * each,
            spec["template"],
            entry,
            index,
            at,
            (*at, *POD_TEMPLATE_PATH),
        )


def _expand_mpi_job_into_pods(body: Body, _: Body, index: int) -> list[ExpandedPods]:
    from gangplan.validate.replicas import list_mpijob_replicas  # few runs are MPIJobs

    found = []
    for one in list_mpijob_replicas(body):
        # Shaped like an entry of a JobSet with such pods, for code that reads entries.
        entry: Body = {"name": one.role, "template": {"spec": {"template": one.template}}}
        found.append(
            ExpandedPods(one.role, 1, one.count, one.queued, one.template, entry, index, one.path, one.at)
        )
    return found


def _assign_stages_to_expanded_pods(pods: Iterable[ExpandedPods]) -> list[ExpandedPods]:
    """Set stage and phase by `dependsOn`: an earlier entry must be Ready, or Complete."""
    found: list[ExpandedPods] = []
    known: dict[str, ExpandedPods] = {}
    for one in pods:
        stage = phase = 0
        for needed in one.entry.get("dependsOn") or ():
            earlier = known.get(needed["name"].lower())
            ends = needed.get("status") == "Complete"
            stage = max(stage, 0 if ends else (earlier.stage if earlier else 0) + 1)
            phase = max(phase, (earlier.phase if earlier else 0) + (1 if ends else 0))
        found.append(replace(one, stage=stage, phase=phase) if stage or phase else one)
        known[one.name.lower()] = found[-1]
    return found


def _compute_job_parallelism(spec: Body) -> int:
    """Return how many pods one Job runs at a time: its parallelism, but at most its completions."""
    parallelism = _parse_count_or_default(spec.get("parallelism"), 1)
    return min(parallelism, _parse_count_or_default(spec.get("completions"), parallelism))


def _parse_count_or_default(value: Any, default: int) -> int:
    return default if value is None else int(value)


def _runs_launcher_as_node(policy: Body | None) -> bool:
    return bool(((policy or {}).get("mpi") or {}).get("runLauncherAsNode"))


def _count_expanded_train_job_pods(
    name: str, step: str, spec: Body, policy: Body | None, trainer: Body
) -> int:
    """Return the pods of one Job of a TrainJob: the runtime's parallelism, or the ML policy's nodes."""
    count = _parse_count_or_default(spec.get("parallelism"), 1)
    if step == "trainer" and policy is not None:
        count = _parse_count_or_default(policy.get("numNodes"), 1)
    nodes = trainer.get("numNodes")
    if nodes is None:
        return count
    if policy is not None and policy.get("mpi") is not None:
        if name == WORKER:
            return max(int(nodes) - 1, 1) if _runs_launcher_as_node(policy) else int(nodes)
        return count
    return int(nodes) if step == "trainer" else count


def _apply_trainer_resources_to_pods(pods: Body, resources: Body) -> Body:
    """Replace the resources of the container `node` by those of the trainer, if it states any."""
    if not (resources.get("limits") or resources.get("requests")):
        return pods
    containers = [
        {**container, "resources": dict(resources)} if container["name"] == WORKER else container
        for container in pods["spec"]["containers"]
    ]
    return {**pods, "spec": {**pods["spec"], "containers": containers}}


def _expand_train_job_patches(spec: Body, name: str, template: Body) -> Body:
    """Return the job template with the patches of the TrainJob.

    Those are runtimePatches (2.2) or podTemplateOverrides (2.1).
    """
    for _, job in list_train_job_runtime_patches(spec):
        if job["name"] == name and job.get("template"):
            template = _merge_runtime_patch(template, job["template"])
    for override in spec.get("podTemplateOverrides") or ():
        if name in [target["name"] for target in override.get("targetJobs") or ()]:
            change = {key: override[key] for key in ("metadata", "spec") if override.get(key)}
            template = _merge_runtime_patch(template, {"spec": {"template": change}})
    return template


def _merge_runtime_patch(source: Body, patch: Body) -> Body:
    """Return the source with the patch applied, changing neither; a null in the patch removes the key."""
    out = dict(source)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = _merge_runtime_patch(out[key], value)
        elif isinstance(value, list) and key in _KEYS and isinstance(out.get(key), list):
            out[key] = _merge_keyed_lists(out[key], value, _KEYS[key])
        else:
            out[key] = value
    return out


def _merge_keyed_lists(source: list[Any], patch: list[Any], key: str) -> list[Any]:
    out = list(source)
    for item in patch:
        at = next((at for at, known in enumerate(out) if known.get(key) == item.get(key)), None)
        if at is None:
            out.append(item)
        else:
            out[at] = _merge_runtime_patch(out[at], item)
    return out


Expander = Callable[[Body, Body, int], list[ExpandedPods]]
# For every kind that Kueue may queue, a function that returns its pods. It takes the object, the object that
# holds the templates, and the index of the latter among the objects of the run.
EXPANDERS: Mapping[str, Expander] = {
    TRAINJOB.kind: expand_train_job_into_pods,
    MPIJOB.kind: _expand_mpi_job_into_pods,
    "JobSet": _expand_jobset_pods,
    "Job": _expand_job_pods,
}
