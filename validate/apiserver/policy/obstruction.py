"""Policies that prevent runs from ending, or controllers from writing their status.

A refused deletion leaves a run with its pods, and a refused status hides its state from everybody.
Controllers retry both over and over. So a policy must judge only what is created and changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.model.backend import TRAINJOB
from gangplan.objects import Body
from gangplan.validate.apiserver.policy.checks_match import Problems, report_wrong_field

# Resources of runs, by group: those that engines apply, and those that controllers create from them.
OF_RUNS = {
    "": frozenset({"pods", "services", "configmaps", "secrets"}),
    "batch": frozenset({"jobs"}),
    "jobset.x-k8s.io": frozenset({"jobsets"}),
    "kueue.x-k8s.io": frozenset({"workloads"}),
    "networking.k8s.io": frozenset({"networkpolicies"}),
    TRAINJOB.group: frozenset({TRAINJOB.plural, "trainingruntimes"}),
}
_CONTROLLERS = frozenset({"status", "finalizers", "scale", "binding", "*"})
_HELP = "Write operations: [CREATE, UPDATE]."


def check_admission_policy_obstruction(policy: Body) -> Problems:
    """Report entries of resourceRules that cover the deletion or the status of the resources of runs."""
    constraints = policy["spec"].get("matchConstraints") or {}
    for index, rule in enumerate(constraints.get("resourceRules") or ()):
        path = ("spec", "matchConstraints", "resourceRules", index)
        meant = sorted(set(_list_run_resources_of_admission_rule(rule)))
        if not meant:
            continue
        for place, operation in enumerate(rule.get("operations") or ()):
            if operation in ("DELETE", "*"):
                said = f"a refused deletion of {meant[0]} would keep runs from ending"
                yield report_wrong_field((*path, "operations", place), said, _HELP)
        for place, entry in enumerate(rule.get("resources") or ()):
            name, _, part = str(entry).partition("/")
            if part in _CONTROLLERS and (name == "*" or name in meant):
                said = f"'{entry}' holds what controllers write about runs"
                help = f"Write {meant[0]}, without what follows it."
                yield report_wrong_field((*path, "resources", place), said, help)


def _list_run_resources_of_admission_rule(rule: Mapping[str, Any]) -> Iterator[str]:
    """Yield the resources of runs that a rule names."""
    groups = set(rule.get("apiGroups") or ())
    names = {str(entry).partition("/")[0] for entry in rule.get("resources") or ()}
    for group, resources in OF_RUNS.items():
        if {group, "*"} & groups:
            yield from (resources if "*" in names else resources & names)
