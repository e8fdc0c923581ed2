"""The built-in rules give the same results as the real CRDs: at the same places, for random values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from gangplan.cel.errors import CompileError
from gangplan.validate.apiserver.crdrules.builtin import compile_built_in_crd_rules
from gangplan.validate.apiserver.crdrules.check import check_crd_rules, check_crd_transition_rules
from gangplan.validate.apiserver.crdrules.imported import compile_crd_schema_rules
from gangplan.validate.apiserver.crdrules.names import escape_crd_property_name
from gangplan.validate.apiserver.crdrules.rules import (
    CompiledRule,
    _iterate_rule_places,
    find_crd_rule_breaches,
)
from gangplan.validate.apiserver.schema import SchemaVersions
from tests.policy.crd_values import WORDS, node, some
from tests.validate.crd import crds, needs_crds

MINORS = [("trainer", "2.1"), ("trainer", "2.2"), ("trainer", "2.3"), ("jobset", "0.10"), ("jobset", "0.12")]
MINORS += [("kueue", "0.15"), ("kueue", "0.17"), ("kueue", "0.19")]
ROUNDS = 150


def versions(component: str, minor: str) -> SchemaVersions:
    """Return the versions of a cluster with one component at a minor version."""
    known = {"trainer": "2.3", "kueue": "0.19", "jobset": "0.12", component: minor}
    return SchemaVersions("1.34", known["trainer"], known["kueue"], known["jobset"])


def kinds() -> Iterator[tuple[str, str, str, str]]:
    """Yield component, minor, apiVersion and kind of every available CRD whose objects gangplan writes."""
    for component, minor in MINORS:
        for api_version, kind in crds(component, minor):
            if kind != "Workload":
                yield component, minor, api_version, kind


def places(rules: tuple[CompiledRule, ...] | list[CompiledRule]) -> dict[tuple[str, ...], list[CompiledRule]]:
    """Return rules by their path, without those about status."""
    found: dict[tuple[str, ...], list[CompiledRule]] = {}
    for one in rules:
        if one.rule.path[:1] != ("status",):
            found.setdefault(one.rule.path, []).append(one)
    return found


def wrapped(path: tuple[str, ...], value: Any) -> Any:
    """Return an object that has only a value at a path."""
    for step in reversed(path):
        value = [value] if step.startswith("[") else {step: value}
    return value


@needs_crds
@pytest.mark.parametrize("known", list(kinds()), ids="-".join)
def test_built_in_rules_have_the_places_and_verdicts_of_the_crd(known: tuple[str, str, str, str]) -> None:
    component, minor, api_version, kind = known
    schema = crds(component, minor)[api_version, kind]
    theirs = places(compile_crd_schema_rules(schema, 34))
    ours = places(compile_built_in_crd_rules(api_version, kind, versions(component, minor)))
    keyless = {
        tuple("[]" if step.startswith("[") else step for step in path): rules for path, rules in ours.items()
    }
    assert {tuple("[]" if step.startswith("[") else step for step in path) for path in theirs} == set(keyless)
    random = Random(f"{component}{minor}{kind}")
    for path, real in theirs.items():
        fact = keyless[tuple("[]" if step.startswith("[") else step for step in path)]
        names = {word for one in real for word in re.findall(r"[A-Za-z]+", one.rule.text)}
        for _ in range(ROUNDS):
            value, old = (some(node(schema, path), random, names) for _ in range(2))
            if not path:
                value["metadata"] = {"name": random.choice(WORDS)}
            if random.random() < 0.4:
                old = value
            both = wrapped(path, value), wrapped(path, old)
            said = [bool(find_crd_rule_breaches(rules, *both)) for rules in (real, fact)]
            assert said[0] == said[1], (path, value, old)


@needs_crds
def test_every_rule_of_a_crd_compiles() -> None:
    seen = 0
    for component, minor in MINORS:
        for schema in crds(component, minor).values():
            seen += len(compile_crd_schema_rules(schema, 34))
    assert seen > 200


def test_a_broken_rule_is_reported_at_its_field() -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "a"},
        "spec": {
            "preemption": {"reclaimWithinCohort": "Never", "borrowWithinCohort": {"policy": "LowerPriority"}}
        },
    }
    (found,) = check_crd_rules(queue, versions("kueue", "0.19"))
    assert found.path == ("spec", "preemption")
    assert found.rule == "crd-rule"
    assert "reclaimWithinCohort" in found.message


def test_a_change_of_an_immutable_field_is_reported() -> None:
    def check(name: str) -> dict[str, Any]:
        head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "a"}}
        return {**head, "spec": {"controllerName": name}}

    assert not check_crd_transition_rules(check("a"), check("a"), versions("kueue", "0.19"))
    (found,) = check_crd_transition_rules(check("a"), check("b"), versions("kueue", "0.19"))
    assert found.path == ("spec", "controllerName")


def test_another_order_of_a_keyed_list_is_not_a_change() -> None:
    item = {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}
    rule = [{"rule": "self == oldSelf", "message": "fixed"}]
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": item,
    }
    rules = compile_crd_schema_rules(
        {"type": "object", "properties": {"env": {**keyed, "x-kubernetes-validations": rule}}}, 34
    )
    one, two = {"name": "a", "value": "1"}, {"name": "b", "value": "2"}
    assert not find_crd_rule_breaches(rules, {"env": [one, two]}, {"env": [two, one]})
    assert find_crd_rule_breaches(rules, {"env": [one, two]}, {"env": [two, {**one, "value": "3"}]})


def test_optional_old_self_message_expression_and_field_path_work() -> None:
    rule = {
        "rule": "oldSelf.hasValue() || self.size > 0",
        "optionalOldSelf": True,
        "messageExpression": "'size is ' + string(self.size)",
        "fieldPath": ".size",
        "reason": "FieldValueForbidden",
    }
    schema = {
        "type": "object",
        "properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [rule],
    }
    rules = compile_crd_schema_rules(schema, 34)
    (found,) = find_crd_rule_breaches(rules, {"size": 0})
    assert (found.path, found.message, found.reason) == (("size",), "size is 0", "FieldValueForbidden")
    assert not find_crd_rule_breaches(rules, {"size": 0}, {"size": 0})


@pytest.mark.parametrize(("count", "is_enough"), [(11, True), (12, False)])
def test_rules_of_an_object_share_one_budget(count: int, is_enough: bool) -> None:
    """Each rule costs 950 * 950; a server allows ten million."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "maxLength": 9500} for name in "ab"},
        "x-kubernetes-validations": [{"rule": "!self.a.contains(self.b)"}] * count,
    }
    found = find_crd_rule_breaches(compile_crd_schema_rules(schema, 34), {"a": "x" * 9500, "b": "y" * 9500})
    assert [one.message[:50] for one in found] == (
        [] if is_enough else ["validation failed due to running out of cost budge"]
    )


