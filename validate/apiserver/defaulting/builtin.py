"""The defaults of built-in kinds, and what their types leave out when the server turns them into values.

Source: k8s.io/kubernetes v1.34, pkg/apis/{core,batch,networking,rbac,scheduling}/v1/defaults.go; fields with
`omitempty` in k8s.io/api v0.34.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from gangplan.validate.apiserver.defaulting.paths import fill, mapping, places
from gangplan.validate.apiserver.defaulting.pods import pod, pod_template

Body = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
# Fields that are no pointers: a value of nothing is as good as none, and is not there.
_NOT_POINTERS = frozenset(
    {
        "value",
        "readOnly",
        "stdin",
        "stdinOnce",
        "tty",
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "subPath",
        "hostPort",
    }
    | {
        "subPathExpr",
        "workingDir",
        "nodeName",
        "hostname",
        "subdomain",
        "serviceAccountName",
        "args",
        "command",
    }
    | {"priorityClassName", "medium", "description", "globalDefault", "volumeName", "apiGroup", "namespace"}
    | {
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "matchLabels",
        "matchExpressions",
        "nodeSelector",
    }
    | {
        "tolerations",
        "volumes",
        "volumeMounts",
        "env",
        "envFrom",
        "ports",
        "initContainers",
        "imagePullSecrets",
    }
    | {"ingress", "egress", "from", "to", "except", "policyTypes", "limits", "requests", "hard", "data"}
    | {"binaryData", "subjects", "resources[]", "accessModes", "rules", "secrets"}
)


def fill_in(body: Body) -> None:
    """Set the defaults of a built-in kind in place; other kinds stay as they are."""
    key = body.get("apiVersion"), body.get("kind")
    defaults = DEFAULTS.get((str(key[0]), str(key[1])))
    if defaults is None or not isinstance(body.get("metadata"), dict):
        return
    _leave_out(body)
    defaults(body)


def _leave_out(value: Any) -> None:
    """Remove fields that hold nothing and that the type omits then."""
    if isinstance(value, list):
        for entry in value:
            _leave_out(entry)
    if isinstance(value, dict):
        for name in [name for name, inner in value.items() if _is_left_out(name, inner)]:
            del value[name]
        for inner in value.values():
            _leave_out(inner)


def _is_left_out(name: str, value: Any) -> bool:
    if value is None:
        return True
    return name in _NOT_POINTERS and not value


# --- workloads -----------------------------------------------------------------------------------------


def _job_spec(spec: Body) -> None:
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


def _job(body: Body) -> None:
    spec = mapping(body, "spec")
    _job_spec(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels and not body["metadata"].get("labels"):
        body["metadata"]["labels"] = dict(labels)
    body.setdefault("status", {})


def _cron_job(body: Body) -> None:
    spec = mapping(body, "spec")
    table = (
        ("concurrencyPolicy", "Allow"),
        ("suspend", False),
        ("successfulJobsHistoryLimit", 3),
        ("failedJobsHistoryLimit", 1),
    )
    fill(spec, table)
    # The defaults of a Job are those of a Job of its own, not of a template.
    job = mapping(spec, "jobTemplate")
    job.setdefault("metadata", {})
    pod_template(mapping(mapping(job, "spec"), "template"))
    body.setdefault("status", {})


# --- what a team's namespace holds ---------------------------------------------------------------------


def _namespace(body: Body) -> None:
    name = body["metadata"].get("name")
    if name:
        mapping(body["metadata"], "labels")["kubernetes.io/metadata.name"] = name
    mapping(body, "spec").setdefault("finalizers", ["kubernetes"])
    mapping(body, "status").setdefault("phase", "Active")


def _claim(body: Body) -> None:
    spec = mapping(body, "spec")
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("resources", {})
    mapping(body, "status").setdefault("phase", "Pending")
    # Admission: StorageObjectInUseProtection.
    finalizers = body["metadata"].setdefault("finalizers", [])
    if "kubernetes.io/pvc-protection" not in finalizers:
        finalizers.append("kubernetes.io/pvc-protection")


def _limit_range(body: Body) -> None:
    for item in places(body, "spec.limits[]"):
        if item.get("type") == "Container":
            default = {**(item.get("max") or {}), **(item.get("default") or {})}
            request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
            for name, value in (("default", default), ("defaultRequest", request)):
                if value:
                    item[name] = copy.deepcopy(value)


def _network_policy(body: Body) -> None:
    spec = mapping(body, "spec")
    for way in ("ingress[]", "egress[]"):
        fill(spec, ((f"{way}.ports[].protocol", "TCP"),))
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _role_binding(body: Body) -> None:
    fill(body, (("roleRef.apiGroup", RBAC),))
    for subject in places(body, "subjects[]"):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", RBAC)


def _priority_class(body: Body) -> None:
    body.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _status(body: Body) -> None:
    mapping(body, "spec")
    body.setdefault("status", {})


def _nothing(body: Body) -> None:
    pass


DEFAULTS: dict[tuple[str, str], Callable[[Body], None]] = {
    ("v1", "ConfigMap"): _nothing,
    ("v1", "LimitRange"): _limit_range,
    ("v1", "Namespace"): _namespace,
    ("v1", "PersistentVolumeClaim"): _claim,
    ("v1", "Pod"): pod,
    ("v1", "ResourceQuota"): _status,
    ("v1", "ServiceAccount"): _nothing,
    ("batch/v1", "CronJob"): _cron_job,
    ("batch/v1", "Job"): _job,
    ("networking.k8s.io/v1", "NetworkPolicy"): _network_policy,
    (f"{RBAC}/v1", "ClusterRole"): _nothing,
    (f"{RBAC}/v1", "ClusterRoleBinding"): _role_binding,
    (f"{RBAC}/v1", "Role"): _nothing,
    (f"{RBAC}/v1", "RoleBinding"): _role_binding,
    ("scheduling.k8s.io/v1", "PriorityClass"): _priority_class,
}
