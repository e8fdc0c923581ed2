"""The variables that the API server declares for expressions of admission policies.

Source: k8s.io/apiserver v0.34.4, pkg/admission/plugin/cel/compile.go and composition.go. `object`,
`oldObject` and `params` are dyn there, even with a schema (which only causes warnings in the policy's
status).
"""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.cel.types import (
    BOOL,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    ObjectType,
    Type,
    list_of,
    map_of,
)

_STRINGS = list_of(STRING)

_KIND = ObjectType("kubernetes.GroupVersionKind", fields={"group": STRING, "version": STRING, "kind": STRING})
_RESOURCE = ObjectType(
    "kubernetes.GroupVersionResource", fields={"group": STRING, "version": STRING, "resource": STRING}
)
_USER = ObjectType(
    "kubernetes.UserInfo",
    fields={"username": STRING, "uid": STRING, "groups": _STRINGS, "extra": map_of(STRING, _STRINGS)},
)
REQUEST = ObjectType(
    "kubernetes.AdmissionRequest",
    fields={
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)

_CONDITION = ObjectType(
    "kubernetes.NamespaceCondition",
    fields={
        "status": STRING,
        "type": STRING,
        "lastTransitionTime": TIMESTAMP,
        "message": STRING,
        "reason": STRING,
    },
)
_METADATA = ObjectType(
    "kubernetes.NamespaceMetadata",
    fields={
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": _STRINGS,
    },
)
NAMESPACE = ObjectType(
    "kubernetes.Namespace",
    fields={
        "metadata": _METADATA,
        "spec": ObjectType("kubernetes.NamespaceSpec", fields={"finalizers": _STRINGS}),
        "status": ObjectType(
            "kubernetes.NamespaceStatus", fields={"conditions": list_of(_CONDITION), "phase": STRING}
        ),
    },
)
AUTHORIZER = Type("kubernetes.authorization.Authorizer")
RESOURCE_CHECK = Type("kubernetes.authorization.ResourceCheck")

# Types that a policy's variable keeps; where `variables` is used, every other type is dyn.
_KEPT = frozenset(
    (
        "bool",
        "bytes",
        "double",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "int",
        "null_type",
        "string",
        "uint",
    )
)


def declare_cel_policy_variables(
    *, has_params: bool, has_authorizer: bool = True, composed: Mapping[str, Type] | None = None
) -> dict[str, Type]:
    """Return the variables of a policy's expressions with their types.

    `has_params`: the policy names a paramKind; without one, `params` is not declared. `has_authorizer`: false
    in messageExpression, which the API server compiles without it (validating/plugin.go). `composed` are the
    policy's own earlier variables with the types of their expressions, as `resolve_composed_type` returns
    them.
    """
    found: dict[str, Type] = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": NAMESPACE,
        "request": REQUEST,
        "variables": ObjectType("kubernetes.variables", fields=dict(composed or {})),
    }
    if has_params:
        found["params"] = DYN
    if has_authorizer:
        found["authorizer"] = AUTHORIZER
        found["authorizer.requestResource"] = RESOURCE_CHECK
    return found


def resolve_composed_type(type_: Type) -> Type:
    """Return the type of `variables.x` for an expression's type: quantities, addresses and optionals become
    dyn."""
    if type_.name in _KEPT and type(type_) is Type:
        return type_
    if type_.name in ("list", "map"):
        return Type(type_.name, tuple(map(resolve_composed_type, type_.parameters)))
    return DYN


def find_expressions_minor(server: int) -> int:
    """Return the minor whose functions a server of Kubernetes 1.`server` accepts in new policies: the one
    before.

    So a server can be rolled back. Stored policies may use every function that the server has
    (k8s.io/apiserver v0.34.4, pkg/cel/environment/base.go: DefaultCompatibilityVersion).
    """
    return server - 1
