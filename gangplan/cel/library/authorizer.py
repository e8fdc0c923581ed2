"""The authorizer library, whose answers can't be known offline."""

from __future__ import annotations

from typing import NoReturn

from gangplan.cel.errors import UnknownError

_PREFIXES = ("authorizer_", "pathcheck_", "groupcheck_", "resourcecheck_", "decision_")


def is_authorizer(overload: str) -> bool:
    """Return whether an overload is one of the authorizer library (k8s.io/apiserver v0.34 `authz.go`)."""
    return overload.startswith(_PREFIXES)


def refuse_authorizer_call(*values: object) -> NoReturn:
    """Raise `UnknownError`, for every call of the library."""
    raise UnknownError("the expression asks the cluster's authorizer, which can't be asked offline")
