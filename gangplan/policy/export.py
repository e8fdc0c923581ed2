"""The policies of a cluster as objects that a GitOps engine applies and finds again unchanged."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from gangplan.objects import BINDING, POLICY, Body, apply_key
from gangplan.policy.checks import policy_sources
from gangplan.workspace import Workspace


def exported(workspace: Workspace, cluster: str) -> list[Body]:
    """Namespace, parameters, policies, bindings, in the order to apply them; what servers fill in too."""
    sources, _, _ = policy_sources(workspace, cluster)
    return sorted((settled(source.body) for source in sources), key=apply_key)


def settled(body: Body) -> Body:
    """A copy with the defaults that the API server would store, so that nothing drifts.

    Source: k8s.io/kubernetes v1.34, pkg/apis/admissionregistration/v1/defaults.go.
    """
    result = copy.deepcopy(body)
    spec = result.get("spec") or {}
    if result.get("kind") == POLICY:
        spec.setdefault("failurePolicy", "Fail")
    if result.get("kind") in (POLICY, BINDING):
        for match in _matches(spec):
            match.setdefault("matchPolicy", "Equivalent")
            match.setdefault("namespaceSelector", {})
            match.setdefault("objectSelector", {})
            for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
                rule.setdefault("scope", "*")
    return result


def _matches(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("matchConstraints", "matchResources"):
        if isinstance(spec.get(name), dict):
            yield spec[name]
