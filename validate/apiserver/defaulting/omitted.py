"""How the Go types of built-in kinds rewrite values that are absent, empty, or written in another form.

A server reads an object into Go types and writes it again before a policy sees it. It drops a null, and an
empty field that has `omitempty` and is not a pointer; a null among texts becomes the empty text, and an
amount gets its canonical form (`1000m` is `1`).

Source: the `json` tags of k8s.io/api v0.34 (types.go of all groups below) and of apimachinery's meta/v1;
`tests/policy/test_builtin_defaults.py` reads them in place.
"""

from __future__ import annotations

from typing import Any

from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.objects import Body

# Fields that have `omitempty` and are not pointers, wherever they occur.
_NAMES = """
accessModes add allocationMode allowedTopologies annotations apiGroups args auditAnnotations binaryData
caBundle chapAuthDiscovery chapAuthSession cidrs claims clusterIP clusterIPs clusterRoleSelectors
concurrencyPolicy constraints datasetName datasetUUID defaultRequest directory dnsPolicy drop egress env
envFrom ephemeralContainers except excludeResourceRules externalIPs externalName externalTrafficPolicy
failureThreshold finalizers firstAvailable from generateName globalDefault group hard healthCheckNodePort
host hostAliases hostIPC hostNetwork hostPID hostPort hostnames hosts httpHeaders imagePullPolicy
imagePullSecrets ingress initContainers initialDelaySeconds ipFamilies ips iscsiInterface items keyring
labels level loadBalancerIP loadBalancerSourceRanges managedFields matchConditions matchExpressions
matchFields matchLabelExpressions matchLabelKeys matchLabels maxLimitRequestRatio medium messageExpression
metrics minReadySeconds mismatchLabelKeys mountOptions nameservers namespaces nodePort nonResourceURLs
number onPodConditions operations options ownerReferences paused persistentVolumeReclaimPolicy podFixed
podManagementPolicy policies policyName policyTypes portals preferredDuringSchedulingIgnoredDuringExecution
prefix priorityClassName protectionDomain publishNotReadyAddresses pullPolicy readinessGates resizePolicy
resourceClaims resourceNames resourceRules restartPolicyRules role schedulerName schedulingGates scheme
scopes searches secretFile secrets selectors serviceAccount serviceAccountName sessionAffinity shortNames
sslEnabled stdin stdinOnce storageMode storagePolicyID storagePolicyName storagePool stringData subPath
subPathExpr subdomain subjects successThreshold supplementalGroups sysctls targetContainerName targetWWNs
tenant terminationMessagePath terminationMessagePolicy tls to tokenRequests tolerations
topologySpreadConstraints tty unschedulable validationActions validations variables volumeAttributes
volumeClaimTemplates volumeDevices volumeLifecycleModes volumeMounts volumeNamespace volumes webhooks
whenDeleted whenScaled workingDir wwids
"""
ALWAYS = frozenset(_NAMES.split())
# The same for fields that differ from type to type: parent -> fields. `[]` is an entry of a list.
BELOW: dict[str, frozenset[str]] = {
    "": frozenset({"data", "description", "parameters", "type"}),
    "claimRef": frozenset({"name", "namespace", "uid", "resourceVersion", "fieldPath"}),
    "configMap": frozenset({"name"}),
    "configMapKeyRef": frozenset({"name"}),
    "configMapRef": frozenset({"name"}),
    "containers[]": frozenset({"command", "image", "ports"}),
    "env[]": frozenset({"value"}),
    "ephemeralContainers[]": frozenset({"command", "image", "ports"}),
    "exec": frozenset({"command"}),
    "httpGet": frozenset({"path"}),
    "image": frozenset({"reference"}),
    "imagePullSecrets[]": frozenset({"name"}),
    "ingress[]": frozenset({"ports"}),
    "egress[]": frozenset({"ports"}),
    "initContainers[]": frozenset({"command", "image", "ports"}),
    "limits[]": frozenset({"default", "max", "min"}),
    "livenessProbe": frozenset({"timeoutSeconds", "periodSeconds"}),
    "matchExpressions[]": frozenset({"values"}),
    "matchFields[]": frozenset({"values"}),
    "metadata": frozenset({"name", "namespace", "generation", "resourceVersion", "uid"}),
    "nfs": frozenset({"readOnly"}),
    "paramKind": frozenset({"apiVersion", "kind"}),
    "paramRef": frozenset({"name", "namespace"}),
    "persistentVolumeClaim": frozenset({"readOnly"}),
    "podAffinity": frozenset({"requiredDuringSchedulingIgnoredDuringExecution"}),
    "podAntiAffinity": frozenset({"requiredDuringSchedulingIgnoredDuringExecution"}),
    "port": frozenset({"name"}),
    "ports[]": frozenset({"name", "protocol"}),
    "readinessProbe": frozenset({"timeoutSeconds", "periodSeconds"}),
    "resourceFieldRef": frozenset({"containerName"}),
    "resources": frozenset({"limits", "requests"}),
    "resourceRules[]": frozenset({"resources"}),
    "rules[]": frozenset({"resources"}),
    "scheduling": frozenset({"nodeSelector"}),
    "seLinuxOptions": frozenset({"type", "user"}),
    "secret": frozenset({"secretName", "name"}),
    "secretKeyRef": frozenset({"name"}),
    "secretRef": frozenset({"name"}),
    "serviceAccountToken": frozenset({"audience"}),
    "spec": frozenset(
        {
            *("capacity", "controller", "hostname", "nodeName", "nodeSelector", "overhead", "ports"),
            *("restartPolicy", "rules", "storageClassName", "type", "volumeName"),
        }
    ),
    "startupProbe": frozenset({"timeoutSeconds", "periodSeconds"}),
    "strategy": frozenset({"type"}),
    "subjects[]": frozenset({"apiGroup", "namespace"}),
    "tolerations[]": frozenset({"effect", "key", "operator", "value"}),
    "updateStrategy": frozenset({"type"}),
    "validations[]": frozenset({"message"}),
    "volumeMounts[]": frozenset({"readOnly"}),
    "webhooks[]": frozenset({"rules"}),
}
# Maps from a name to a text, and from a resource to an amount.
TEXTS = frozenset(
    {
        *("annotations", "data", "labels", "matchLabels", "nodeSelector", "options", "parameters"),
        *("stringData", "volumeAttributes"),
    }
)
AMOUNTS = frozenset(
    {
        *("capacity", "default", "defaultRequest", "hard", "limits", "max", "maxLimitRequestRatio", "min"),
        *("overhead", "podFixed", "requests"),
    }
)
AMOUNT = frozenset({"averageValue", "divisor", "sizeLimit"})


