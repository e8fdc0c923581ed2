"""Findings of `--base` about policies: what the API server enforces from now on, and changed expressions."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.objects import BINDING_KIND, POLICY_KIND
from gangplan.rules.model import Severity
from gangplan.validate.enforcement import compare_policies_between_commits

Object = dict[str, Any]


def state(**actions: str) -> dict[tuple[str, str, str], Object]:
    """Return policies with parameters, bound so that a breach leads to an action."""
    found: dict[tuple[str, str, str], Object] = {}
    for name, action in actions.items():
        full = f"gangplan-{name}"
        found["ConfigMap", "gangplan-policies", full] = {"data": {"most": "3", "list": "x" * 40}}
        found[POLICY_KIND, "", full] = {"spec": {"paramKind": {"kind": "ConfigMap"}, "validations": []}}
        ref = {"name": full, "namespace": "gangplan-policies"}
        found[BINDING_KIND, "", full] = {
            "spec": {"policyName": full, "validationActions": [action], "paramRef": ref}
        }
    return found


def said(old: Any, new: Any) -> list[tuple[str, str]]:
    """Return severity and message of each finding."""
    return [(one.severity.word, one.message) for _, one in compare_policies_between_commits(old, new)]


@pytest.mark.parametrize(
    ("was", "now", "level", "words"),
    [
        ("Audit", "Deny", "warning", "refuses what breaks policy a, which it only audited until now"),
        ("Warn", "Deny", "warning", "refuses what breaks policy a, which it only warned of until now"),
        ("Deny", "Warn", "warning", "only warns of what breaks policy a, which it refused until now"),
        ("Deny", "Audit", "warning", "only audits what breaks policy a, which it refused until now"),
        ("Audit", "Warn", "note", "only warns of what breaks policy a, which it only audited until now"),
        ("Warn", "Audit", "note", "only audits what breaks policy a, which it only warned of until now"),
    ],
)
def test_each_change_of_an_action_is_reported(was: str, now: str, level: str, words: str) -> None:
    assert said(state(a=was), state(a=now)) == [(level, f"the API server {words}")]
    assert said(state(a=now), state(a=now)) == []


def test_added_and_removed_policies_are_reported() -> None:
    both = state(a="Deny", b="Audit")
    came = said(state(a="Deny"), both)
    assert came == [
        ("note", "the API server only audits what breaks policy b, which it did not look at until now")
    ]
    went = said(both, state(b="Audit"))
    assert went == [
        ("warning", "the API server no longer looks at what breaks policy a, which it refused until now")
    ]


def test_changes_of_many_policies_are_counted() -> None:
    names = "abcdefg"
    (found,) = said(state(**dict.fromkeys(names, "Audit")), state(**dict.fromkeys(names, "Deny")))
    assert "what breaks a, b, c, d and 3 more policies, which" in found[1]
    (found,) = said(state(a="Audit", b="Audit"), state(a="Deny", b="Deny"))
    assert "what breaks policies a and b, which" in found[1]


def test_removing_the_last_policy_with_parameters_needs_a_restart() -> None:
    found = said(state(a="Deny"), {})
    assert [level for level, _ in found] == ["warning", "warning"]
    assert "until it is restarted" in found[1][1]


def test_the_strongest_of_several_bindings_counts() -> None:
    old, new = state(a="Deny"), state(a="Deny")
    for bodies, action in ((old, "Audit"), (new, "Warn")):
        bodies[BINDING_KIND, "", "gangplan-a-hipaa"] = {
            "spec": {"policyName": "gangplan-a", "validationActions": [action]}
        }
    assert said(old, new) == []


def test_changed_parameters_and_expressions_are_notes() -> None:
    old, new = state(a="Deny"), state(a="Deny")
    new["ConfigMap", "gangplan-policies", "gangplan-a"]["data"] = {"most": "5", "list": "y" * 40}
    new[POLICY_KIND, "", "gangplan-a"]["spec"]["validations"] = [{"expression": "false"}]
    assert said(old, new) == [
        ("note", "policy a judges by other expressions from now on"),
        ("note", "parameters of policy a change: list, most from 3 to 5"),
    ]
    assert Severity.NOTE < Severity.WARNING


def test_config_maps_that_are_not_parameters_are_ignored() -> None:
    key = "ConfigMap", "monitoring", "dashboard"
    assert said({key: {"data": {"a": "b"}}}, {key: {"data": {"a": "c"}}}) == []
