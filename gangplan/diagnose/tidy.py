"""Leave out of saved objects what no cluster writes: people edit saved files, and programs cut them off.

Everything after this may rely on the shapes below. Sources: core/v1 of Kubernetes v1.34, conditions of Trainer,
JobSet and Kueue, `status.admissionChecks` of Kueue v1beta2, `status.jobsStatus` of Trainer v1alpha1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.objects import Body
from gangplan.records import dataclass

_LEFT_OUT = object()
_ANY_KEY = "*"


@dataclass(frozen=True, slots=True)
class _Entries:
    """A list of mappings of one shape; entries that lack one of `needs` are left out."""

    shape: Mapping[str, Any]
    needs: tuple[str, ...] = ()


_TEXTS = {_ANY_KEY: str}
_METADATA = {
    **dict.fromkeys(("name", "namespace", "creationTimestamp"), str),
    **dict.fromkeys(("labels", "annotations"), _TEXTS),
    "ownerReferences": _Entries({"kind": str, "name": str}),
}
_CONTAINERS = _Entries({"name": str, "resources": {"limits": _TEXTS}})
_STATE = {"terminated": {"exitCode": int}, "waiting": {}}
_STATUSES = _Entries({"name": str, "state": _STATE, "lastState": _STATE})
_SHAPE: Mapping[str, Any] = {
    "kind": str,
    "metadata": _METADATA,
    "spec": dict.fromkeys(("containers", "initContainers"), _CONTAINERS),
    "status": {
        "conditions": _Entries({"type": str, "status": str}, needs=("type", "status")),
        "admissionChecks": _Entries({"name": str, "state": str}, needs=("name", "state")),
        "jobsStatus": _Entries({}),
        **dict.fromkeys(("containerStatuses", "initContainerStatuses"), _STATUSES),
    },
    "involvedObject": {},
    "regarding": {},
}


def drop_malformed_fields(body: Body) -> Body:
    """Return the object with metadata and a status, and without fields that diagnose reads in another type."""
    return {"metadata": {}, "status": {}, **_extract_well_formed_evidence(body, _SHAPE)}


def _extract_well_formed_evidence(value: Any, shape: Any) -> Any:
    """Return the value without what does not fit, or `_LEFT_OUT`; a number where a text is due, as text."""
    if isinstance(shape, _Entries):
        if not isinstance(value, list):
            return _LEFT_OUT
        kept = [_extract_well_formed_evidence(one, shape.shape) for one in value]
        return [one for one in kept if one is not _LEFT_OUT and all(name in one for name in shape.needs)]
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return _LEFT_OUT
        default = shape.get(_ANY_KEY)
        fields = {
            name: one if (of := shape.get(name, default)) is None else _extract_well_formed_evidence(one, of)
            for name, one in value.items()
        }
        return {name: one for name, one in fields.items() if one is not _LEFT_OUT}
    if shape is int:
        return value if isinstance(value, int) and not isinstance(value, bool) else _LEFT_OUT
    return _LEFT_OUT if value is None or isinstance(value, dict | list) else str(value)
