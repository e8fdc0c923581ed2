"""What the API server refuses in the parts that policies and bindings share: rules, selectors, names.

Ported from k8s.io/kubernetes v1.34 pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gangplan.findings import FieldPath
from gangplan.rules.policy import POLICY_INVALID
from gangplan.validate.apiserver.forms import LABEL_VALUE, is_qualified
from gangplan.validate.problems import Problem, format_path

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")

Problems = Iterator[Problem]


def report_wrong_field(path: FieldPath, message: str, help: str = "") -> Problem:
    """Return the problem of a field."""
    return Problem(path, f"{format_path(path)}: {message}", help, POLICY_INVALID)


def check_one_of(path: FieldPath, value: Any, words: Sequence[str]) -> Problems:
    """Check that a word is one of a few."""
    if value not in words:
        yield report_wrong_field(path, f"{value!r} is not one of {', '.join(words)}")


def check_admission_match_resources(match: Mapping[str, Any], path: FieldPath) -> Problems:
    """Check matchConstraints or matchResources."""
    policy = match.get("matchPolicy", "Equivalent")
    yield from check_one_of((*path, "matchPolicy"), policy, ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name):
            yield from check_admission_policy_selector(match[name], (*path, name))
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(name) or ()):
            yield from _check_admission_resource_rule(rule, (*path, name, index))


def check_admission_policy_selector(selector: Mapping[str, Any], path: FieldPath) -> Problems:
    """Check a label selector."""
    for key, value in (selector.get("matchLabels") or {}).items():
        yield from _check_admission_selector_label(key, [value], (*path, "matchLabels", key))
    for index, entry in enumerate(selector.get("matchExpressions") or ()):
        at = (*path, "matchExpressions", index)
        operator, values = entry.get("operator"), entry.get("values") or ()
        yield from check_one_of((*at, "operator"), operator, ("DoesNotExist", "Exists", "In", "NotIn"))
        if operator in ("In", "NotIn") and not values:
            yield report_wrong_field((*at, "values"), f"is empty with operator {operator}")
        if operator in ("Exists", "DoesNotExist") and values:
            yield report_wrong_field((*at, "values"), f"is given with operator {operator}", "Remove it.")
        yield from _check_admission_selector_label(entry.get("key") or "", values, (*at, "key"))


def _check_admission_selector_label(key: str, values: Sequence[str], path: FieldPath) -> Problems:
    if not is_qualified(key):
        yield report_wrong_field(path, f"{key!r} is not the key of a label")
    for value in values:
        if not isinstance(value, str) or len(value) > 63 or not LABEL_VALUE.fullmatch(value):
            yield report_wrong_field(path, f"{value!r} is not the value of a label")


def _check_admission_resource_rule(rule: Mapping[str, Any], path: FieldPath) -> Problems:
    for name, what in (
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "versions"),
    ):
        words = rule.get(name) or ()
        if not words:
            yield report_wrong_field((*path, name), "is empty", "Write ['*'] for all.")
        if len(words) > 1 and "*" in words:
            yield report_wrong_field((*path, name), f"'*' is given with other {what}", "Keep '*' alone.")
        for index, word in enumerate(words):
            if name == "operations":
                yield from check_one_of((*path, name, index), word, OPERATIONS)
            if name == "apiVersions" and not word:
                yield report_wrong_field((*path, name, index), "is empty")
    yield from _check_admission_rule_resources(rule.get("resources") or (), (*path, "resources"))
    if rule.get("scope") is not None:
        yield from check_one_of((*path, "scope"), rule["scope"], ("*", "Cluster", "Namespaced"))
    names = rule.get("resourceNames") or ()
    for index, name in enumerate(names):
        if not name or name in (".", "..") or re.search(r"[/%]", name):
            yield report_wrong_field(
                (*path, "resourceNames", index), f"{name!r} is not the name of an object"
            )
        if name in names[:index]:
            yield report_wrong_field(
                (*path, "resourceNames", index), f"{name!r} is listed twice", "Keep one."
            )


def _check_admission_rule_resources(resources: Sequence[str], path: FieldPath) -> Problems:
    if not resources:
        yield report_wrong_field(path, "is empty", "Name resources by their plural, such as trainjobs.")
    if len(resources) > 1 and "*/*" in resources:
        yield report_wrong_field(path, "'*/*' is given with other resources", "Keep '*/*' alone.")
    # The server checks only the last entry without a slash; so do we.
    plain = [name for name in resources if name and "/" not in name]
    if "*" in plain and plain[-1] != "*":
        yield report_wrong_field(path, "'*' is given with other resources", "Keep '*' alone.")
    before: list[tuple[str, str]] = []
    for index, name in enumerate(resources):
        if not name:
            yield report_wrong_field((*path, index), "is empty")
        resource, slash, sub = name.partition("/")
        if not slash:
            continue
        if (resource, "*") in before or ("*", sub) in before:
            yield report_wrong_field(
                (*path, index), f"{name!r} is covered by an entry before it", "Remove it."
            )
        before.append((resource, sub))
