"""Refusals before admission: jobs that never become a Workload, and queues that admit nothing.

Sources: Kueue v0.19.2 pkg/controller/jobframework/{validation,reconciler,defaults}.go,
pkg/webhooks/workload_webhook.go, pkg/controller/core/workload_controller.go (getQueueBlocker),
pkg/scheduler/scheduler.go (nominate), in the order in which a run meets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gangplan.kueue.units import KUEUE_PODS
from gangplan.model.backend import TRAINJOB
from gangplan.model.support import KueueLine
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import is_subdomain, parse_accepted_amount
from gangplan.validate.kueue.annotations import (
    POD_GROUP_NAME,
    check_topology_annotations,
    check_topology_groups,
)
from gangplan.validate.kueue.matching import matches_pod_selector
from gangplan.validate.kueue.model import MISCONFIGURED, NO_WORKLOAD, SUSPENDED_REASON, NeverError, PodSet
from gangplan.validate.kueue.standing import KueueWorld, QueueState

QUEUE_NAME_LABEL, PRIORITY_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
MAX_EXEC = "kueue.x-k8s.io/max-exec-time-seconds"
ELASTIC = "kueue.x-k8s.io/elastic-job"
DEFAULT = "default"
# Namespaces that managedJobsNamespaceSelector leaves out by default (apis/config/v1beta2/defaults.go).
UNMANAGED = ("kube-system", "kueue-system")
HINT = (
    '. Adjust either the "TrainJob.spec.runtimePatches" or the "TrainingRuntime.Template" annotations for the'
    " corresponding Job"
)


def find_local_queue_name_of_job(job: Body, standing: KueueWorld) -> str:
    """Return the LocalQueue of a job: from its label, else `default` if the namespace has one, else ""."""
    labels = job["metadata"].get("labels") or {}
    if QUEUE_NAME_LABEL in labels:
        return str(labels[QUEUE_NAME_LABEL])
    namespace = job["metadata"].get("namespace") or ""
    return DEFAULT if standing.find("LocalQueue", DEFAULT, namespace) else ""


def check_job_against_kueue_webhooks(
    job: Body, pods: Sequence[PodSet], standing: KueueWorld, kueue: KueueLine
) -> None:
    """Raise `NeverError` if the webhooks refuse the job or Kueue cannot create its Workload."""
    namespace = job["metadata"].get("namespace") or ""
    labels = job["metadata"].get("labels") or {}
    said = [*_find_kueue_label_errors_of_job(labels), *_find_elastic_job_error(job, kueue)]
    notes = [problem for one in pods for problem in check_topology_annotations(one, kueue)]
    if job["kind"] == TRAINJOB.kind:
        notes = [problem + HINT for problem in notes]
    _raise_first_refusal([*said, *notes])
    if any(POD_GROUP_NAME in one.annotations for one in pods):
        _raise_first_refusal(check_topology_groups(pods))
    if namespace in UNMANAGED:
        raise NeverError(NO_WORKLOAD, f"Kueue does not manage jobs in namespace '{namespace}'", "Namespace")
    _raise_first_refusal(_find_workload_errors(pods, kueue))
    _refuse_workload_of_unknown_priority_class(labels, pods, standing)
    _raise_first_refusal(_find_workload_quota_error(standing, namespace))


def is_job_always_refused_by_kueue(job: Body, standing: KueueWorld, kueue: KueueLine) -> bool:
    """Return whether `check_job_against_kueue_webhooks` refuses the job regardless of its pods."""
    namespace, labels = job["metadata"].get("namespace") or "", job["metadata"].get("labels") or {}
    name = labels.get(PRIORITY_LABEL)
    return (
        any(True for _ in _find_kueue_label_errors_of_job(labels))
        or any(True for _ in _find_elastic_job_error(job, kueue))
        or namespace in UNMANAGED
        or bool(name and standing.find("WorkloadPriorityClass", name) is None)
        or any(True for _ in _find_workload_quota_error(standing, namespace))
    )


def _raise_first_refusal(said: Iterable[str]) -> None:
    first = next(iter(said), None)
    if first is not None:
        raise NeverError(NO_WORKLOAD, first)


def _find_kueue_label_errors_of_job(labels: Body) -> Iterable[str]:
    name = str(labels.get(QUEUE_NAME_LABEL, ""))
    if len(name) > 63:
        yield f'metadata.labels: Invalid value: "{name}": must be no more than 63 characters'
    elif name and not is_subdomain(name):
        reason = "a lowercase RFC 1123 subdomain is expected"
        yield f'metadata.labels[{QUEUE_NAME_LABEL}]: Invalid value: "{name}": {reason}'
    if MAX_EXEC in labels:
        text = str(labels[MAX_EXEC])
        try:
            is_positive = int(text) > 0
        except ValueError:
            yield f'metadata.labels[{MAX_EXEC}]: Invalid value: "{text}": invalid syntax'
            return
        if not is_positive:
            yield f"metadata.labels[{MAX_EXEC}]: Invalid value: {text}: should be greater than 0"


def _find_elastic_job_error(job: Body, kueue: KueueLine) -> Iterable[str]:
    notes = job["metadata"].get("annotations") or {}
    if job["kind"] == TRAINJOB.kind and notes.get(ELASTIC) == "true" and kueue.refuses_elastic:
        yield f"metadata.annotations[{ELASTIC}]: Forbidden: elastic job is not supported for TrainJob"


def _find_workload_errors(pods: Sequence[PodSet], kueue: KueueLine) -> Iterable[str]:
    if len(pods) > kueue.most_pod_sets:
        yield f"spec.podSets: Too many: {len(pods)}: must have at most {kueue.most_pod_sets} items"
    for at, one in enumerate(pods):
        yield from _find_pod_set_resource_errors(f"spec.podSets[{at}].template.spec", one)
        for key, value in one.annotations.items():
            if key.startswith("kueue.x-k8s.io/podset-") and key.endswith("-topology") and len(value) > 63:
                yield f"spec.podSets[{at}].topologyRequest: Too long: may not be more than 63 bytes ({value})"


def _find_pod_set_resource_errors(path: str, pods: PodSet) -> Iterable[str]:
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(pods.spec.get(kind) or ()):
            for side in ("requests", "limits"):
                for name, value in ((container.get("resources") or {}).get(side) or {}).items():
                    at = f"{path}.{kind}[{number}].resources.{side}[{name}]"
                    if name == KUEUE_PODS:
                        yield f'{at}: Invalid value: "{name}": the key is reserved for internal kueue use'
                    if parse_accepted_amount(value).nano < 0:
                        yield f'{at}: Invalid value: "{value}": must be greater than or equal to 0'


def _refuse_workload_of_unknown_priority_class(
    labels: Body, pods: Sequence[PodSet], standing: KueueWorld
) -> None:
    name = labels.get(PRIORITY_LABEL)
    if name:
        if standing.find("WorkloadPriorityClass", name) is None:
            message = f'workloadpriorityclasses.kueue.x-k8s.io "{name}" not found'
            raise NeverError(NO_WORKLOAD, message, "WorkloadPriorityClass")
        return
    pod_class = pods[0].spec.get("priorityClassName") if pods else None
    built_in = ("system-cluster-critical", "system-node-critical")
    if pod_class and pod_class not in built_in and standing.find("PriorityClass", pod_class) is None:
        message = f'priorityclasses.scheduling.k8s.io "{pod_class}" not found'
        raise NeverError(NO_WORKLOAD, message, "PriorityClass")


def _find_workload_quota_error(standing: KueueWorld, namespace: str) -> Iterable[str]:
    """Yield the error of a ResourceQuota that allows no Workload at all (its dry run is refused as well)."""
    key = "count/workloads.kueue.x-k8s.io"
    for body in standing.within("ResourceQuota", namespace):
        hard = body["spec"].get("hard") or {}
        if (
            body["metadata"].get("namespace") == namespace
            and key in hard
            and parse_accepted_amount(hard[key]).nano < 10**9
        ):
            name = body["metadata"]["name"]
            yield f"exceeded quota: {name}, requested: {key}=1, used: {key}=0, limited: {key}={hard[key]}"


def find_cluster_queue_of_local_queue(job: Body, local: str, standing: KueueWorld) -> QueueState:
    """Return the ClusterQueue of a LocalQueue, active or not. Raises `NeverError` if it does not exist."""
    namespace = job["metadata"].get("namespace") or ""
    body = standing.find("LocalQueue", local, namespace)
    if body is None:
        raise NeverError(MISCONFIGURED, f"LocalQueue {local} doesn't exist", "LocalQueue")
    spec = body.get("spec") or {}
    if (spec.get("stopPolicy") or "None") != "None":
        raise NeverError(SUSPENDED_REASON, f"LocalQueue {local} is inactive", "LocalQueue")
    name = spec.get("clusterQueue") or ""
    queue = standing.queue(name)
    if queue is None:
        raise NeverError(MISCONFIGURED, f"ClusterQueue {name} doesn't exist", "ClusterQueue")
    return queue


def check_namespace_of_queued_run(
    job: Body, queue: QueueState, standing: KueueWorld, kueue: KueueLine
) -> None:
    """Raise `NeverError` if the queue does not take runs of the namespace."""
    name = job["metadata"].get("namespace") or ""
    body = standing.find("Namespace", name)
    given = (body["metadata"].get("labels") or {}) if body else {}
    labels = {"kubernetes.io/metadata.name": name, **given}
    if not matches_pod_selector((queue.body.get("spec") or {}).get("namespaceSelector"), labels):
        # pkg/scheduler/scheduler.go nominate
        subject = "workload" if kueue.says_workload_small else "Workload"
        message = f"{subject} namespace doesn't match ClusterQueue selector"
        raise NeverError(MISCONFIGURED, message, "ClusterQueue")
