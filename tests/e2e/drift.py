"""Find what a live object has that the emitted one does not, except for what controllers own."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

# Fields that a controller or the server owns. Git never has them, so no GitOps engine compares them.
# The same list is in docs/gitops.md.
CONTROLLED: dict[str, set[str]] = {
    "*": {
        "status",
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.generation",
        "metadata.creationTimestamp",
        "metadata.managedFields",
        "metadata.finalizers",
    },
    "Namespace": {"spec", "metadata.labels.kubernetes.io/metadata.name"},
    "PersistentVolumeClaim": {"spec.volumeName"},
    "TrainJob": {
        "spec.suspend",
        "spec.managedBy",
        "spec.runtimePatches",
        "spec.podTemplateOverrides",
        "spec.labels",
        "spec.annotations",
    },
    # A Job selects its pods by its uid, which it gets when it is created.
    "Job": {
        "spec.selector",
        "spec.template.metadata.labels.controller-uid",
        "spec.template.metadata.labels.job-name",
        "spec.template.metadata.labels.batch.kubernetes.io/controller-uid",
        "spec.template.metadata.labels.batch.kubernetes.io/job-name",
    },
    # Kueue writes its decisions into the pod templates.
    "MPIJob": {
        "spec.runPolicy.suspend",
        "spec.runPolicy.managedBy",
        *(
            f"spec.mpiReplicaSpecs.{role}.template.{field}"
            for role in ("Launcher", "Worker")
            for field in ("spec.schedulingGates", "spec.tolerations")
        ),
        *(
            f"spec.mpiReplicaSpecs.{role}.template.metadata.{field}.kueue.x-k8s.io/{name}"
            for role in ("Launcher", "Worker")
            for field, name in (
                ("labels", "podset"),
                ("labels", "tas"),
                ("labels", "local-queue-name"),
                ("labels", "cluster-queue-name"),
                ("annotations", "workload"),
                ("annotations", "podset-unconstrained-topology"),
                ("annotations", "pod-index-offset"),
            )
        ),
    },
}


def drift(emitted: Object, live: Object) -> list[str]:
    """Return one line per field that differs or was added."""
    allowed = CONTROLLED["*"] | CONTROLLED.get(emitted["kind"], set())
    return [line for path, line in _compare(emitted, live, "") if path not in allowed]


def _compare(emitted: Any, live: Any, path: str) -> list[tuple[str, str]]:
    if isinstance(emitted, dict) and isinstance(live, dict):
        found = []
        for name in sorted({*emitted, *live}):
            inner = f"{path}.{name}" if path else name
            if name not in emitted:
                found.append((inner, f"{inner} was added: {live[name]!r}"))
            elif name not in live:
                found.append((inner, f"{inner} was lost: {emitted[name]!r}"))
            else:
                found += _compare(emitted[name], live[name], inner)
        return found
    if isinstance(emitted, list) and isinstance(live, list) and len(emitted) == len(live):
        return [
            line
            for index, pair in enumerate(zip(emitted, live, strict=True))
            for line in _compare(*pair, f"{path}[{index}]")
        ]
    return [] if emitted == live else [(path, f"{path} is {live!r}, emitted was {emitted!r}")]
