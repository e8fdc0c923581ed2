"""The defaults of pods, wherever they are embedded in a built-in kind.

Source: k8s.io/kubernetes v1.34, pkg/apis/core/v1/defaults.go and plugin/pkg/admission (priority,
defaulttolerationseconds).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gangplan.objects import Body
from gangplan.validate.apiserver.defaulting.paths import (
    ensure_child_mapping,
    fill_fields_from_defaults_table,
    find_mappings,
    get_child_mapping,
)

Rows = tuple[tuple[str, Any], ...]

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_POD: Rows = (
    ("dnsPolicy", "ClusterFirst"),
    ("restartPolicy", "Always"),
    ("securityContext", {}),
    ("terminationGracePeriodSeconds", 30),
    ("schedulerName", "default-scheduler"),
    ("volumes[].secret.defaultMode", 420),
    ("volumes[].configMap.defaultMode", 420),
    ("volumes[].downwardAPI.defaultMode", 420),
    ("volumes[].projected.defaultMode", 420),
    ("volumes[].projected.sources[].serviceAccountToken.expirationSeconds", 3600),
    ("volumes[].downwardAPI.items[].fieldRef.apiVersion", "v1"),
    ("volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion", "v1"),
    ("volumes[].downwardAPI.items[].resourceFieldRef.divisor", "0"),
    ("volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor", "0"),
    ("volumes[].hostPath.type", ""),
    ("volumes[].iscsi.iscsiInterface", "default"),
    ("volumes[].rbd.pool", "rbd"),
    ("volumes[].rbd.user", "admin"),
    ("volumes[].rbd.keyring", "/etc/ceph/keyring"),
    ("volumes[].azureDisk.cachingMode", "ReadWrite"),
    ("volumes[].azureDisk.fsType", "ext4"),
    ("volumes[].azureDisk.readOnly", False),
    ("volumes[].azureDisk.kind", "Shared"),
    ("volumes[].scaleIO.storageMode", "ThinProvisioned"),
    ("volumes[].scaleIO.fsType", "xfs"),
    ("volumes[].ephemeral.volumeClaimTemplate.metadata", {}),
)
_CONTAINER: Rows = (
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
    ("resources", {}),
    ("ports[].protocol", "TCP"),
    ("env[].valueFrom.fieldRef.apiVersion", "v1"),
    ("env[].valueFrom.resourceFieldRef.divisor", "0"),
    ("env[].valueFrom.fileKeyRef.optional", False),
    ("lifecycle.postStart.httpGet.path", "/"),
    ("lifecycle.postStart.httpGet.scheme", "HTTP"),
    ("lifecycle.preStop.httpGet.path", "/"),
    ("lifecycle.preStop.httpGet.scheme", "HTTP"),
    *(
        (f"{probe}.{name}", value)
        for probe in PROBES
        for name, value in (
            ("timeoutSeconds", 1),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
            ("httpGet.path", "/"),
            ("httpGet.scheme", "HTTP"),
            ("grpc.service", ""),
        )
    ),
)


def fill_pod_spec_defaults(spec: Body) -> None:
    """Fill in the spec of a pod, wherever it is embedded in a built-in kind."""
    for volume in find_mappings(spec, "volumes[]"):
        if set(volume) <= {"name"}:
            volume["emptyDir"] = {}
    fill_fields_from_defaults_table(spec, _POD)
    for volume in find_mappings(spec, "volumes[]"):
        template = get_child_mapping(volume, "ephemeral").get("volumeClaimTemplate")
        if isinstance(template, dict):
            fill_claim_spec_defaults(ensure_child_mapping(template, "spec"))
        image = volume.get("image")
        if isinstance(image, dict) and not image.get("pullPolicy"):
            image["pullPolicy"] = _choose_default_image_pull_policy(str(image.get("reference") or ""))
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in _iterate_pod_containers(spec):
        fill_fields_from_defaults_table(container, _CONTAINER)
        if not container.get("imagePullPolicy"):
            container["imagePullPolicy"] = _choose_default_image_pull_policy(
                str(container.get("image") or "")
            )


def fill_claim_spec_defaults(spec: Body) -> None:
    """Fill in the spec of a PersistentVolumeClaim, or of a template of one."""
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("resources", {})
    # PrepareForCreate (NormalizeDataSources of pkg/api/persistentvolumeclaim): one source, two names.
    names = ("dataSource", "dataSourceRef")
    source = next((spec[name] for name in names if isinstance(spec.get(name), dict)), None)
    if source is not None and not source.get("namespace"):
        for name in names:
            spec.setdefault(name, dict(source))
            ensure_child_mapping(spec, name).setdefault("apiGroup", None)


def _iterate_pod_containers(spec: Body) -> Iterator[Body]:
    for name in CONTAINERS:
        yield from find_mappings(spec, f"{name}[]")


def _choose_default_image_pull_policy(image: str) -> str:
    """Return Always for `latest` and for no tag at all; a digest alone counts as a tag."""
    name, at, _ = image.partition("@")
    tag = re.search(r":([^/:]+)$", name)
    if tag is None:
        return "IfNotPresent" if at else "Always"
    return "Always" if tag[1] == "latest" else "IfNotPresent"


def fill_pod_defaults(body: Body) -> None:
    """Fill in a Pod object, which gets more defaults than a template."""
    spec = ensure_child_mapping(body, "spec")
    fill_pod_spec_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    _fill_service_account_plugin_defaults(spec)
    for container in [*find_mappings(spec, "containers[]"), *find_mappings(spec, "initContainers[]")]:
        resources = get_child_mapping(container, "resources")
        if isinstance(limits := resources.get("limits"), dict):
            resources["requests"] = {**limits, **get_child_mapping(resources, "requests")}
        for port in find_mappings(container, "ports[]"):
            if spec.get("hostNetwork") and not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort")
    # Admission: Priority and DefaultTolerationSeconds (both on by default).
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if isinstance(tolerations, list) and not any(
            _tolerates_no_execute_taint(one, key) for one in tolerations
        ):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    body.setdefault("status", {"phase": "Pending"})


TOKEN = "kube-api-access-"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def _fill_service_account_plugin_defaults(spec: Body) -> None:
    """Fill in what the admission plugin ServiceAccount does (plugin/pkg/admission/serviceaccount).

    A token is mounted unless the pod opts out. The settings of the service account are unknown here, and so
    is the end of the volume's name.
    """
    account = spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = account
    if spec.get("automountServiceAccountToken") is False:
        return
    names = [
        one["name"] for one in find_mappings(spec, "volumes[]") if str(one.get("name")).startswith(TOKEN)
    ]
    mount = {"name": names[0] if names else f"{TOKEN}xxxxx", "readOnly": True, "mountPath": TOKEN_PATH}
    is_needed = False
    for container in [*find_mappings(spec, "initContainers[]"), *find_mappings(spec, "containers[]")]:
        mounts = container.setdefault("volumeMounts", [])
        paths = [one.get("mountPath") for one in find_mappings(container, "volumeMounts[]")]
        if isinstance(mounts, list) and TOKEN_PATH not in paths:
            mounts.append(dict(mount))
            is_needed = True
    if is_needed and not names:
        token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
        root = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
        field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
        sources = [
            token,
            {"configMap": root},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ]
        volume = {"name": mount["name"], "projected": {"defaultMode": 420, "sources": sources}}
        volumes = spec.setdefault("volumes", [])
        if isinstance(volumes, list):
            volumes.append(volume)


def _tolerates_no_execute_taint(toleration: Any, key: str) -> bool:
    if not isinstance(toleration, dict):
        return False
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def fill_pod_template_defaults(template: Body) -> None:
    """Fill in a pod template inside a built-in kind."""
    template.setdefault("metadata", {})
    fill_pod_spec_defaults(ensure_child_mapping(template, "spec"))
