"""The meanings of fields of rendered objects, so that changes can be read by meaning and not by line."""

from __future__ import annotations

import re
from collections.abc import Sequence

# In the order of reports: first what decides what runs, last what only people read.
CHANGE_MEANINGS = (
    "image",
    "command",
    "resources",
    "scale",
    "placement",
    "queue",
    "quota",
    "lifecycle",
    "storage",
    "identity",
    "security",
    "network",
    "policy",
    "monitoring",
    "sync",
    "lineage",
    "labels",
    "other",
)

# Kinds that have one meaning as a whole, except for their metadata.
_KINDS = {
    "AdmissionCheck": "quota",
    "ClusterQueue": "quota",
    "ClusterRole": "identity",
    "ClusterRoleBinding": "identity",
    "Cohort": "quota",
    "ExternalSecret": "identity",
    "LimitRange": "quota",
    "LocalQueue": "queue",
    "MultiKueueCluster": "quota",
    "MultiKueueConfig": "quota",
    "NetworkPolicy": "network",
    "PersistentVolume": "storage",
    "PersistentVolumeClaim": "storage",
    "PodDisruptionBudget": "lifecycle",
    "PodMonitor": "monitoring",
    "PriorityClass": "queue",
    "PrometheusRule": "monitoring",
    "ProvisioningRequestConfig": "quota",
    "ResourceClaimTemplate": "resources",
    "ResourceFlavor": "placement",
    "ResourceQuota": "quota",
    "Role": "identity",
    "RoleBinding": "identity",
    "Secret": "identity",
    "ServiceAccount": "identity",
    "ServiceMonitor": "monitoring",
    "Topology": "placement",
    "ValidatingAdmissionPolicy": "policy",
    "ValidatingAdmissionPolicyBinding": "policy",
    "WorkloadPriorityClass": "queue",
}

# Names in the path of a field; the innermost listed one decides.
_STEPS = {
    "image": "image",
    "imagePullPolicy": "image",
    "imagePullSecrets": "image",
    "command": "command",
    "args": "command",
    "env": "command",
    "envFrom": "command",
    "workingDir": "command",
    "resources": "resources",
    "resourceClaims": "resources",
    "resourcesPerNode": "resources",
    "numNodes": "scale",
    "numProcPerNode": "scale",
    "replicas": "scale",
    "parallelism": "scale",
    "completions": "scale",
    "mlPolicy": "scale",
    "affinity": "placement",
    "nodeSelector": "placement",
    "tolerations": "placement",
    "topologySpreadConstraints": "placement",
    "schedulerName": "placement",
    "runtimeClassName": "placement",
    "podGroupPolicy": "placement",
    "priorityClassName": "queue",
    "suspend": "lifecycle",
    "activeDeadlineSeconds": "lifecycle",
    "backoffLimit": "lifecycle",
    "failurePolicy": "lifecycle",
    "podFailurePolicy": "lifecycle",
    "restartPolicy": "lifecycle",
    "successPolicy": "lifecycle",
    "startupPolicy": "lifecycle",
    "terminationGracePeriodSeconds": "lifecycle",
    "ttlSecondsAfterFinished": "lifecycle",
    "livenessProbe": "lifecycle",
    "readinessProbe": "lifecycle",
    "startupProbe": "lifecycle",
    "volumes": "storage",
    "volumeMounts": "storage",
    "serviceAccountName": "identity",
    "automountServiceAccountToken": "identity",
    "securityContext": "security",
    "hostNetwork": "network",
    "hostAliases": "network",
    "dnsPolicy": "network",
    "dnsConfig": "network",
    "ports": "network",
    "network": "network",
}

# Keys of labels and annotations; the first that matches decides.
_MARKS = (
    (re.compile(r"^pod-security\.kubernetes\.io/"), "security"),
    (re.compile(r"^kueue\.x-k8s\.io/(queue-name|priority-class)"), "queue"),
    (re.compile(r"^(kueue|provreq)\.x-k8s\.io/|^kueue\.x-k8s\.io/podset"), "placement"),
    (re.compile(r"^k8s\.v1\.cni\.cncf\.io/"), "network"),
    (re.compile(r"^(argocd\.argoproj\.io|kustomize\.toolkit\.fluxcd\.io)/"), "sync"),
    (re.compile(r"^gangplan\.dev/(state)$|^training\.openshift\.io/(timeout|log-retention)$"), "lifecycle"),
    (re.compile(r"^gangplan\.dev/waived-"), "policy"),
    (re.compile(r"^gangplan\.dev/(spec-hash|source|image-digest|datasets|model)"), "lineage"),
)


# Files of a platform whose ConfigMaps belong to what is next to them, such as parameters of policies.
_FILES = {"policies": "policy", "dashboards": "monitoring", "alerts": "monitoring"}


def find_meaning_of_changed_field(kind: str, path: Sequence[str | int], file: str = "") -> str:
    """Return the meaning of a field, as one of `CHANGE_MEANINGS`; `file` is where its object is rendered."""
    names = [step for step in path if isinstance(step, str)]
    for index, name in enumerate(names):
        if name in ("labels", "annotations") and names[index - 1 : index] == ["metadata"]:
            key = names[index + 1] if len(names) > index + 1 else ""
            return next((meaning for pattern, meaning in _MARKS if pattern.search(key)), "labels")
    if kind in _KINDS:
        return _KINDS[kind]
    if kind == "ConfigMap" and "/platform/" in file:
        return _FILES.get(file.rpartition("/")[2].partition(".")[0], "other")
    return next((_STEPS[name] for name in reversed(names) if name in _STEPS), "other")
