"""The defaults of built-in kinds that create pods.

Source: k8s.io/kubernetes v1.34, pkg/apis/{apps,autoscaling,batch}/v*/defaults.go, and PrepareForCreate of
pkg/registry/{apps,batch}, which resets every status. The uid in a Job's selector and labels is unknown before
the Job is created; here it is all zeros.
"""

from __future__ import annotations

from gangplan.objects import Body
from gangplan.validate.apiserver.defaulting.paths import (
    ensure_child_mapping,
    fill_fields_from_defaults_table,
    find_mappings,
    get_child_mapping,
)
from gangplan.validate.apiserver.defaulting.pods import fill_claim_spec_defaults, fill_pod_template_defaults

UID = "00000000-0000-0000-0000-000000000000"


def fill_job_spec_defaults(spec: Body) -> None:
    """Fill in the spec of a Job."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    fill_fields_from_defaults_table(
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
    fill_pod_template_defaults(ensure_child_mapping(spec, "template"))


def fill_job_defaults(body: Body) -> None:
    """Fill in a Job object."""
    spec = ensure_child_mapping(body, "spec")
    fill_job_spec_defaults(spec)
    metadata = body["metadata"]
    template = ensure_child_mapping(ensure_child_mapping(spec, "template"), "metadata")
    labels = get_child_mapping(template, "labels")
    is_shared = bool(labels) and not metadata.get("labels")
    if not spec["manualSelector"]:
        name = metadata.get("name")
        names = {"job-name": name, "batch.kubernetes.io/job-name": name}
        uids = dict.fromkeys(("controller-uid", "batch.kubernetes.io/controller-uid"), UID)
        template["labels"] = labels = {**labels, **names, **uids}
        selected = {"batch.kubernetes.io/controller-uid": UID}
        spec["selector"] = {"matchLabels": selected}
    if is_shared and labels:
        metadata["labels"] = dict(labels)
    body.setdefault("status", {})


def fill_cron_job_defaults(body: Body) -> None:
    """Fill in a CronJob; its job template gets the defaults of the pod template only, not those of a Job."""
    spec = ensure_child_mapping(body, "spec")
    table = (
        ("concurrencyPolicy", "Allow"),
        ("suspend", False),
        ("successfulJobsHistoryLimit", 3),
        ("failedJobsHistoryLimit", 1),
    )
    fill_fields_from_defaults_table(spec, table)
    template = ensure_child_mapping(spec, "jobTemplate")
    template.setdefault("metadata", {})
    fill_pod_template_defaults(ensure_child_mapping(ensure_child_mapping(template, "spec"), "template"))
    body.setdefault("status", {})


def fill_deployment_defaults(body: Body) -> None:
    """Fill in a Deployment."""
    spec = ensure_child_mapping(body, "spec")
    strategy = ensure_child_mapping(spec, "strategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill_fields_from_defaults_table(
            ensure_child_mapping(strategy, "rollingUpdate"), (("maxUnavailable", "25%"), ("maxSurge", "25%"))
        )
    fill_fields_from_defaults_table(
        spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600))
    )
    fill_pod_template_defaults(ensure_child_mapping(spec, "template"))
    body.setdefault("status", {})


def fill_daemon_set_defaults(body: Body) -> None:
    """Fill in a DaemonSet."""
    spec = ensure_child_mapping(body, "spec")
    strategy = ensure_child_mapping(spec, "updateStrategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill_fields_from_defaults_table(
            ensure_child_mapping(strategy, "rollingUpdate"), (("maxUnavailable", 1), ("maxSurge", 0))
        )
    spec.setdefault("revisionHistoryLimit", 10)
    fill_pod_template_defaults(ensure_child_mapping(spec, "template"))
    ensure_child_mapping(body["metadata"], "annotations")["deprecated.daemonset.template.generation"] = "1"
    counts = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
    body.setdefault("status", dict.fromkeys(counts, 0))


def fill_stateful_set_defaults(body: Body) -> None:
    """Fill in a StatefulSet."""
    spec = ensure_child_mapping(body, "spec")
    strategy = ensure_child_mapping(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        ensure_child_mapping(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill_fields_from_defaults_table(spec, (("updateStrategy.rollingUpdate.partition", 0),))
    fill_fields_from_defaults_table(spec, (("serviceName", ""), ("podManagementPolicy", "OrderedReady")))
    fill_fields_from_defaults_table(spec, (("replicas", 1), ("revisionHistoryLimit", 10)))
    fill_fields_from_defaults_table(
        ensure_child_mapping(spec, "persistentVolumeClaimRetentionPolicy"),
        (("whenDeleted", "Retain"), ("whenScaled", "Retain")),
    )
    fill_pod_template_defaults(ensure_child_mapping(spec, "template"))
    for claim in find_mappings(spec, "volumeClaimTemplates[]"):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        fill_claim_spec_defaults(ensure_child_mapping(claim, "spec"))
        ensure_child_mapping(claim, "status")["phase"] = "Pending"
    body.setdefault("status", {"replicas": 0, "availableReplicas": 0})


def fill_replica_set_defaults(body: Body) -> None:
    """Fill in a ReplicaSet."""
    spec = ensure_child_mapping(body, "spec")
    spec.setdefault("replicas", 1)
    fill_pod_template_defaults(ensure_child_mapping(spec, "template"))
    body.setdefault("status", {"replicas": 0})


def fill_replication_controller_defaults(body: Body) -> None:
    """Fill in a ReplicationController, which selects by the labels of its pods."""
    spec = ensure_child_mapping(body, "spec")
    spec.setdefault("replicas", 1)
    template = ensure_child_mapping(spec, "template")
    fill_pod_template_defaults(template)
    labels = get_child_mapping(get_child_mapping(template, "metadata"), "labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        body["metadata"].setdefault("labels", dict(labels))
    body.setdefault("status", {"replicas": 0})


def fill_pod_template_object_defaults(body: Body) -> None:
    """Fill in a PodTemplate."""
    fill_pod_template_defaults(ensure_child_mapping(body, "template"))


def fill_autoscaler_defaults(body: Body) -> None:
    """Fill in a HorizontalPodAutoscaler of autoscaling/v2."""
    spec = ensure_child_mapping(body, "spec")
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        up = ensure_child_mapping(behavior, "scaleUp")
        pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
        fill_fields_from_defaults_table(
            up, (("stabilizationWindowSeconds", 0), ("selectPolicy", "Max"), ("policies", [pods, percent]))
        )
        fill_fields_from_defaults_table(
            ensure_child_mapping(behavior, "scaleDown"), (("selectPolicy", "Max"), ("policies", [percent]))
        )
    body.setdefault("status", {"desiredReplicas": 0, "currentMetrics": None})
