"""The defaults of pods, wherever they are embedded in a built-in kind.

Source: k8s.io/kubernetes v1.34, pkg/apis/core/v1/defaults.go and plugin/pkg/admission (priority,
defaulttolerationseconds).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gangplan.validate.apiserver.defaulting.paths import fill, mapping, places

Body = dict[str, Any]
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
    ("volumes[].hostPath.type", ""),
)
_CONTAINER: Rows = (
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
    ("resources", {}),
    ("ports[].protocol", "TCP"),
    ("env[].valueFrom.fieldRef.apiVersion", "v1"),
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
        )
    ),
)


def pod_spec(spec: Body) -> None:
    """The defaults of a pod, wherever it is embedded in a built-in kind."""
    for volume in places(spec, "volumes[]"):
        if set(volume) <= {"name"}:
            volume["emptyDir"] = {}
    fill(spec, _POD)
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in _containers(spec):
        fill(container, _CONTAINER)
        if not container.get("imagePullPolicy"):
            container["imagePullPolicy"] = _pull_policy(str(container.get("image") or ""))


def _containers(spec: Body) -> Iterator[Body]:
    for name in CONTAINERS:
        yield from places(spec, f"{name}[]")


def _pull_policy(image: str) -> str:
    """Always for `latest` and for no tag at all; a digest alone counts as a tag."""
    name, at, _ = image.partition("@")
    tag = re.search(r":([^/:]+)$", name)
    if tag is None:
        return "IfNotPresent" if at else "Always"
    return "Always" if tag[1] == "latest" else "IfNotPresent"


def pod(body: Body) -> None:
    """The defaults of a Pod of its own, which gets more than a template does."""
    spec = mapping(body, "spec")
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in [*places(spec, "containers[]"), *places(spec, "initContainers[]")]:
        limits = (container.get("resources") or {}).get("limits")
        if isinstance(limits, dict):
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
        for port in places(container, "ports[]"):
            if spec.get("hostNetwork") and not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort")
    # Admission: Priority and DefaultTolerationSeconds (both on by default).
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if isinstance(tolerations, list) and not any(_tolerates(one, key) for one in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    mapping(body, "status").setdefault("phase", "Pending")


def _tolerates(toleration: Any, key: str) -> bool:
    if not isinstance(toleration, dict):
        return False
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def pod_template(template: Body) -> None:
    """A pod template inside a built-in kind."""
    template.setdefault("metadata", {})
    pod_spec(mapping(template, "spec"))
