"""The defaults of built-in kinds that create pods.

Source: k8s.io/kubernetes v1.34, pkg/apis/{apps,autoscaling,batch}/v*/defaults.go, and PrepareForCreate of
pkg/registry/{apps,batch}, which resets every status. The uid in a Job's selector and labels is unknown before
the Job is created; here it is all zeros.
"""

from __future__ import annotations

from typing import Any

from gangplan.validate.apiserver.defaulting.paths import fill, mapping, places
from gangplan.validate.apiserver.defaulting.pods import claim_spec, pod_template

Body = dict[str, Any]
UID = "00000000-0000-0000-0000-000000000000"


def job_spec(spec: Body) -> None:
    """Fill in the spec of a Job."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    fill(
        spec,
        (
            ("parallelism", 1),
            ("backoffLimit", 2**31 - 1 if per_index else 6),
            ("completionMode", "NonIndexed"),
            ("suspend", False),
            ("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"),
            ("manualSelector", False),
            ("podFailurePolicy.rules[].onPodConditions[].status", "True"),
        ),
    )
    pod_template(mapping(spec, "template"))


def job(body: Body) -> None:
    """Fill in a Job object."""
    spec = mapping(body, "spec")
    job_spec(spec)
    metadata, template = body["metadata"], mapping(spec["template"], "metadata")
    labels = template.get("labels")
    is_shared = bool(labels) and not metadata.get("labels")
    if not spec["manualSelector"]:
        name = metadata.get("name")
        names = {"job-name": name, "batch.kubernetes.io/job-name": name}
        uids = dict.fromkeys(("controller-uid", "batch.kubernetes.io/controller-uid"), UID)
        template["labels"] = labels = {**(labels or {}), **names, **uids}
        selected = {"batch.kubernetes.io/controller-uid": UID}
        spec["selector"] = {"matchLabels": selected}
    if is_shared and labels:
        metadata["labels"] = dict(labels)
    body.setdefault("status", {})


def cron_job(body: Body) -> None:
    """Fill in a CronJob; its job template gets the defaults of the pod template only, not those of a Job."""
    spec = mapping(body, "spec")
    table = (
        ("concurrencyPolicy", "Allow"),
        ("suspend", False),
        ("successfulJobsHistoryLimit", 3),
        ("failedJobsHistoryLimit", 1),
    )
    fill(spec, table)
    template = mapping(spec, "jobTemplate")
    template.setdefault("metadata", {})
    pod_template(mapping(mapping(template, "spec"), "template"))
    body.setdefault("status", {})


def deployment(body: Body) -> None:
    """Fill in a Deployment."""
    spec = mapping(body, "spec")
    strategy = mapping(spec, "strategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(mapping(strategy, "rollingUpdate"), (("maxUnavailable", "25%"), ("maxSurge", "25%")))
    fill(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)))
    pod_template(mapping(spec, "template"))
    body.setdefault("status", {})


def daemon_set(body: Body) -> None:
    """Fill in a DaemonSet."""
    spec = mapping(body, "spec")
    strategy = mapping(spec, "updateStrategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(mapping(strategy, "rollingUpdate"), (("maxUnavailable", 1), ("maxSurge", 0)))
    spec.setdefault("revisionHistoryLimit", 10)
    pod_template(mapping(spec, "template"))
    mapping(body["metadata"], "annotations")["deprecated.daemonset.template.generation"] = "1"
    counts = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
    body.setdefault("status", dict.fromkeys(counts, 0))


def stateful_set(body: Body) -> None:
    """Fill in a StatefulSet."""
    spec = mapping(body, "spec")
    strategy = mapping(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        mapping(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(spec, (("updateStrategy.rollingUpdate.partition", 0),))
    fill(spec, (("serviceName", ""), ("podManagementPolicy", "OrderedReady")))
    fill(spec, (("replicas", 1), ("revisionHistoryLimit", 10)))
    fill(
        mapping(spec, "persistentVolumeClaimRetentionPolicy"),
        (("whenDeleted", "Retain"), ("whenScaled", "Retain")),
    )
    pod_template(mapping(spec, "template"))
    for claim in places(spec, "volumeClaimTemplates[]"):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        claim_spec(mapping(claim, "spec"))
        mapping(claim, "status")["phase"] = "Pending"
    body.setdefault("status", {"replicas": 0, "availableReplicas": 0})


def replica_set(body: Body) -> None:
    """Fill in a ReplicaSet."""
    spec = mapping(body, "spec")
    spec.setdefault("replicas", 1)
    pod_template(mapping(spec, "template"))
    body.setdefault("status", {"replicas": 0})


def replication_controller(body: Body) -> None:
    """Fill in a ReplicationController, which selects by the labels of its pods."""
    spec = mapping(body, "spec")
    spec.setdefault("replicas", 1)
    pod_template(mapping(spec, "template"))
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        body["metadata"].setdefault("labels", dict(labels))
    body.setdefault("status", {"replicas": 0})


def pod_template_object(body: Body) -> None:
    """Fill in a PodTemplate."""
    pod_template(mapping(body, "template"))


def autoscaler(body: Body) -> None:
    """Fill in a HorizontalPodAutoscaler of autoscaling/v2."""
    spec = mapping(body, "spec")
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        up = mapping(behavior, "scaleUp")
        pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
        fill(up, (("stabilizationWindowSeconds", 0), ("selectPolicy", "Max"), ("policies", [pods, percent])))
        fill(mapping(behavior, "scaleDown"), (("selectPolicy", "Max"), ("policies", [percent])))
    body.setdefault("status", {"desiredReplicas": 0, "currentMetrics": None})