def test_field_names_are_escaped() -> None:
    assert [escape_crd_property_name(name) for name in ("a-b", "namespace", "a__b", "x.y/z", "9a", "ü")] == [
        "a__dash__b",
        "__namespace__",
        "a__underscores__b",
        "x__dot__y__slash__z",
        None,
        None,
    ]
    schema = {
        "type": "object",
        "properties": {"max-size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.max__dash__size < 3", "message": "too large"}],
    }
    assert find_crd_rule_breaches(compile_crd_schema_rules(schema, 34), {"max-size": 3})
    assert not find_crd_rule_breaches(compile_crd_schema_rules(schema, 34), {"max-size": 2})


def test_a_rule_about_an_unknown_field_does_not_compile() -> None:
    schema = {"type": "object", "properties": {}, "x-kubernetes-validations": [{"rule": "self.nope > 1"}]}
    with pytest.raises(CompileError, match="undefined field 'nope'"):
        compile_crd_schema_rules(schema, 34)


def test_rules_about_changes_are_skipped_for_a_new_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rules of Trainer and JobSet say which fields may not change, which does not concern a new run."""
    rules = compile_built_in_crd_rules(
        "trainer.kubeflow.org/v1alpha1", "TrainingRuntime", versions("trainer", "2.3")
    )
    body = {
        "spec": {"template": {"spec": {"replicatedJobs": [{"name": str(number)} for number in range(50)]}}}
    }
    places: list[str] = []

    def counted(*given: Any) -> Iterator[Any]:
        places.append(given[3])
        return _iterate_rule_places(*given)

    monkeypatch.setattr("gangplan.validate.apiserver.crdrules.rules._iterate_rule_places", counted)
    assert find_crd_rule_breaches(rules, body) == []
    assert len(places) < 30, "the names of 50 jobs were read for rules about changes"
