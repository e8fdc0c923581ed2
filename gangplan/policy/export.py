"""Write the policies of a cluster as objects that a GitOps engine can apply without drift.

`render` writes them to platform/policies.yaml, and `policy export` prints the same.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gangplan.gitops.guardrails import Guardrails
from gangplan.model import syncing
from gangplan.model.kinds import SYNC_WAVES
from gangplan.objects import ADMISSION_API, BINDING_KIND, POLICY_KIND, Body
from gangplan.packs.read import PolicySource
from gangplan.policy.checks import collect_policy_sources
from gangplan.policy.choose import ChosenPolicy
from gangplan.policy.guards import OPENSHIFT_CONTROLLERS, add_policy_guard_conditions
from gangplan.policy.objects import (
    POLICIES_NAMESPACE,
    POLICY_OBJECT_LABELS,
    POLICY_PREFIX,
    build_policies_namespace,
)
from gangplan.records import dataclass
from gangplan.spec.cluster import Policies
from gangplan.workspace import Workspace

# Any other object is applied in the wave of the parameters, before the policies.
FIRST_WAVE = SYNC_WAVES["policies", "ConfigMap"]
_STRENGTH = ("Audit", "Warn", "Deny")


@dataclass(frozen=True, slots=True, eq=False)
class AppliedObject:
    """An object as it is applied, its source, and for packs the chosen policy that it is part of."""

    body: Body
    source: PolicySource
    chosen: ChosenPolicy | None = None


def export_objects(workspace: Workspace, cluster: str) -> list[Body]:
    """Return namespace, parameters, policies and bindings in the order to apply them, with the API server's
    defaults."""
    return [one.body for one in build_applied_policy_objects(workspace, cluster)]


def build_applied_policy_objects(workspace: Workspace, cluster: str) -> list[AppliedObject]:
    """Return the objects to apply, in that order, each with its source.

    `check_policies` reports what is wrong with them.
    """
    sources, pages, _ = collect_policy_sources(workspace, cluster)
    if not sources:
        return []
    file = workspace.clusters[cluster]
    sources = _drop_unused_policy_namespace([one for one in sources if not _is_left_out(one.body, pages)])
    names = frozenset(_read_object_name(one.body) for one in sources if one.body.get("kind") == POLICY_KIND)
    if POLICIES_NAMESPACE in map(_read_object_namespace, sources) and not any(
        _is_home(one) for one in sources
    ):
        sources = [PolicySource(build_policies_namespace(), None, file.document.file), *sources]
    settings = file.spec.policies
    if file.spec.versions.openshift:
        controllers = (*settings.controllers, *OPENSHIFT_CONTROLLERS)
        settings = settings.model_copy(update={"controllers": controllers})
    found = [
        AppliedObject(
            name_policy_object_in_cluster(one, settings, names),
            one,
            _find_chosen_policy(one.body, pages),
        )
        for one in sources
    ]
    return sorted(found, key=_build_policy_apply_sort_key)


def _drop_unused_policy_namespace(sources: list[PolicySource]) -> list[PolicySource]:
    is_needed = POLICIES_NAMESPACE in map(_read_object_namespace, sources)
    return [one for one in sources if is_needed or not _is_home(one)]


def _is_left_out(body: Body, pages: Mapping[str, ChosenPolicy]) -> bool:
    """Return whether an object belongs to a policy that the API server cannot judge."""
    chosen = _find_chosen_policy(body, pages)
    return chosen is not None and bool(chosen.page.ci_only)


def choose_server_action(action: str, enforcement: str) -> str:
    """Return what the API server does about a breach: `action`, or `enforcement` if that is weaker."""
    return min(action, enforcement, key=_STRENGTH.index)


def name_policy_object_in_cluster(
    source: PolicySource, settings: Policies, policies: Collection[str]
) -> Body:
    """Return an object under its name in the cluster, with defaults, guards and the annotations for GitOps
    engines."""
    body = fill_policy_defaults_of_server(source.body)
    kind, spec = body.get("kind"), body.get("spec")
    metadata = body.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        return body
    if kind in (POLICY_KIND, BINDING_KIND):
        metadata["name"] = f"{POLICY_PREFIX}{metadata.get('name')}"
    if kind == POLICY_KIND and isinstance(spec, dict):
        add_policy_guard_conditions(spec, settings.controllers)
    if kind == BINDING_KIND and isinstance(spec, dict):
        if spec.get("policyName") in policies:
            spec["policyName"] = f"{POLICY_PREFIX}{spec['policyName']}"
        spec["validationActions"] = _cap_binding_actions(spec.get("validationActions"), settings.enforcement)
    wave = SYNC_WAVES.get(("policies", str(kind)), FIRST_WAVE)
    own = {**syncing.build_wave_annotations(wave), "gangplan.dev/source": source.file}
    if "${" in str(body):
        own |= syncing.build_verbatim_annotations()
    # `gitops sync` removes only what has this label.
    metadata["labels"] = {**(metadata.get("labels") or {}), **POLICY_OBJECT_LABELS}
    metadata["annotations"] = dict(sorted({**(metadata.get("annotations") or {}), **own}.items()))
    return body


def _cap_binding_actions(actions: Any, enforcement: str) -> list[str]:
    """Return the actions of a binding, none stronger than the cluster enforces."""
    known = [one for one in actions or () if one in _STRENGTH]
    return list(dict.fromkeys(choose_server_action(one, enforcement) for one in known))


def _find_chosen_policy(body: Body, pages: Mapping[str, ChosenPolicy]) -> ChosenPolicy | None:
    """Return the chosen policy of a pack that an object belongs to, if any."""
    name = _read_object_name(body)
    if body.get("kind") not in (POLICY_KIND, BINDING_KIND):
        name = name.removeprefix(POLICY_PREFIX)
    return pages.get(name) or pages.get(name.removesuffix("-object")) or _find_policy_by_name(name, pages)


def _find_policy_by_name(policy: str, pages: Mapping[str, ChosenPolicy]) -> ChosenPolicy | None:
    return next((one for one in pages.values() if one.policy == policy), None)


def _build_policy_apply_sort_key(one: AppliedObject) -> tuple[int, bool, str, str, str]:
    """Return the sort key: namespaces first, then parameters, policies and bindings, each by name."""
    kind = str(one.body.get("kind"))
    wave = SYNC_WAVES.get(("policies", kind), FIRST_WAVE)
    return (
        wave,
        not _is_namespace(one.source),
        kind,
        _read_object_namespace(one.source),
        _read_object_name(one.body),
    )


def _is_home(source: PolicySource) -> bool:
    return _is_namespace(source) and _read_object_name(source.body) == POLICIES_NAMESPACE


def _is_namespace(source: PolicySource) -> bool:
    return source.body.get("kind") == "Namespace"


def _read_object_namespace(source: PolicySource) -> str:
    return str((source.body.get("metadata") or {}).get("namespace") or "")


def _read_object_name(body: Body) -> str:
    return str((body.get("metadata") or {}).get("name"))


def list_policy_guardrails(workspace: Workspace, cluster: str) -> Guardrails:
    """Return what the GitOps project that applies the cluster's policies must allow."""
    rest = [body for body in export_objects(workspace, cluster) if body.get("apiVersion") != ADMISSION_API]
    homes = {POLICIES_NAMESPACE}
    wide: set[tuple[str, str]] = set()
    spaced: set[tuple[str, str]] = set()
    for body in rest:
        kind = str(body.get("apiVersion")).rpartition("/")[0], str(body.get("kind"))
        home = (body.get("metadata") or {}).get("namespace")
        homes |= {str(home)} if home else set()
        (spaced if home else wide).add(kind)
    wide.discard(("", "Namespace"))  # every guardrail project allows it
    return Guardrails(POLICY_PREFIX, tuple(sorted(homes)), tuple(sorted(wide)), tuple(sorted(spaced)))


def fill_policy_defaults_of_server(body: Body) -> Body:
    """Return a copy with the defaults that the API server would store, so that nothing drifts.

    Source: k8s.io/kubernetes v1.34, pkg/apis/admissionregistration/v1/defaults.go.
    """
    result = copy.deepcopy(body)
    spec = result.get("spec")
    if not isinstance(spec, dict):
        return result
    if result.get("kind") == POLICY_KIND:
        spec.setdefault("failurePolicy", "Fail")
    if result.get("kind") in (POLICY_KIND, BINDING_KIND):
        for match in _list_match_resources(spec):
            match.setdefault("matchPolicy", "Equivalent")
            match.setdefault("namespaceSelector", {})
            match.setdefault("objectSelector", {})
            for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
                rule.setdefault("scope", "*")
    return result


def _list_match_resources(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("matchConstraints", "matchResources"):
        if isinstance(spec.get(name), dict):
            yield spec[name]