def convert_to_go_form(body: Body) -> Body:
    """Return a copy in the form that the Go types give it; values of the wrong type stay."""
    return _drop_omitempty_fields(body, "")


def drop_nulls(value: Any) -> Any:
    """Return a copy without the fields that are null; entries of lists stay."""
    if isinstance(value, dict):
        return {name: drop_nulls(inner) for name, inner in value.items() if inner is not None}
    return [drop_nulls(one) for one in value] if isinstance(value, list) else value


def _drop_omitempty_fields(value: Body, parent: str) -> Body:
    below = BELOW.get(parent, frozenset())
    result: Body = {}
    for name, inner in value.items():
        if inner is None or (not inner and (name in ALWAYS or name in below)):
            continue
        result[name] = _convert_field_to_go_form(inner, name)
    return result


def _convert_field_to_go_form(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        if name in TEXTS:
            return {key: "" if text is None else text for key, text in value.items()}
        if name in AMOUNTS and all(not isinstance(one, dict | list) for one in value.values()):
            return {key: format_quantity_like_api_server(one) for key, one in value.items()}
        return _drop_omitempty_fields(value, name)
    if isinstance(value, list):
        return [_drop_omitempty_fields(one, f"{name}[]") if isinstance(one, dict) else one for one in value]
    return format_quantity_like_api_server(value) if name in AMOUNT else value


def format_quantity_like_api_server(value: Any) -> Any:
    """Return an amount as a server writes it: `1000m` becomes `1`, 0.5 `500m`; other values stay."""
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return parse_quantity(str(value).strip()).canonical()
    except QuantityError:
        return value
