"""The variables of expressions: the request of a GitOps engine, the namespace, the policy's variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gangplan.cel.errors import EvalError
from gangplan.validate.apiserver.policy.matching import AdmissionRequest
from gangplan.validate.apiserver.policy.model import User

Value = Any
# The metadata of a namespace that the server passes on (apiserver v0.34, plugin/cel/condition.go:
# CreateNamespaceObject).
_KEPT = ("name", "generateName", "namespace", "labels", "annotations", "finalizers")


def build_admission_request_value(request: AdmissionRequest, user: User) -> dict[str, Value]:
    """Return `request`: an AdmissionRequest as JSON; like the server, it omits empty fields."""
    resource = request.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    named = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    info: dict[str, Value] = {"username": user.username, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    options = "UpdateOptions" if request.operation == "UPDATE" else "CreateOptions"
    value = {
        "kind": kind,
        "resource": named,
        "requestKind": dict(kind),
        "requestResource": dict(named),
        "operation": request.operation,
        "userInfo": info,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": options},
    }
    if request.name:
        value["name"] = request.name
    if request.namespace_name:
        value["namespace"] = request.namespace_name
    return value


def build_admission_namespace_value(
    request: AdmissionRequest, *, is_whole: bool = False
) -> dict[str, Value] | None:
    """Return `namespaceObject`: null for cluster-scoped objects, and for a Namespace itself.

    With `is_whole`, it has all of its metadata, as audit annotations see it.
    """
    body = request.namespace
    if body is None or request.is_namespace or not request.resource.namespaced:
        return None
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if is_whole or key in _KEPT}
    return {"metadata": metadata, "spec": body.get("spec") or {}, "status": body.get("status") or {}}


class LazyVariables(dict[str, Value]):
    """`variables`: each is computed on first use and remembered, and so is its error."""

    __slots__ = ("_compute", "_errors", "_names")

    def __init__(self, names: Mapping[str, object], compute: Callable[[str], Value]) -> None:
        super().__init__()
        self._names = names
        self._compute = compute
        self._errors: dict[str, EvalError] = {}

    def __missing__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        if name in self._errors:
            raise self._errors[name]
        try:
            value = self._compute(name)
        except EvalError as wrong:
            said = f'composited variable "{name}" fails to evaluate: {wrong}'
            self._errors[name] = type(wrong)(said)
            raise self._errors[name] from wrong
        self[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def get(self, name: str, default: Value = None) -> Value:
        """Return the value, computed if necessary."""
        return self[name] if name in self._names else default
