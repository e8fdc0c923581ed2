"""The defaults of built-in kinds; workloads are in `workloads.py`, what the Go types omit in `omitted.py`.

Source: k8s.io/kubernetes v1.34, defaults.go and zz_generated.defaults.go of
pkg/apis/{admissionregistration,core,discovery,networking,rbac,resource,scheduling,storage}/v1, and
PrepareForCreate of pkg/registry: an object that is created has no status of its own.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from typing import Any

from gangplan.validate.apiserver.defaulting import workloads
from gangplan.validate.apiserver.defaulting.omitted import written
from gangplan.validate.apiserver.defaulting.paths import fill, mapping, places
from gangplan.validate.apiserver.defaulting.pods import claim_spec, pod

Body = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"


def filled(body: Body) -> Body:
    """Return a copy with the defaults of a built-in kind; objects of other kinds are returned as they are."""
    defaults = DEFAULTS.get((str(body.get("apiVersion")), str(body.get("kind"))))
    if defaults is None or not isinstance(body.get("metadata"), dict):
        return body
    result = written(body)
    defaults(result)
    return result


# --- what a team's namespace holds ---------------------------------------------------------------------


def _namespace(body: Body) -> None:
    name = body["metadata"].get("name")
    if name:
        mapping(body["metadata"], "labels")["kubernetes.io/metadata.name"] = name
    mapping(body, "spec").setdefault("finalizers", ["kubernetes"])
    mapping(body, "status").setdefault("phase", "Active")


def _claim(body: Body) -> None:
    claim_spec(mapping(body, "spec"))
    body.setdefault("status", {"phase": "Pending"})
    # Admission: StorageObjectInUseProtection.
    finalizers = body["metadata"].setdefault("finalizers", [])
    if "kubernetes.io/pvc-protection" not in finalizers:
        finalizers.append("kubernetes.io/pvc-protection")


def _volume(body: Body) -> None:
    fill(body, (("spec.persistentVolumeReclaimPolicy", "Retain"), ("spec.volumeMode", "Filesystem")))
    body.setdefault("status", {"phase": "Pending"})
    finalizers = body["metadata"].setdefault("finalizers", [])
    if "kubernetes.io/pv-protection" not in finalizers:
        finalizers.append("kubernetes.io/pv-protection")


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


def _quota(body: Body) -> None:
    mapping(body, "spec")
    body.setdefault("status", {})


def _secret(body: Body) -> None:
    body.setdefault("type", "Opaque")
    texts = body.pop("stringData", None)
    if texts:
        coded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
        body["data"] = {**(body.get("data") or {}), **coded}


def _service(body: Body) -> None:
    """Fill in a Service, except addresses, their families and node ports, which only the cluster knows."""
    spec = mapping(body, "spec")
    fill(spec, (("sessionAffinity", "None"), ("type", "ClusterIP"), ("ports[].protocol", "TCP")))
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        timeout = mapping(mapping(spec, "sessionAffinityConfig"), "clientIP")
        timeout.setdefault("timeoutSeconds", 10800)
    for port in places(spec, "ports[]"):
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port")
    is_external = spec["type"] in ("NodePort", "LoadBalancer")
    if is_external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        is_open = spec.get("clusterIP") == "None" and not spec.get("selector")
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_open else "SingleStack")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("clusterIP") == "None":
        spec.setdefault("clusterIPs", ["None"])
    body.setdefault("status", {"loadBalancer": {}})


def _endpoint_slice(body: Body) -> None:
    fill(body, (("ports[].name", ""), ("ports[].protocol", "TCP"), ("endpoints[].conditions", {})))
    body.setdefault("ports", None)


def _endpoints(body: Body) -> None:
    fill(body, (("subsets[].ports[].protocol", "TCP"),))


def _ingress(body: Body) -> None:
    mapping(body, "spec")
    body.setdefault("status", {"loadBalancer": {}})


def _ingress_class(body: Body) -> None:
    fill(mapping(body, "spec"), (("parameters.scope", "Cluster"),))


def _disruption_budget(body: Body) -> None:
    mapping(body, "spec")
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    body.setdefault("status", dict.fromkeys(counts, 0))


def _storage_class(body: Body) -> None:
    fill(body, (("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")))


def _csi_driver(body: Body) -> None:
    spec = mapping(body, "spec")
    off = ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")
    fill(spec, (("attachRequired", True), *((name, False) for name in off)))
    fill(spec, (("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("volumeLifecycleModes", ["Persistent"])))


def _device_claim(spec: Body) -> None:
    devices = mapping(spec, "devices")
    for request in places(devices, "requests[]"):
        exact = request.get("exactly")
        for one in [*places(request, "firstAvailable[]"), *([exact] if isinstance(exact, dict) else [])]:
            one.setdefault("allocationMode", "ExactCount")
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1


def _resource_claim(body: Body) -> None:
    _device_claim(mapping(body, "spec"))
    body.setdefault("status", {})


def _resource_claim_template(body: Body) -> None:
    spec = mapping(body, "spec")
    spec.setdefault("metadata", {})
    _device_claim(mapping(spec, "spec"))


def _selectors(match: Body) -> None:
    fill(match, (("matchPolicy", "Equivalent"), ("namespaceSelector", {}), ("objectSelector", {})))
    for rules in ("resourceRules[]", "excludeResourceRules[]"):
        fill(match, ((f"{rules}.scope", "*"),))


def _policy(body: Body) -> None:
    spec = mapping(body, "spec")
    spec.setdefault("failurePolicy", "Fail")
    for match in places(spec, "matchConstraints"):
        _selectors(match)
    body.setdefault("status", {})


def _policy_binding(body: Body) -> None:
    for match in places(body, "spec.matchResources"):
        _selectors(match)


def _webhooks(body: Body) -> None:
    is_mutating = body["kind"].startswith("Mutating")
    for one in places(body, "webhooks[]"):
        fill(one, (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10)))
        fill(one, (("namespaceSelector", {}), ("objectSelector", {}), ("rules[].scope", "*")))
        fill(one, (("clientConfig.service.port", 443),))
        if is_mutating:
            one.setdefault("reinvocationPolicy", "Never")


def _rules(body: Body) -> None:
    body.setdefault("rules", None)


def _nothing(body: Body) -> None:
    pass


_REGISTRATION = "admissionregistration.k8s.io/v1"
DEFAULTS: dict[tuple[str, str], Callable[[Body], None]] = {
    ("v1", "ConfigMap"): _nothing,
    ("v1", "Endpoints"): _endpoints,
    ("v1", "LimitRange"): _limit_range,
    ("v1", "Namespace"): _namespace,
    ("v1", "PersistentVolume"): _volume,
    ("v1", "PersistentVolumeClaim"): _claim,
    ("v1", "Pod"): pod,
    ("v1", "PodTemplate"): workloads.pod_template_object,
    ("v1", "ReplicationController"): workloads.replication_controller,
    ("v1", "ResourceQuota"): _quota,
    ("v1", "Secret"): _secret,
    ("v1", "Service"): _service,
    ("v1", "ServiceAccount"): _nothing,
    (_REGISTRATION, "MutatingWebhookConfiguration"): _webhooks,
    (_REGISTRATION, "ValidatingAdmissionPolicy"): _policy,
    (_REGISTRATION, "ValidatingAdmissionPolicyBinding"): _policy_binding,
    (_REGISTRATION, "ValidatingWebhookConfiguration"): _webhooks,
    ("apps/v1", "DaemonSet"): workloads.daemon_set,
    ("apps/v1", "Deployment"): workloads.deployment,
    ("apps/v1", "ReplicaSet"): workloads.replica_set,
    ("apps/v1", "StatefulSet"): workloads.stateful_set,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): workloads.autoscaler,
    ("batch/v1", "CronJob"): workloads.cron_job,
    ("batch/v1", "Job"): workloads.job,
    ("coordination.k8s.io/v1", "Lease"): _nothing,
    ("discovery.k8s.io/v1", "EndpointSlice"): _endpoint_slice,
    ("networking.k8s.io/v1", "Ingress"): _ingress,
    ("networking.k8s.io/v1", "IngressClass"): _ingress_class,
    ("networking.k8s.io/v1", "NetworkPolicy"): _network_policy,
    ("node.k8s.io/v1", "RuntimeClass"): _nothing,
    ("policy/v1", "PodDisruptionBudget"): _disruption_budget,
    (f"{RBAC}/v1", "ClusterRole"): _rules,
    (f"{RBAC}/v1", "ClusterRoleBinding"): _role_binding,
    (f"{RBAC}/v1", "Role"): _rules,
    (f"{RBAC}/v1", "RoleBinding"): _role_binding,
    ("resource.k8s.io/v1", "DeviceClass"): _nothing,
    ("resource.k8s.io/v1", "ResourceClaim"): _resource_claim,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): _resource_claim_template,
    ("scheduling.k8s.io/v1", "PriorityClass"): _priority_class,
    ("storage.k8s.io/v1", "CSIDriver"): _csi_driver,
    ("storage.k8s.io/v1", "StorageClass"): _storage_class,
}
