"""The parameter objects of a binding (apiserver v0.34, policy/generic/policy_dispatcher.go)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gangplan.objects import Body
from gangplan.validate.apiserver.policy.kinds import ExtraKinds
from gangplan.validate.apiserver.policy.matching import AdmissionRequest
from gangplan.validate.apiserver.policy.model import AdmissionPolicy, Binding, ParamRef
from gangplan.validate.apiserver.policy.selectors import matches_admission_policy_selector

MISSING = "no params found for policy binding with `Deny` parameterNotFoundAction"
PLACED = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
UNPLACED = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"


class ParameterObjects:
    """The objects of a cluster that may be parameters, by kind and name."""

    def __init__(self, bodies: Iterable[Body] = ()) -> None:
        self._bodies = tuple(bodies)
        # By kind, then by name; "" has all. Few objects are of a kind that some policy uses as parameters.
        self._known: dict[tuple[str, str], dict[object, list[Body]]] = {}

    def of(self, kind: tuple[str, str], name: str) -> Sequence[Body]:
        """Return the objects of an API version and kind, of one name if it is not ""."""
        if kind not in self._known:
            self._known[kind] = self._named(kind)
        return self._known[kind].get(name, ())

    def _named(self, kind: tuple[str, str]) -> dict[object, list[Body]]:
        found: dict[object, list[Body]] = {"": []}
        for body in self._bodies:
            if (body.get("apiVersion"), body.get("kind")) == kind:
                found[""].append(body)
                if name := (body.get("metadata") or {}).get("name"):
                    found.setdefault(name, []).append(body)
        return found


class ParamError(Exception):
    """The server refuses the request, with this message, because of the binding's parameters."""


def find_admission_parameter_objects(
    policy: AdmissionPolicy,
    binding: Binding,
    request: AdmissionRequest,
    known: ParameterObjects,
    kinds: ExtraKinds,
) -> list[Body | None]:
    """Return the parameter objects to judge with in turn; [None] if the policy or binding uses none.

    If it returns [], the binding does not judge this request. Raises ParamError.
    """
    ref = binding.params
    if policy.param_kind is None or ref is None:
        return [None]
    resource = kinds.find(*policy.param_kind)
    wanted = ""
    if resource.namespaced:
        wanted = ref.namespace or request.namespace_name
        if not wanted:
            raise ParamError(UNPLACED)
    elif ref.namespace:
        raise ParamError(PLACED)
    found: list[Body | None] = [
        body for body in known.of(policy.param_kind, ref.name) if _is_meant(body, ref, wanted)
    ]
    if not found and ref.denies_when_missing:
        raise ParamError(MISSING)
    return found


def _is_meant(body: Body, ref: ParamRef, namespace: str) -> bool:
    metadata = body.get("metadata") or {}
    if namespace and (metadata.get("namespace") or "default") != namespace:
        return False
    return bool(ref.name) or matches_admission_policy_selector(ref.selector, metadata.get("labels"))
