"""A run as its controllers lay it out: which pods come of its built objects, how many, of which template.

Everything that asks for the pods of a run asks here. Sources: Kubeflow Trainer v2.1 to v2.3
(pkg/runtime/core/trainingruntime.go, plugins/mpi, plugins/plainml, plugins/torch, plugins/jobset/builder.go),
whose v2.2.1 Kueue v0.19.2 vendors to count with; JobSet v0.10 to v0.12; mpi-operator v0.7.0 to v0.8.2; Kueue
pkg/controller/jobs/{trainjob,mpijob,jobset,job}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gangplan.model.backend import ANCESTOR, MPIJOB, RUNTIME, SHARED_RUNTIME, TRAINJOB, title_of
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.jobset import ENTRIES, POD, WORKER, entries_of, patches_of
from gangplan.validate.world import World

# Lists that a patch of a TrainJob merges by key; others are replaced, among them tolerations (core/v1 of
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
_INITIALIZERS = ("dataset-initializer", "model-initializer")


@dataclass(frozen=True, slots=True)
class ExpandedPods:
    """The pods of one replicated job of a JobSet, of one role of an MPIJob, or of a Job.

    Each of `replicas` Jobs makes `each` pods; Kueue counts `queued` of them in all. `template` is that of the
    pods with all that the TrainJob changes; it stands at `template_at` of object `index`, in `entry` at `at`.
    Pods of a later `stage` come when those of the earlier ones run; of a later `phase`, when they ended.
    """

    name: str
    replicas: int
    each: int
    queued: int
    template: Body
    entry: Body
    index: int
    at: Path
    template_at: Path
    stage: int = 0
    phase: int = 0

    @property
    def count(self) -> int:
        """How many pods the controllers make."""
        return self.replicas * self.each

    @property
    def title(self) -> str:
        """How people call them."""
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
    """The object that makes the pods, and its index."""
    return next(((at, body) for at, body in enumerate(bodies) if body["kind"] in EXPANDERS), None)


def expand(world: World, bodies: Sequence[Body]) -> list[ExpandedPods]:
    """The pods of the run among `bodies`, in the order of its objects; none without a job.

    Raises MissingRuntimeError (then Trainer's webhook refuses the TrainJob itself).
    """
    found = job_of(bodies)
    if found is None:
        return []
    at, body = found
    index, holder = holder_of(world, bodies, at)
    return EXPANDERS[body["kind"]](body, holder, index)


def holder_of(world: World, bodies: Sequence[Body], at: int) -> tuple[int, Body]:
    """The object that holds the templates for the one at an index, with its own: the same object, for most.

    Raises MissingRuntimeError.
    """
    body = bodies[at]
    return runtime_of(body, bodies, world) if body["kind"] == TRAINJOB.kind else (at, body)


def runtime_of(job: Body, bodies: Sequence[Body], world: World) -> tuple[int, Body]:
    """The runtime of a TrainJob, and its index; 0 for one of the cluster. Raises MissingRuntimeError."""
    reference = job["spec"]["runtimeRef"]
    kind, name = reference.get("kind") or SHARED_RUNTIME, reference["name"]
    namespace = job["metadata"].get("namespace") if kind == RUNTIME else None
    for at, body in enumerate(bodies):
        metadata = body["metadata"]
        if body["kind"] == kind and metadata["name"] == name and metadata.get("namespace") == namespace:
            return at, body
    found = world.at(kind, name, namespace)
    if found is None:
        raise MissingRuntimeError(kind, name)
    return 0, found


def expand_train_job(job: Body, runtime: Body, index: int = 0) -> list[ExpandedPods]:
    """The pods of a TrainJob over its runtime, which is object `index`."""
    policy = runtime["spec"].get("mlPolicy")
    trainer = job["spec"].get("trainer") or {}
    found = []
    for number, entry in enumerate(entries_of(runtime)):
        name = entry["name"]
        template = _patched(job["spec"], name, entry["template"])
        step = ((template.get("metadata") or {}).get("labels") or {}).get(ANCESTOR, "")
        pods = template["spec"]["template"]
        if step == "trainer" or (name == WORKER and _launcher_runs(policy)):
            pods = _with_resources(pods, trainer.get("resourcesPerNode") or {})
        replicas = 1 if step == "trainer" or step in _INITIALIZERS else _number(entry.get("replicas"), 1)
        each = _nodes(name, step, template["spec"], policy, trainer)
        at: Path = (*ENTRIES, number)
        found.append(ExpandedPods(name, replicas, each, replicas * each, pods, entry, index, at, (*at, *POD)))
    return _waiting(found)


def _of_job(job: Body, _: Body, index: int) -> list[ExpandedPods]:
    spec, at = job["spec"], ("spec", "template")
    pods = _parallel(spec)
    return [ExpandedPods("main", 1, pods, pods, spec["template"], job, index, (), at)]


def _of_job_set(body: Body, _: Body, index: int) -> list[ExpandedPods]:
    return _waiting(_entries(body, index))


def _entries(body: Body, index: int) -> Iterator[ExpandedPods]:
    for number, entry in enumerate(entries_of(body)):
        spec, replicas = entry["template"]["spec"], entry.get("replicas", 1)
        each, at = _parallel(spec), ("spec", ENTRIES[-1], number)
        yield ExpandedPods(
            entry["name"], replicas, each, replicas * each, spec["template"], entry, index, at, (*at, *POD)
        )


def _of_mpi_job(body: Body, _: Body, index: int) -> list[ExpandedPods]:
    from gangplan.validate.replicas import replicas_of  # few runs are MPIJobs

    found = []
    for one in replicas_of(body):
        # As the entry of a JobSet that makes such pods, for what reads entries.
        entry: Body = {"name": one.role, "template": {"spec": {"template": one.template}}}
        found.append(
            ExpandedPods(one.role, 1, one.count, one.queued, one.template, entry, index, one.path, one.at)
        )
    return found


def _waiting(pods: Iterable[ExpandedPods]) -> list[ExpandedPods]:
    """With stage and phase by `dependsOn`: an earlier entry that is Ready, or Complete."""
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


def _parallel(spec: Body) -> int:
    """Pods of one Job: at most its completions."""
    parallelism = _number(spec.get("parallelism"), 1)
    return min(parallelism, _number(spec.get("completions"), parallelism))


def _number(value: Any, default: int) -> int:
    return default if value is None else int(value)


def _launcher_runs(policy: Body | None) -> bool:
    return bool(((policy or {}).get("mpi") or {}).get("runLauncherAsNode"))


def _nodes(name: str, step: str, spec: Body, policy: Body | None, trainer: Body) -> int:
    """Pods of one Job of a TrainJob: parallelism of the runtime, or the nodes that its policy gives it."""
    count = _number(spec.get("parallelism"), 1)
    if step == "trainer" and policy is not None:
        count = _number(policy.get("numNodes"), 1)
    nodes = trainer.get("numNodes")
    if nodes is None:
        return count
    if policy is not None and policy.get("mpi") is not None:
        if name == WORKER:
            return max(int(nodes) - 1, 1) if _launcher_runs(policy) else int(nodes)
        return count
    return int(nodes) if step == "trainer" else count


def _with_resources(pods: Body, resources: Body) -> Body:
    """The trainer's resources replace those of the container `node`, each side where it is given."""
    if not (resources.get("limits") or resources.get("requests")):
        return pods
    containers = [
        {**container, "resources": dict(resources)} if container["name"] == WORKER else container
        for container in pods["spec"]["containers"]
    ]
    return {**pods, "spec": {**pods["spec"], "containers": containers}}


def _patched(spec: Body, name: str, template: Body) -> Body:
    """The job template with the TrainJob's patches: runtimePatches (2.2) or podTemplateOverrides (2.1)."""
    for _, job in patches_of(spec):
        if job["name"] == name and job.get("template"):
            template = _merged(template, job["template"])
    for override in spec.get("podTemplateOverrides") or ():
        if name in [target["name"] for target in override.get("targetJobs") or ()]:
            change = {key: override[key] for key in ("metadata", "spec") if override.get(key)}
            template = _merged(template, {"spec": {"template": change}})
    return template


def _merged(source: Body, patch: Body) -> Body:
    """The source with the patch on it; neither is changed. A null in the patch removes."""
    out = dict(source)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = _merged(out[key], value)
        elif isinstance(value, list) and key in _KEYS and isinstance(out.get(key), list):
            out[key] = _lists(out[key], value, _KEYS[key])
        else:
            out[key] = value
    return out


def _lists(source: list[Any], patch: list[Any], key: str) -> list[Any]:
    out = list(source)
    for item in patch:
        at = next((at for at, known in enumerate(out) if known.get(key) == item.get(key)), None)
        if at is None:
            out.append(item)
        else:
            out[at] = _merged(out[at], item)
    return out


Expander = Callable[[Body, Body, int], list[ExpandedPods]]
# Of every kind that Kueue may queue: its pods, from the object and the one that holds the templates, with the
# index of that among the objects of the run.
EXPANDERS: Mapping[str, Expander] = {
    TRAINJOB.kind: expand_train_job,
    MPIJOB.kind: _of_mpi_job,
    "JobSet": _of_job_set,
    "Job": _of_job,
}
