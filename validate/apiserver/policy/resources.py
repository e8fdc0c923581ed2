"""Policies that match nothing: they name resources that no server of the cluster's versions has.

Kubernetes accepts any word as a resource, and a policy for `trainjob` never matches anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from gangplan.findings import FieldPath
from gangplan.model.backend import TRAINJOB
from gangplan.objects import Body
from gangplan.validate.apiserver.policy.checks_match import Problems, report_wrong_field
from gangplan.validate.apiserver.policy.kinds import (
    CLUSTER_SCOPED,
    ExtraKinds,
    guess_resource_plural_of_kind,
)
from gangplan.validate.apiserver.schema import SchemaVersions, list_kinds_with_api_schema

# Resources that Kubernetes itself serves, by group: its api/discovery, the same in v1.33, v1.34 and v1.36.
BUILT_IN = {
    "": (
        "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes"
        " persistentvolumeclaims persistentvolumes pods podtemplates replicationcontrollers resourcequotas"
        " secrets serviceaccounts services"
    ),
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "coordination.k8s.io": "leasecandidates leases",
    "discovery.k8s.io": "endpointslices",
    "networking.k8s.io": "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
    "node.k8s.io": "runtimeclasses",
    "policy": "poddisruptionbudgets",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
    "storage.k8s.io": (
        "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses"
    ),
}
# The only versions that servers of these groups serve (Kubernetes v1.30 to v1.36, Trainer v2.1 to v2.3,
# JobSet v0.10 to v0.12).
SERVED_VERSIONS = {
    **dict.fromkeys(("", "apps", "batch"), ("v1",)),
    TRAINJOB.group: ("v1alpha1",),
    "jobset.x-k8s.io": ("v1alpha2",),
}
# Kinds of Kueue that have no schema here (CRDs of v0.15 to v0.19).
_MORE = {"kueue.x-k8s.io": "workloads"}
# Groups with only some kinds known here, or with new kinds in every minor.
_OPEN = frozenset(
    {
        "admissionregistration.k8s.io",
        "external-secrets.io",
        "monitoring.coreos.com",
        "resource.k8s.io",
        "scheduling.k8s.io",
    }
)


def list_served_resource_plurals(versions: SchemaVersions, known: ExtraKinds) -> dict[str, frozenset[str]]:
    """Return plurals by group, for groups with all their kinds known."""
    found = {group: set(names.split()) for group, names in BUILT_IN.items()}
    for api_version, kind in list_kinds_with_api_schema(versions):
        resource = known.find(api_version, kind)
        if resource.group not in _OPEN:
            found.setdefault(resource.group, set()).add(resource.plural)
    for (group, _), (plural, _) in known.more.items():
        if group not in _OPEN:
            found.setdefault(group, set()).add(plural)
    return {group: frozenset({*names, *_MORE.get(group, "").split()}) for group, names in found.items()}


def check_admission_policy_resources(policy: Body, groups: Mapping[str, frozenset[str]]) -> Problems:
    """Report entries of resourceRules that match nothing, in groups with all their kinds known."""
    constraints = policy["spec"].get("matchConstraints") or {}
    for index, rule in enumerate(constraints.get("resourceRules") or ()):
        named: list[str] = rule.get("apiGroups") or []
        at: FieldPath = ("spec", "matchConstraints", "resourceRules", index)
        if not named or not all(group in groups for group in named):
            yield from _check_resources_of_unknown_groups(rule, at, named, groups)
            continue
        yield from _check_versions_of_rule(rule, at, named)
        yield from _check_scope_of_rule(rule, at, named)
        there = frozenset[str]().union(*(groups[group] for group in named))
        for place, entry in enumerate(rule.get("resources") or ()):
            name = entry.partition("/")[0]
            if name != "*" and name not in there:
                yield report_wrong_field(
                    (*at, "resources", place),
                    _describe_unknown_resource(name, named),
                    _suggest_admission_rule_resource(name, groups, there),
                )


def _check_resources_of_unknown_groups(
    rule: Body, at: FieldPath, named: list[str], groups: Mapping[str, frozenset[str]]
) -> Problems:
    """Report resources of Trainer or JobSet that are looked for in a group that nothing is known of."""
    if "*" in named:
        return
    for place, entry in enumerate(rule.get("resources") or ()):
        name = entry.partition("/")[0]
        homes = [one for one in SERVED_VERSIONS if one not in BUILT_IN and name in groups.get(one, ())]
        if homes and homes[0] not in named:
            help = f"It is in apiGroups: [{homes[0]}]."
            yield report_wrong_field((*at, "resources", place), _describe_unknown_resource(name, named), help)


def _check_versions_of_rule(rule: Body, at: FieldPath, named: list[str]) -> Problems:
    """Report versions of which no server serves one; it converts only to versions that it serves."""
    served = {version for group in named for version in SERVED_VERSIONS.get(group, ("*",))}
    versions = rule.get("apiVersions") or ()
    if versions and not served & {"*"} and not {*versions} & {*served, "*"}:
        said = f"{named[0] or 'the core group'} has no version '{versions[0]}': the policy matches nothing"
        help = f"Write apiVersions: [{', '.join(sorted(served))}]."
        yield report_wrong_field((*at, "apiVersions", 0), said, help)


def _check_scope_of_rule(rule: Body, at: FieldPath, named: list[str]) -> Problems:
    """Report a scope of which no resource is, in groups of which the scope of every resource is known."""
    scope, resources = rule.get("scope"), [one.partition("/")[0] for one in rule.get("resources") or ()]
    if scope not in ("Cluster", "Namespaced") or "*" in resources or not {*named} <= {*SERVED_VERSIONS}:
        return
    outside = {
        guess_resource_plural_of_kind(kind)
        for group in named
        for kind in CLUSTER_SCOPED.get(group, "").split()
    }
    if all((one in outside) is (scope == "Namespaced") for one in resources):
        where = "have a namespace" if scope == "Cluster" else "have no namespace"
        said = f"{' and '.join(resources)} {where}: with scope {scope}, the policy matches nothing"
        yield report_wrong_field((*at, "scope"), said, 'Write scope: "*", or leave it out.')


def check_admission_policy_param_kind(
    policy: Body, groups: Mapping[str, frozenset[str]], versions: SchemaVersions
) -> Problems:
    """Report a `paramKind` that no server has, in a group with all its kinds known."""
    kind = policy["spec"].get("paramKind")
    if not isinstance(kind, dict):
        return
    name, api_version = str(kind.get("kind")), str(kind.get("apiVersion"))
    group = api_version.rpartition("/")[0]
    known = sorted(
        {one for version, one in list_kinds_with_api_schema(versions) if version.rpartition("/")[0] == group}
    )
    is_misspelt = name not in known and name.lower() in (one.lower() for one in known)
    if group not in groups or (guess_resource_plural_of_kind(name) in groups[group] and not is_misspelt):
        return
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    help = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(known[:8])}."
    said = f"{group or 'the core group'} has no kind '{name}'"
    effect = "the API server refuses all that the policy matches"
    yield report_wrong_field(("spec", "paramKind", "kind"), f"{said}: {effect}", help)


def _describe_unknown_resource(name: str, named: list[str]) -> str:
    where = " and ".join(group or "the core group" for group in named)
    return f"{where} has no resource '{name}': the policy matches nothing"


def _suggest_admission_rule_resource(
    name: str, groups: Mapping[str, frozenset[str]], there: frozenset[str]
) -> str:
    close = difflib.get_close_matches(name.lower(), sorted(there), n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{close[0]}'?"
    homes = list(_find_groups_with_resource(name, groups))
    if homes:
        return f"It is in apiGroups: [{homes[0]}]."
    return f"Known: {', '.join(sorted(there)[:8])}."


def _find_groups_with_resource(name: str, groups: Mapping[str, frozenset[str]]) -> Iterator[str]:
    return (group or '""' for group in sorted(groups) if name in groups[group])
