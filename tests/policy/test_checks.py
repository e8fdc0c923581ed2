"""What the API server refuses in policies and bindings, and where gangplan reports it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gangplan.rules.model import Severity
from gangplan.source import load_all_documents
from gangplan.validate.apiserver.policy.kinds import read_extra_kinds
from gangplan.validate.apiserver.policy.model import PlacedObject
from gangplan.validate.apiserver.policy.read import PolicyReading, read_policy_objects
from gangplan.validate.apiserver.policy.resources import (
    check_admission_policy_param_kind,
    check_admission_policy_resources,
    list_served_resource_plurals,
)
from gangplan.validate.apiserver.schema import SchemaVersions

VERSIONS = SchemaVersions("1.34", "2.3", "0.19", "0.12")
API = "admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
POLICY: dict[str, Any] = {
    "apiVersion": API,
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "true"}],
    },
}
BINDING: dict[str, Any] = {
    "apiVersion": API,
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "b"},
    "spec": {"policyName": "p", "validationActions": ["Deny"]},
}
PARAM = {"name": "n", "parameterNotFoundAction": "Deny"}


def reading(*bodies: dict[str, Any]) -> PolicyReading:
    return read_policy_objects([PlacedObject(body) for body in bodies], VERSIONS)


def errors(*bodies: dict[str, Any]) -> list[str]:
    return [one.message for one in reading(*bodies).problems if one.severity is Severity.ERROR]


def spec(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    body = copy.deepcopy(base)
    body["spec"] |= changes
    return body


def match(**changes: Any) -> dict[str, Any]:
    return {"matchConstraints": {"resourceRules": [{**RULE, **changes}]}}


def test_a_good_pair_has_no_problem() -> None:
    assert reading(POLICY, BINDING).problems == []


WRONG = [
    (spec(POLICY, matchConstraints=None), "matchConstraints"),
    (spec(POLICY, matchConstraints={"resourceRules": []}), "names no resource"),
    (spec(POLICY, validations=[]), "there is none"),
    (spec(POLICY, failurePolicy="Maybe"), "Maybe"),
    (spec(POLICY, paramKind={"apiVersion": "a/b/c", "kind": "ConfigMap"}), "a/b/c"),
    (spec(POLICY, paramKind={"apiVersion": "v1", "kind": "Config Map"}), "Config Map"),
    (spec(POLICY, **match(operations=["*", "CREATE"])), "'*' is given with"),
    (spec(POLICY, **match(operations=["PATCH"])), "PATCH"),
    (spec(POLICY, **match(resources=[])), "resources"),
    (spec(POLICY, **match(resources=["*/*", "pods"])), "'*/*'"),
    (spec(POLICY, **match(resources=["pods/*", "pods/log"])), "covered"),
    (spec(POLICY, **match(scope="Everywhere")), "Everywhere"),
    (spec(POLICY, **match(resourceNames=["a", "a"])), "twice"),
    (spec(POLICY, matchConditions=[{"name": f"c{n}", "expression": "true"} for n in range(65)]), "64"),
    (spec(POLICY, matchConditions=[{"name": "a b", "expression": "true"}]), "'a b'"),
    (spec(POLICY, matchConditions=[{"name": "c", "expression": "variables.x"}], variables=[]), "variables"),
    (spec(POLICY, variables=[{"name": "in", "expression": "1"}]), "'in'"),
    (spec(POLICY, variables=[{"name": "x", "expression": " "}]), "is empty"),
    (spec(POLICY, validations=[{"expression": "object.spec.hostNetwork"}]), "dyn"),
    (spec(POLICY, validations=[{"expression": "true", "message": "two\nlines"}]), "several lines"),
    (spec(POLICY, validations=[{"expression": "true", "message": "  "}]), "only blanks"),
    (spec(POLICY, validations=[{"expression": "true", "reason": "Because"}]), "Because"),
    (spec(POLICY, validations=[{"expression": "true", "messageExpression": "1"}]), "string"),
    (
        spec(POLICY, validations=[{"expression": "true", "messageExpression": "authorizer.path('/')"}]),
        "authorizer",
    ),
    (spec(POLICY, validations=[{"expression": "params.x == 1"}]), "params"),
    (spec(POLICY, auditAnnotations=[{"key": "a", "valueExpression": "1"}]), "int"),
    (spec(POLICY, auditAnnotations=[{"key": "a b", "valueExpression": "'x'"}]), "a b"),
    (spec(BINDING, validationActions=[]), "validationActions"),
    (spec(BINDING, validationActions=["Deny", "Warn"]), "exclude each other"),
    (spec(BINDING, validationActions=["Audit", "Audit"]), "twice"),
    (spec(BINDING, paramRef={**PARAM, "selector": {}}), "is given with a selector"),
    (spec(BINDING, paramRef={"parameterNotFoundAction": "Deny"}), "neither name nor selector"),
    (spec(BINDING, paramRef={"name": "n"}), "parameterNotFoundAction"),
    (spec(BINDING, policyName="Not_A_Name"), "Not_A_Name"),
    (spec(BINDING, matchResources={"matchPolicy": "Loose"}), "Loose"),
]


@pytest.mark.parametrize(("body", "said"), WRONG, ids=[said for _, said in WRONG])
def test_policies_that_the_server_refuses_are_an_error(body: dict[str, Any], said: str) -> None:
    other = BINDING if body["kind"] == POLICY["kind"] else POLICY
    found = errors(body, other)
    assert any(said in one for one in found), found


def test_older_api_versions_are_refused() -> None:
    assert "v1beta1" in errors({**POLICY, "apiVersion": "admissionregistration.k8s.io/v1beta1"})[0]


def test_two_policies_of_one_name_are_refused() -> None:
    assert any("another" in one for one in errors(POLICY, POLICY, BINDING))


def test_a_policy_or_binding_alone_is_a_warning() -> None:
    alone = reading(POLICY).problems
    assert [(one.rule, one.severity) for one in alone] == [("policy-inert", Severity.WARNING)]
    lost = reading(BINDING).problems
    assert [(one.rule, one.severity) for one in lost] == [("policy-inert", Severity.WARNING)]


def test_a_newer_function_is_reported_with_its_kubernetes_version() -> None:
    newer = spec(POLICY, validations=[{"expression": "[1].distinct().size() == 1"}])
    (problem,) = [one for one in reading(newer, BINDING).problems if one.rule == "policy-version"]
    assert "Kubernetes 1.35 or later" in problem.message
    assert "the cluster has 1.34" in problem.message
    assert not read_policy_objects(
        [PlacedObject(newer), PlacedObject(BINDING)], SchemaVersions("1.35")
    ).problems


TEXT = """\
# comment
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - expression: |-
      has(object.spec) &&
        objekt.spec.hostNetwork == false
  - expression: "object.metadata.name == 'a' && nope"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny, Warn]}
