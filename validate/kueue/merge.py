"""Strategic merge of pod and job templates, as Trainer applies the patches of a TrainJob.

k8s.io/apimachinery pkg/util/strategicpatch v0.34; the merge keys are those of core/v1 (`patchMergeKey` tags
of types.go). Lists without a merge key are replaced, among them tolerations.
"""

from __future__ import annotations

from typing import Any

from gangplan.validate.apiserver.forms import Body

KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
}


def merged(source: Body, patch: Body) -> Body:
    """The source with the patch on it; neither is changed. A null in the patch removes."""
    out = dict(source)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], value)
        elif isinstance(value, list) and key in KEYS and isinstance(out.get(key), list):
            out[key] = _lists(out[key], value, KEYS[key])
        else:
            out[key] = value
    return out


def _lists(source: list[Any], patch: list[Any], key: str) -> list[Any]:
    out = list(source)
    for item in patch:
        at = next((at for at, known in enumerate(out) if known.get(key) == item.get(key)), None)
        if at is None:
            out.append(item)
        else:
            out[at] = merged(out[at], item)
    return out
