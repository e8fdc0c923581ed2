"""Write the policies of a cluster as objects that a GitOps engine can apply without drift.

`render` writes them to platform/policies.yaml, and `policy export` prints the same.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gangplan.gitops.guardrails import Guardrails
from gangplan.model import syncing
from gangplan.model.kinds import WAVES
from gangplan.objects import ADMISSION, BINDING, POLICY, Body
from gangplan.packs.read import PolicySource
from gangplan.policy.checks import policy_sources
from gangplan.policy.choose import ChosenPolicy
from gangplan.policy.guards import guarded
from gangplan.policy.objects import NAMESPACE, PREFIX, namespace_object
from gangplan.records import dataclass
from gangplan.spec.cluster import Policies
from gangplan.workspace import Workspace

# Any other object is applied in the wave of the parameters, before the policies.
FIRST_WAVE = WAVES["policies", "ConfigMap"]
_STRENGTH = ("Audit", "Warn", "Deny")


@dataclass(frozen=True, slots=True, eq=False)
class Emitted:
    """An object as it is applied, its source, and for packs the chosen policy that it is part of."""

    body: Body
    source: PolicySource
    chosen: ChosenPolicy | None = None


def exported(workspace: Workspace, cluster: str) -> list[Body]:
    """Return namespace, parameters, policies and bindings in the order to apply them, with the API server's
    defaults."""
    return [one.body for one in emitted(workspace, cluster)]


def emitted(workspace: Workspace, cluster: str) -> list[Emitted]:
    """Return the objects to apply, in that order, each with its source.

    `check_policies` reports what is wrong with them.
    """
    sources, pages, _ = policy_sources(workspace, cluster)
    if not sources:
        return []
    file = workspace.clusters[cluster]
    sources = _without_empty_home([one for one in sources if not _is_left_out(one.body, pages)])
    names = frozenset(_name(one.body) for one in sources if one.body.get("kind") == POLICY)
    if NAMESPACE in map(_home, sources) and not any(_is_home(one) for one in sources):
        sources = [PolicySource(namespace_object(), None, file.document.file), *sources]
    found = [
        Emitted(applied(one, file.spec.policies, names), one, _chosen(one.body, pages)) for one in sources
    ]
    return sorted(found, key=_order)


def _without_empty_home(sources: list[PolicySource]) -> list[PolicySource]:
    is_needed = NAMESPACE in map(_home, sources)
    return [one for one in sources if is_needed or not _is_home(one)]


def _is_left_out(body: Body, pages: Mapping[str, ChosenPolicy]) -> bool:
    """Return whether an object belongs to a policy that the API server cannot judge."""
    chosen = _chosen(body, pages)
    return chosen is not None and bool(chosen.page.ci_only)


def server_action(action: str, enforcement: str) -> str:
    """Return what the API server does about a breach: `action`, or `enforcement` if that is weaker."""
    return min(action, enforcement, key=_STRENGTH.index)


def applied(source: PolicySource, settings: Policies, policies: Collection[str]) -> Body:
    """Return an object under its name in the cluster, with defaults, guards and the annotations for GitOps
    engines."""
    body = settled(source.body)
    kind, spec = body.get("kind"), body.get("spec")
    metadata = body.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        return body
    if kind in (POLICY, BINDING):
        metadata["name"] = f"{PREFIX}{metadata.get('name')}"
    if kind == POLICY and isinstance(spec, dict):
        guarded(spec, settings.controllers)
    if kind == BINDING and isinstance(spec, dict):
        if spec.get("policyName") in policies:
            spec["policyName"] = f"{PREFIX}{spec['policyName']}"
        spec["validationActions"] = _capped(spec.get("validationActions"), settings.enforcement)
    wave = WAVES.get(("policies", str(kind)), FIRST_WAVE)
    own = {**syncing.in_wave(wave), "gangplan.dev/source": source.file}
    if "${" in str(body):
        own |= syncing.of_verbatim()
    metadata["annotations"] = dict(sorted({**(metadata.get("annotations") or {}), **own}.items()))
    return body


def _capped(actions: Any, enforcement: str) -> list[str]:
    """Return the actions of a binding, none stronger than the cluster enforces."""
    known = [one for one in actions or () if one in _STRENGTH]
    return list(dict.fromkeys(server_action(one, enforcement) for one in known))


def _chosen(body: Body, pages: Mapping[str, ChosenPolicy]) -> ChosenPolicy | None:
    """Return the chosen policy of a pack that an object belongs to, if any."""
    name = _name(body)
    if body.get("kind") not in (POLICY, BINDING):
        name = name.removeprefix(PREFIX)
    return pages.get(name) or pages.get(name.removesuffix("-object")) or _named(name, pages)


def _named(policy: str, pages: Mapping[str, ChosenPolicy]) -> ChosenPolicy | None:
    return next((one for one in pages.values() if one.policy == policy), None)


def _order(one: Emitted) -> tuple[int, bool, str, str, str]:
    """Return the sort key: namespaces first, then parameters, policies and bindings, each by name."""
    kind = str(one.body.get("kind"))
    wave = WAVES.get(("policies", kind), FIRST_WAVE)
    return wave, not _is_namespace(one.source), kind, _home(one.source), _name(one.body)


def _is_home(source: PolicySource) -> bool:
    return _is_namespace(source) and _name(source.body) == NAMESPACE


def _is_namespace(source: PolicySource) -> bool:
    return source.body.get("kind") == "Namespace"


def _home(source: PolicySource) -> str:
    return str((source.body.get("metadata") or {}).get("namespace") or "")


def _name(body: Body) -> str:
    return str((body.get("metadata") or {}).get("name"))


def guardrails(workspace: Workspace, cluster: str) -> Guardrails:
    """Return what the GitOps project that applies the cluster's policies must allow."""
    rest = [body for body in exported(workspace, cluster) if body.get("apiVersion") != ADMISSION]
    homes = {NAMESPACE}
    wide: set[tuple[str, str]] = set()
    spaced: set[tuple[str, str]] = set()
    for body in rest:
        kind = str(body.get("apiVersion")).rpartition("/")[0], str(body.get("kind"))
        home = (body.get("metadata") or {}).get("namespace")
        homes |= {str(home)} if home else set()
        (spaced if home else wide).add(kind)
    wide.discard(("", "Namespace"))  # every guardrail project allows it
    return Guardrails(PREFIX, tuple(sorted(homes)), tuple(sorted(wide)), tuple(sorted(spaced)))


def settled(body: Body) -> Body:
    """Return a copy with the defaults that the API server would store, so that nothing drifts.

    Source: k8s.io/kubernetes v1.34, pkg/apis/admissionregistration/v1/defaults.go.
    """
    result = copy.deepcopy(body)
    spec = result.get("spec")
    if not isinstance(spec, dict):
        return result
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