"""


def test_a_mistake_in_cel_is_reported_at_its_character() -> None:
    documents, findings = load_all_documents(TEXT.encode(), "policies/own.yaml")
    assert not findings
    problems = read_policy_objects([PlacedObject(one.value, one) for one in documents], VERSIONS).problems
    lines = TEXT.split("\n")
    places = {
        (one.where.line, lines[one.where.line - 1][one.where.column - 1 :].split()[0]) for one in problems
    }
    assert (12, "objekt.spec.hostNetwork") in places
    assert (13, 'nope"') in places
    assert any(line == 18 for line, _ in places)


@pytest.mark.parametrize(
    ("kind", "help"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap"}, ""),
        ({"apiVersion": "v1", "kind": "Configmap"}, "Did you mean ConfigMap?"),
        ({"apiVersion": "v1", "kind": "ConfigMaps"}, "Did you mean ConfigMap?"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, ""),
        ({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Limits"}, "Known: AdmissionCheck, "),
        ({"apiVersion": "example.com/v1", "kind": "Limits"}, ""),  # some operator may serve it
        (None, ""),
    ],
)
def test_parameters_of_unknown_kinds_are_reported(kind: dict[str, str] | None, help: str) -> None:
    known = read_extra_kinds(VERSIONS)
    found = list(
        check_admission_policy_param_kind(
            spec(POLICY, paramKind=kind), list_served_resource_plurals(VERSIONS, known), VERSIONS
        )
    )
    assert [one.help.startswith(help) for one in found] == ([True] if help else [])
    assert all("refuses all that the policy matches" in one.message for one in found)


TRAINJOBS = {"apiGroups": ["trainer.kubeflow.org"], "apiVersions": ["v1alpha1"], "resources": ["trainjobs"]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"resources": ["pod"]}, "the core group has no resource 'pod'"),
        ({"resources": ["pods/exec", "*"]}, ""),
        (TRAINJOBS, ""),
        ({**TRAINJOBS, "apiVersions": ["v1"]}, "trainer.kubeflow.org has no version 'v1'"),
        ({**TRAINJOBS, "apiVersions": ["v1", "v1alpha1"]}, ""),
        ({**TRAINJOBS, "apiVersions": ["*"]}, ""),
        ({**TRAINJOBS, "apiGroups": ["kubeflow.org"]}, "kubeflow.org has no resource 'trainjobs'"),
        ({**TRAINJOBS, "apiGroups": ["kubeflow.org", "trainer.kubeflow.org"]}, ""),
        ({**TRAINJOBS, "apiGroups": ["*"], "apiVersions": ["v1"]}, ""),
        ({"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"]}, ""),
        ({"apiGroups": ["kueue.x-k8s.io"], "apiVersions": ["v1beta1"], "resources": ["workloads"]}, ""),
        ({"scope": "Cluster"}, "pods have a namespace: with scope Cluster"),
        ({"scope": "Namespaced"}, ""),
        ({"scope": "Namespaced", "resources": ["namespaces"]}, "namespaces have no namespace"),
        ({"scope": "Cluster", "resources": ["namespaces", "pods"]}, ""),
        ({"scope": "*", "resources": ["namespaces"]}, ""),
        ({"scope": "Cluster", "apiGroups": ["example.com"], "resources": ["things"]}, ""),
    ],
)
def test_rules_that_match_nothing_are_reported(changes: dict[str, Any], said: str) -> None:
    groups = list_served_resource_plurals(VERSIONS, read_extra_kinds(VERSIONS))
    found = [
        one.message for one in check_admission_policy_resources(spec(POLICY, **match(**changes)), groups)
    ]
    assert [said in one and "the policy matches nothing" in one for one in found] == ([True] if said else [])
