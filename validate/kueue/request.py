"""The part of a run that Kueue and kube-scheduler read, so that runs with equal requests share one verdict.

Images, commands, variables and names affect neither quota nor nodes, but most runs differ only in them. The
solvers get a `RunRequest`, which leaves them out, so that a verdict cannot depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.model.backend import RUNTIME_KIND
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.expand import job_of
from gangplan.validate.kueue.model import NeverError, PodSet
from gangplan.validate.kueue.podsets import convert_to_pod_sets, expand_run_into_pods_for_kueue
from gangplan.validate.memo import digest_memo_key
from gangplan.validate.world import World

LABELS = (
    *("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"),
    "kueue.x-k8s.io/max-exec-time-seconds",
)
ANNOTATIONS = ("kueue.x-k8s.io/elastic-job",)
# The annotations of pods that Kueue reads, and those by which GKE adds a container (scheduler/pods.py).
OF_PODS = ("kueue.x-k8s.io/", "gke-gcsfuse/")
# Fields of a pod. Only required affinity and spread constraints keep it from a node.
POD = (
    *("nodeSelector", "tolerations", "overhead", "resources", "runtimeClassName", "priorityClassName"),
    *("schedulerName", "hostNetwork"),
)
CONTAINER = ("resources", "restartPolicy", "ports")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The job that Kueue queues and its pod sets, reduced to what solvers read; without a job, `job` is None.

    `waits` is (stage, phase) of each pod set by `dependsOn` (see `PodShape`); `is_gang`: the runtime has a
    policy that starts all pods together; `refused` is why there are no pod sets (fields of a `NeverError`).
    `names_matter`: pods have constraints on other pods, which use labels with the run's name. `key` is equal
    for equal requests, `pods_key` for requests that are equal except for the job; None if it cannot be
    computed.
    """

    job: Body | None
    pods: tuple[PodSet, ...] = ()
    waits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    is_gang: bool = False
    refused: tuple[str, str, str, str] | None = None
    names_matter: bool = False
    key: bytes | None = None
    pods_key: bytes | None = None

    def pod_sets(self) -> tuple[PodSet, ...]:
        """Return the pod sets. Raises `NeverError` if the runtime does not exist."""
        if self.refused is not None:
            raise NeverError(*self.refused)
        return self.pods


def build_run_request(world: World, bodies: Sequence[Body]) -> RunRequest:
    """Return the request of the run among `bodies`."""
    whole = build_unreduced_run_request(world, bodies)
    if whole.job is None:
        return whole
    job = whole.job
    pods = [
        (
            one.name,
            one.count,
            _reduce_pod_template_for_admission(one.template),
            one.index,
            one.claimed,
            one.uncountable,
        )
        for one in whole.pods
    ]
    names_matter = any("labels" in template["metadata"] for _, _, template, *_ in pods)
    metadata = job["metadata"]
    kept: Body = {
        "kind": job["kind"],
        "metadata": {
            "name": metadata["name"] if names_matter else "",
            "labels": _select_present_fields(metadata.get("labels") or {}, LABELS),
            "annotations": _select_present_fields(metadata.get("annotations") or {}, ANNOTATIONS),
        },
    }
    if "namespace" in metadata:
        kept["metadata"]["namespace"] = metadata["namespace"]
    own, pods_key = (
        digest_memo_key(kept),
        digest_memo_key(pods, whole.waits, whole.is_gang, whole.refused),
    )
    return RunRequest(
        kept,
        tuple(PodSet(*one) for one in pods),
        whole.waits,
        whole.is_gang,
        whole.refused,
        names_matter,
        None if own is None or pods_key is None else own + pods_key,
        pods_key,
    )


def build_unreduced_run_request(world: World, bodies: Sequence[Body]) -> RunRequest:
    """Return the request with unreduced objects and without a key; tests compare with it."""
    found = job_of(bodies)
    if found is None:
        return RunRequest(None)
    is_gang = any(
        body["kind"] == RUNTIME_KIND and bool(body["spec"].get("podGroupPolicy")) for body in bodies
    )
    try:
        pods = expand_run_into_pods_for_kueue(bodies, world)
    except NeverError as no:
        return RunRequest(found[1], is_gang=is_gang, refused=(no.reason, no.message, no.about, no.detail))
    waits = {one.name.lower(): (one.stage, one.phase) for one in pods}
    return RunRequest(found[1], tuple(convert_to_pod_sets(pods, bodies)), waits, is_gang)


def _select_present_fields(all_of_it: Mapping[str, Any], names: Sequence[str]) -> Body:
    return {name: all_of_it[name] for name in names if name in all_of_it}


def _reduce_pod_template_for_admission(template: Body) -> Body:
    """Reduce a pod template to what affects quota or nodes."""
    spec, metadata = template.get("spec") or {}, template.get("metadata") or {}
    kept = _select_present_fields(spec, POD)
    for kind in ("initContainers", "containers"):
        kept[kind] = [_select_present_fields(one, CONTAINER) for one in spec.get(kind) or ()]
    notes = metadata.get("annotations") or {}
    out: Body = {"annotations": {key: value for key, value in notes.items() if key.startswith(OF_PODS)}}
    if spec.get("affinity"):
        kept["affinity"] = affinity = {
            kind: {REQUIRED: terms[REQUIRED]}
            for kind, terms in spec["affinity"].items()
            if terms and terms.get(REQUIRED) is not None
        }
        if "podAffinity" in affinity or "podAntiAffinity" in affinity:
            out["labels"] = metadata.get("labels") or {}
    # Volumes that are created for one pod from storage of its node.
    if local := [
        {"ephemeral": one["ephemeral"]} for one in spec.get("volumes") or () if one.get("ephemeral")
    ]:
        kept["volumes"] = local
    spreads = [
        one
        for one in spec.get("topologySpreadConstraints") or ()
        if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    ]
    if spreads:
        kept["topologySpreadConstraints"] = spreads
        out["labels"] = metadata.get("labels") or {}
    return {"spec": kept, "metadata": out}
