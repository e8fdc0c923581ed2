"""The defaults of built-in kinds; workloads are in `workloads.py`, what the Go types omit in `omitted.py`.

Source: k8s.io/kubernetes v1.34, defaults.go and zz_generated.defaults.go of
pkg/apis/{admissionregistration,core,discovery,networking,rbac,resource,scheduling,storage}/v1, and
PrepareForCreate of pkg/registry: an object that is created has no status of its own.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable

from gangplan.objects import Body
from gangplan.validate.apiserver.defaulting import workloads
from gangplan.validate.apiserver.defaulting.omitted import convert_to_go_form
from gangplan.validate.apiserver.defaulting.paths import (
    ensure_child_mapping,
    fill_fields_from_defaults_table,
    find_mappings,
    get_child_mapping,
)
from gangplan.validate.apiserver.defaulting.pods import fill_claim_spec_defaults, fill_pod_defaults

RBAC = "rbac.authorization.k8s.io"


def fill_builtin_defaults(body: Body) -> Body:
    """Return a copy with the defaults of a built-in kind; objects of other kinds are returned as they are."""
    defaults = BUILTIN_DEFAULTS.get((str(body.get("apiVersion")), str(body.get("kind"))))
    if defaults is None or not isinstance(body.get("metadata"), dict):
        return body
    result = convert_to_go_form(body)
    defaults(result)
    return result


# --- what a team's namespace holds ---------------------------------------------------------------------


def _fill_namespace_defaults(body: Body) -> None:
    name = body["metadata"].get("name")
    if name:
        ensure_child_mapping(body["metadata"], "labels")["kubernetes.io/metadata.name"] = name
    ensure_child_mapping(body, "spec").setdefault("finalizers", ["kubernetes"])
    ensure_child_mapping(body, "status").setdefault("phase", "Active")


def _fill_volume_claim_defaults(body: Body) -> None:
    fill_claim_spec_defaults(ensure_child_mapping(body, "spec"))
    body.setdefault("status", {"phase": "Pending"})
    # Admission: StorageObjectInUseProtection.
    _add_finalizer(body, "kubernetes.io/pvc-protection")


def _fill_volume_defaults(body: Body) -> None:
    fill_fields_from_defaults_table(
        body, (("spec.persistentVolumeReclaimPolicy", "Retain"), ("spec.volumeMode", "Filesystem"))
    )
    body.setdefault("status", {"phase": "Pending"})
    _add_finalizer(body, "kubernetes.io/pv-protection")


def _add_finalizer(body: Body, name: str) -> None:
    found = body["metadata"].setdefault("finalizers", [])
    if isinstance(found, list) and name not in found:
        found.append(name)


def _fill_limit_range_defaults(body: Body) -> None:
    for item in find_mappings(body, "spec.limits[]"):
        if item.get("type") == "Container":
            default = {**get_child_mapping(item, "max"), **get_child_mapping(item, "default")}
            request = {
                **get_child_mapping(item, "min"),
                **default,
                **get_child_mapping(item, "defaultRequest"),
            }
            for name, value in (("default", default), ("defaultRequest", request)):
                if value:
                    item[name] = copy.deepcopy(value)


def _fill_network_policy_defaults(body: Body) -> None:
    spec = ensure_child_mapping(body, "spec")
    for way in ("ingress[]", "egress[]"):
        fill_fields_from_defaults_table(spec, ((f"{way}.ports[].protocol", "TCP"),))
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _fill_role_binding_defaults(body: Body) -> None:
    fill_fields_from_defaults_table(body, (("roleRef.apiGroup", RBAC),))
    for subject in find_mappings(body, "subjects[]"):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", RBAC)


def _fill_priority_class_defaults(body: Body) -> None:
    body.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _fill_quota_defaults(body: Body) -> None:
    ensure_child_mapping(body, "spec")
    body.setdefault("status", {})


def _fill_secret_defaults(body: Body) -> None:
    body.setdefault("type", "Opaque")
    texts = get_child_mapping(body, "stringData")
    body.pop("stringData", None)
    if texts:
        coded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
        body["data"] = {**get_child_mapping(body, "data"), **coded}


def _fill_service_defaults(body: Body) -> None:
    """Fill in a Service, except addresses, their families and node ports, which only the cluster knows."""
    spec = ensure_child_mapping(body, "spec")
    fill_fields_from_defaults_table(
        spec, (("sessionAffinity", "None"), ("type", "ClusterIP"), ("ports[].protocol", "TCP"))
    )
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        timeout = ensure_child_mapping(ensure_child_mapping(spec, "sessionAffinityConfig"), "clientIP")
        timeout.setdefault("timeoutSeconds", 10800)
    for port in find_mappings(spec, "ports[]"):
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


def _fill_endpoint_slice_defaults(body: Body) -> None:
    fill_fields_from_defaults_table(
        body, (("ports[].name", ""), ("ports[].protocol", "TCP"), ("endpoints[].conditions", {}))
    )
    body.setdefault("ports", None)


def _fill_endpoints_defaults(body: Body) -> None:
    fill_fields_from_defaults_table(body, (("subsets[].ports[].protocol", "TCP"),))


def _fill_ingress_defaults(body: Body) -> None:
    ensure_child_mapping(body, "spec")
    body.setdefault("status", {"loadBalancer": {}})


def _fill_ingress_class_defaults(body: Body) -> None:
    fill_fields_from_defaults_table(ensure_child_mapping(body, "spec"), (("parameters.scope", "Cluster"),))


def _fill_disruption_budget_defaults(body: Body) -> None:
    ensure_child_mapping(body, "spec")
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    body.setdefault("status", dict.fromkeys(counts, 0))


def _fill_storage_class_defaults(body: Body) -> None:
    fill_fields_from_defaults_table(body, (("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")))


def _fill_csi_driver_defaults(body: Body) -> None:
    spec = ensure_child_mapping(body, "spec")
    off = ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount")
    fill_fields_from_defaults_table(spec, (("attachRequired", True), *((name, False) for name in off)))
    fill_fields_from_defaults_table(
        spec, (("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("volumeLifecycleModes", ["Persistent"]))
    )


def _fill_device_request_defaults(spec: Body) -> None:
    devices = ensure_child_mapping(spec, "devices")
    for request in find_mappings(devices, "requests[]"):
        exact = request.get("exactly")
        for one in [
            *find_mappings(request, "firstAvailable[]"),
            *([exact] if isinstance(exact, dict) else []),
        ]:
            one.setdefault("allocationMode", "ExactCount")
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1


def _fill_resource_claim_defaults(body: Body) -> None:
    _fill_device_request_defaults(ensure_child_mapping(body, "spec"))
    body.setdefault("status", {})


def _fill_claim_template_defaults(body: Body) -> None:
    spec = ensure_child_mapping(body, "spec")
    spec.setdefault("metadata", {})
    _fill_device_request_defaults(ensure_child_mapping(spec, "spec"))


def _fill_policy_match_defaults(match: Body) -> None:
    fill_fields_from_defaults_table(
        match, (("matchPolicy", "Equivalent"), ("namespaceSelector", {}), ("objectSelector", {}))
    )
    for rules in ("resourceRules[]", "excludeResourceRules[]"):
        fill_fields_from_defaults_table(match, ((f"{rules}.scope", "*"),))


def _fill_admission_policy_defaults(body: Body) -> None:
    spec = ensure_child_mapping(body, "spec")
    spec.setdefault("failurePolicy", "Fail")
    for match in find_mappings(spec, "matchConstraints"):
        _fill_policy_match_defaults(match)
    body.setdefault("status", {})


def _fill_policy_binding_defaults(body: Body) -> None:
    for match in find_mappings(body, "spec.matchResources"):
        _fill_policy_match_defaults(match)


def _fill_webhook_defaults(body: Body) -> None:
    is_mutating = body["kind"].startswith("Mutating")
    for one in find_mappings(body, "webhooks[]"):
        fill_fields_from_defaults_table(
            one, (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10))
        )
        fill_fields_from_defaults_table(
            one, (("namespaceSelector", {}), ("objectSelector", {}), ("rules[].scope", "*"))
        )
        fill_fields_from_defaults_table(one, (("clientConfig.service.port", 443),))
        if is_mutating:
            one.setdefault("reinvocationPolicy", "Never")


def _fill_role_defaults(body: Body) -> None:
    body.setdefault("rules", None)


def _fill_no_defaults(body: Body) -> None:
    pass


_REGISTRATION = "admissionregistration.k8s.io/v1"
BUILTIN_DEFAULTS: dict[tuple[str, str], Callable[[Body], None]] = {
    ("v1", "ConfigMap"): _fill_no_defaults,
    ("v1", "Endpoints"): _fill_endpoints_defaults,
    ("v1", "LimitRange"): _fill_limit_range_defaults,
    ("v1", "Namespace"): _fill_namespace_defaults,
    ("v1", "PersistentVolume"): _fill_volume_defaults,
    ("v1", "PersistentVolumeClaim"): _fill_volume_claim_defaults,
    ("v1", "Pod"): fill_pod_defaults,
    ("v1", "PodTemplate"): workloads.fill_pod_template_object_defaults,
    ("v1", "ReplicationController"): workloads.fill_replication_controller_defaults,
    ("v1", "ResourceQuota"): _fill_quota_defaults,
    ("v1", "Secret"): _fill_secret_defaults,
    ("v1", "Service"): _fill_service_defaults,
    ("v1", "ServiceAccount"): _fill_no_defaults,
    (_REGISTRATION, "MutatingWebhookConfiguration"): _fill_webhook_defaults,
    (_REGISTRATION, "ValidatingAdmissionPolicy"): _fill_admission_policy_defaults,
    (_REGISTRATION, "ValidatingAdmissionPolicyBinding"): _fill_policy_binding_defaults,
    (_REGISTRATION, "ValidatingWebhookConfiguration"): _fill_webhook_defaults,
    ("apps/v1", "DaemonSet"): workloads.fill_daemon_set_defaults,
    ("apps/v1", "Deployment"): workloads.fill_deployment_defaults,
    ("apps/v1", "ReplicaSet"): workloads.fill_replica_set_defaults,
    ("apps/v1", "StatefulSet"): workloads.fill_stateful_set_defaults,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): workloads.fill_autoscaler_defaults,
    ("batch/v1", "CronJob"): workloads.fill_cron_job_defaults,
    ("batch/v1", "Job"): workloads.fill_job_defaults,
    ("coordination.k8s.io/v1", "Lease"): _fill_no_defaults,
    ("discovery.k8s.io/v1", "EndpointSlice"): _fill_endpoint_slice_defaults,
    ("networking.k8s.io/v1", "Ingress"): _fill_ingress_defaults,
    ("networking.k8s.io/v1", "IngressClass"): _fill_ingress_class_defaults,
    ("networking.k8s.io/v1", "NetworkPolicy"): _fill_network_policy_defaults,
    ("node.k8s.io/v1", "RuntimeClass"): _fill_no_defaults,
    ("policy/v1", "PodDisruptionBudget"): _fill_disruption_budget_defaults,
    (f"{RBAC}/v1", "ClusterRole"): _fill_role_defaults,
    (f"{RBAC}/v1", "ClusterRoleBinding"): _fill_role_binding_defaults,
    (f"{RBAC}/v1", "Role"): _fill_role_defaults,
    (f"{RBAC}/v1", "RoleBinding"): _fill_role_binding_defaults,
    ("resource.k8s.io/v1", "DeviceClass"): _fill_no_defaults,
    ("resource.k8s.io/v1", "ResourceClaim"): _fill_resource_claim_defaults,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): _fill_claim_template_defaults,
    ("scheduling.k8s.io/v1", "PriorityClass"): _fill_priority_class_defaults,
    ("storage.k8s.io/v1", "CSIDriver"): _fill_csi_driver_defaults,
    ("storage.k8s.io/v1", "StorageClass"): _fill_storage_class_defaults,
}
