"""Requests, matching, conditions, parameters, messages and the fields to blame: one small policy each."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.rules.model import Severity
from gangplan.validate.apiserver.policy.evaluate import OUT_OF_BUDGET
from gangplan.validate.apiserver.policy.judge import Namespaces, PolicyEvaluator, Violation
from gangplan.validate.apiserver.policy.kinds import ExtraKinds, guess_resource_plural_of_kind
from gangplan.validate.apiserver.policy.model import PlacedObject
from gangplan.validate.apiserver.policy.read import read_policy_objects
from gangplan.validate.apiserver.policy.selectors import matches_admission_policy_selector
from gangplan.validate.apiserver.schema import SchemaVersions

VERSIONS = SchemaVersions("1.34", "2.3", "0.19", "0.12")
API = "admissionregistration.k8s.io/v1"
Body = dict[str, Any]


def namespace(name: str = "nlp", **labels: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def pod(**spec: Any) -> Body:
    containers = [{"name": "one", "image": "a@b"}, {"name": "two", "image": "c:latest"}]
    head = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "nlp", "labels": {"app": "x"}},
    }
    return {**head, "spec": {"containers": containers, **spec}}


def config(name: str, space: str = "nlp", labels: dict[str, str] | None = None, **data: str) -> Body:
    metadata = {"name": name, "namespace": space, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def judged(
    body: Body,
    expression: str = "false",
    *,
    others: tuple[Body, ...] = (),
    spaces: tuple[Body, ...] = (),
    binding: Body | None = None,
    old: Body | None = None,
    validation: Body | None = None,
    rule: Body | None = None,
    **spec: Any,
) -> list[Violation]:
    """Return the violations of one policy by one object."""
    rules = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": ["*"],
        **(rule or {}),
    }
    match = {"resourceRules": [rules], **spec.pop("match", {})}
    policy = {
        "apiVersion": API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": match,
            "validations": [{"expression": expression, **(validation or {})}],
            **spec,
        },
    }
    bound = {"policyName": "p", "validationActions": ["Deny"], **(binding or {})}
    meta = {
        "apiVersion": API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": bound,
    }
    reading = read_policy_objects([PlacedObject(one) for one in (policy, meta, *others)], VERSIONS)
    assert not reading.problems, reading.problems
    known = Namespaces(spaces, VERSIONS)
    evaluator = PolicyEvaluator(VERSIONS, reading.policies, reading.bindings, reading.others, known)
    return evaluator.judge([body], [old] if old else ())


def said(*args: Any, **more: Any) -> list[str]:
    return [one.message for one in judged(*args, **more)]


@pytest.mark.parametrize(
    ("rule", "is_about"),
    [
        ({}, True),
        ({"resources": ["pods"]}, True),
        ({"resources": ["pods/*"]}, True),
        ({"resources": ["pods/status"]}, False),
        ({"resources": ["jobs"]}, False),
        ({"apiGroups": ["batch"]}, False),
        ({"apiVersions": ["v2"]}, False),
        ({"operations": ["UPDATE", "DELETE"]}, False),
        ({"resourceNames": ["p", "q"]}, True),
        ({"resourceNames": ["q"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
    ],
)
def test_resource_rules_select_requests(rule: Body, is_about: bool) -> None:
    assert bool(judged(pod(), rule=rule)) == is_about


def test_the_scope_of_a_namespace_is_the_cluster() -> None:
    assert judged(namespace(), rule={"scope": "Cluster"})
    assert not judged(namespace(), rule={"scope": "Namespaced"})


def test_exclusions_and_selectors_limit_a_policy() -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    assert not judged(pod(), match={"excludeResourceRules": [rule]})
    assert judged(pod(), match={"objectSelector": {"matchLabels": {"app": "x"}}})
    assert not judged(pod(), match={"objectSelector": {"matchLabels": {"app": "y"}}})
    selector = {"namespaceSelector": {"matchLabels": {"team": "nlp"}}}
    assert judged(pod(), match=selector, spaces=(namespace(team="nlp"),))
    assert not judged(pod(), match=selector, spaces=(namespace(team="vision"),))
    assert judged(namespace(team="nlp"), match=selector)
    by_name = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nlp"}}}
    assert judged(pod(), match=by_name, spaces=(namespace(),))
    assert judged(namespace(), match=by_name)
    assert not judged(namespace("vision"), match=by_name)


def test_a_change_that_removes_the_selected_label_is_evaluated() -> None:
    """The selector may match either object (webhook/predicates/object)."""
    bare = {**pod(), "metadata": {"name": "p", "namespace": "nlp"}}
    match = {"objectSelector": {"matchLabels": {"app": "x"}}}
    assert judged(bare, match=match, old=pod())
    assert judged(pod(), match=match, old=bare)
    assert not judged(bare, match=match, old=bare)


def test_a_namespace_that_is_not_rendered_is_undecided() -> None:
    (found,) = judged(pod(), match={"namespaceSelector": {"matchLabels": {"team": "nlp"}}})
    assert found.is_undecided
    assert "namespace nlp" in found.message


TEAM = {"namespaceSelector": {"matchLabels": {"team": "nlp"}}}
NEVER = {"objectSelector": {"matchLabels": {"app": "never"}}}
CONDITION = {"name": "n", "expression": "object.kind == 'Job'"}


def test_a_policy_that_would_not_apply_is_not_undecided() -> None:
    assert not judged(pod(), match=TEAM, binding={"matchResources": NEVER})
    assert not judged(pod(), match=NEVER, binding={"matchResources": TEAM})
    assert not judged(pod(), match=TEAM, matchConditions=[CONDITION])
    assert not judged(pod(), binding={"matchResources": TEAM}, matchConditions=[CONDITION])
    for unsure in (
        "object.kind == 'Pod'",
        "object.nope == 1",
        "authorizer.group('').resource('pods').check('list').allowed()",
    ):
        (found,) = judged(pod(), match=TEAM, matchConditions=[{"name": "n", "expression": unsure}])
        assert found.is_undecided
    error = [{"name": "n", "expression": "object.nope == 1"}]
    assert not judged(pod(), match=TEAM, matchConditions=error, failurePolicy="Ignore")


def test_parameters_are_evaluated_before_a_policy_is_undecided() -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    condition = [{"name": "n", "expression": "params.data.on == 'yes'"}]
    ref = {"paramRef": {"name": "c", "parameterNotFoundAction": "Deny"}}

    def asked(*others: Body, **more: Any) -> list[Violation]:
        return judged(
            pod(), match=TEAM, paramKind=kind, matchConditions=condition, binding=ref, others=others, **more
        )

    assert not asked(config("c", on="no"))
    assert [one.is_undecided for one in asked(config("c", on="yes"))] == [True]
    assert [one.is_undecided for one in asked()] == [
        True
    ]  # the server refuses a request without its parameters
    assert not asked(failurePolicy="Ignore")


def test_conditions_are_not_evaluated_for_an_object_to_be_converted() -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "q", "namespace": "nlp"},
    }
    rule = {"apiGroups": ["kueue.x-k8s.io"], "apiVersions": ["v1beta1"], "resources": ["localqueues"]}
    (found,) = judged(queue, rule=rule, matchConditions=[{"name": "n", "expression": "false"}])
    assert found.is_undecided
    assert not judged(queue, rule=rule, binding={"matchResources": NEVER})


def test_a_policy_for_another_version_is_undecided() -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "q", "namespace": "nlp"},
    }
    rule = {"apiGroups": ["kueue.x-k8s.io"], "apiVersions": ["v1beta1"], "resources": ["localqueues"]}
    (found,) = judged(queue, rule=rule)
    assert found.is_undecided
    assert not judged(queue, rule=rule, match={"matchPolicy": "Exact"})


def test_policies_and_access_reviews_are_never_evaluated() -> None:
    body = {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "x"}}
    assert not judged(body)
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}}
    assert not judged(review)


def test_configurations_of_webhooks_are_evaluated() -> None:
    """They have the API group of policies, which are never evaluated."""
    body = {"apiVersion": API, "kind": "MutatingWebhookConfiguration", "metadata": {"name": "x"}}
    assert judged(body)


def test_failing_audit_annotations_refuse_for_any_action() -> None:
    texts = ("object.nope", "'cpu: ' + object.spec.cpu", "'named ' + object.metadata.name")
    annotations = [{"key": f"k{number}", "valueExpression": text} for number, text in enumerate(texts)]
    annotations[0]["valueExpression"] = "string(object.nope)"
    found = judged(pod(), "true", binding={"validationActions": ["Audit"]}, auditAnnotations=annotations)
    assert [one.severity for one in found] == [Severity.ERROR, Severity.ERROR]
    assert found[0].message == "expression 'string(object.nope)' resulted in error: no such key: nope"
    assert found[1].message == "expression ''cpu: ' + object.spec.cpu' resulted in error: no such key: cpu"
    assert not judged(pod(), "true", auditAnnotations=annotations, failurePolicy="Ignore")
    assert not judged(pod(), "true", auditAnnotations=annotations[2:])


def test_audit_annotations_have_no_authorizer() -> None:
    for asked in ("authorizer.group('').resource('pods')", "authorizer.requestResource"):
        text = f"{asked}.check('list').allowed() ? 'may' : 'may not'"
        (found,) = judged(pod(), "true", auditAnnotations=[{"key": "k", "valueExpression": text}])
        assert not found.is_undecided
        assert found.message.endswith(f"resulted in error: no such attribute(s): {asked.split('.group')[0]}")


def test_match_conditions_follow_the_server() -> None:
    false, true = ({"name": name, "expression": text} for name, text in (("no", "false"), ("yes", "true")))
    wrong = {"name": "bad", "expression": "object.nope == 1"}
    assert judged(pod(), matchConditions=[true])
    assert not judged(pod(), matchConditions=[wrong, false])
    (found,) = said(pod(), matchConditions=[true, wrong])
    assert found == "expression 'object.nope == 1' resulted in error: no such key: nope"
    assert not judged(pod(), matchConditions=[true, wrong], failurePolicy="Ignore")
    worse = {"name": "worse", "expression": "object.never == 1"}
    (both,) = said(pod(), matchConditions=[wrong, worse])
    assert both == f"[{found}, {found.replace('nope', 'never')}]"
    assert judged(
        pod(), matchConditions=[{"name": "n", "expression": "namespaceObject == null"}], spaces=(namespace(),)
    )


def test_errors_follow_the_failure_policy_and_refusals_do_not() -> None:
    text = "object.spec.nope == 1"
    assert said(pod(), text) == [f"expression '{text}' resulted in error: no such key: nope"]
    assert not judged(pod(), text, failurePolicy="Ignore")
    assert judged(pod(), "false", failurePolicy="Ignore")


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({}, "failed expression: false"),
        ({"message": " plain "}, "plain"),
        ({"message": "plain", "messageExpression": "'said ' + object.metadata.name"}, "said p"),
        ({"message": "plain", "messageExpression": "object.nope"}, "plain"),
        ({"message": "plain", "messageExpression": "'  '"}, "plain"),
        ({"message": "plain", "messageExpression": "'a\\nb'"}, "plain"),
        (
            {"messageExpression": "object.metadata.name + 'x'.replace('x', '" + "y" * 5200 + "')"},
            "failed expression: false",
        ),
    ],
)
def test_messages_come_from_expression_text_or_default(validation: Body, message: str) -> None:
    texts = {key: text.replace("object.nope", "string(object.nope)") for key, text in validation.items()}
    texts = {
        key: text.replace("object.metadata.name", "string(object.metadata.name)")
        for key, text in texts.items()
    }
    assert said(pod(), validation=texts) == [message]


def test_actions_decide_the_severity() -> None:
    for actions, severity in (
        (["Deny"], Severity.ERROR),
        (["Warn", "Audit"], Severity.WARNING),
        (["Audit"], Severity.NOTE),
    ):
        (found,) = judged(pod(), binding={"validationActions": actions})
        assert found.severity is severity


def test_parameters_follow_the_server() -> None:
    kind, text = {"apiVersion": "v1", "kind": "ConfigMap"}, "params.data.most == '1'"
    ref: Body = {"name": "c", "parameterNotFoundAction": "Deny"}

    def ask(*others: Body, **more: Any) -> list[str]:
        return said(pod(), text, others=others, binding={"paramRef": {**ref, **more}}, paramKind=kind)

    assert ask(config("c", most="1")) == []
    assert ask(config("c", most="2")) == [f"failed expression: {text}"]
    missing = (
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    assert ask(config("c", "other", most="1")) == [missing]
    assert ask(parameterNotFoundAction="Allow") == []
    assert ask(config("c", "other", most="2"), namespace="other")
    by_label = {"name": "", "selector": {"matchLabels": {"for": "us"}}}
    both = config("x", labels={"for": "us"}, most="2"), config("y", labels={"for": "us"}, most="3")
    assert len(ask(*both, **by_label)) == 2
    assert said(pod(), "params == null", paramKind=kind) == []


def test_a_parameter_without_a_namespace_is_in_the_default_namespace() -> None:
    """`kubectl apply` puts it there, and the request is in the same namespace."""
    bare = config("c", most="2")
    del bare["metadata"]["namespace"]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    binding: Body = {"paramRef": {"name": "c", "parameterNotFoundAction": "Allow"}}

    def ask(space: str) -> list[str]:
        body = {**pod(), "metadata": {"name": "p", "namespace": space}}
        return said(body, "params.data.most == '1'", others=(bare,), binding=binding, paramKind=kind)

    assert ask("default") == ["failed expression: params.data.most == '1'"]
    assert ask("nlp") == []


def test_a_cluster_scoped_object_needs_a_namespace_for_parameters() -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}}
    ref = {"paramRef": {"name": "c", "parameterNotFoundAction": "Allow"}}
    (found,) = said(queue, binding=ref, paramKind=kind)
    assert "cannot use namespaced paramRef" in found


def test_cluster_scoped_parameters_need_a_reference_without_a_namespace() -> None:
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor"}
    flavor = {**kind, "metadata": {"name": "c"}}
    ref = {"name": "c", "parameterNotFoundAction": "Allow"}
    assert judged(pod(), "false", others=(flavor,), binding={"paramRef": ref}, paramKind=kind)
    placed = {"paramRef": {**ref, "namespace": "nlp"}}
    (found,) = said(pod(), "true", others=(flavor,), binding=placed, paramKind=kind)
    assert found.endswith("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    assert not said(pod(), "true", others=(flavor,), binding=placed, paramKind=kind, failurePolicy="Ignore")


def test_expressions_see_request_and_old_object() -> None:
    name = "system:serviceaccount:argocd:argocd-application-controller"
    text = f"request.operation == 'CREATE' && request.userInfo.username == '{name}'"
    assert not judged(pod(), f"{text} && request.resource.resource == 'pods' && oldObject == null")
    assert not judged(pod(), "request.namespace == 'nlp' && request.name == 'p' && !request.dryRun")
    assert not judged(pod(), "request.operation == 'UPDATE' && oldObject.metadata.name == 'p'", old=pod())
    assert not judged(pod(), "namespaceObject.metadata.labels.team == 'nlp'", spaces=(namespace(team="nlp"),))


def test_expressions_see_defaults() -> None:
    assert not judged(
        pod(), "object.spec.containers.all(c, c.imagePullPolicy == 'Always' || c.name == 'one')"
    )
    assert not judged(pod(), "object.spec.restartPolicy == 'Always'")


def test_variables_are_lazy_and_see_earlier_ones() -> None:
    variables = [
        {"name": "images", "expression": "object.spec.containers.map(c, c.image)"},
        {"name": "count", "expression": "variables.images.size()"},
        {"name": "bad", "expression": "object.nope"},
    ]
    assert not judged(pod(), "variables.count == 2", variables=variables)
    (found,) = said(pod(), "variables.bad == 1", variables=variables)
    assert 'composited variable "bad" fails to evaluate: no such key: nope' in found


def test_one_expensive_expression_exceeds_the_cost_limit() -> None:
    many = {"data": {f"k{n}": "x" * 50 for n in range(400)}}
    big = {**config("c"), **many}
    text = "object.data.all(a, object.data.all(b, object.data[a] + object.data[b] != ''))"
    (found,) = said(big, text)
    assert "cost limit exceeded" in found


# Each costs 950 * 950: one text is searched in another.
DEAR = "!object.data.a.contains(object.data.b)"


@pytest.mark.parametrize(("count", "is_enough"), [(11, True), (12, False)])
def test_validations_share_one_budget(count: int, is_enough: bool) -> None:
    body = config("c", a="x" * 9500, b="y" * 9500)
    told = said(body, validations=[{"expression": DEAR}] * count)
    assert told == ([] if is_enough else [OUT_OF_BUDGET])


@pytest.mark.parametrize(("count", "is_enough"), [(2, True), (3, False)])
def test_match_conditions_share_one_budget(count: int, is_enough: bool) -> None:
    body = config("c", a="x" * 9500, b="y" * 9500)
    conditions = [{"name": f"c{number}", "expression": DEAR} for number in range(count)]
    told = said(body, "true", matchConditions=conditions)
    assert told == ([] if is_enough else [OUT_OF_BUDGET])


def test_an_authorizer_check_is_undecided() -> None:
    (found,) = judged(pod(), "authorizer.group('').resource('pods').check('list').allowed()")
    assert found.is_undecided


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("object.spec.containers.all(c, !c.image.endsWith(':latest'))", [("spec", "containers", 1, "image")]),
        ("object.metadata.labels.app == 'y'", [("metadata", "labels", "app")]),
        (
            "has(object.spec.hostNetwork) || object.metadata.name == 'q'",
            [("spec", "hostNetwork"), ("metadata", "name")],
        ),
        ("object.metadata.name == 'p' && object.spec.restartPolicy == 'Never'", [("spec", "restartPolicy")]),
        ("!object.spec.containers.exists(c, c.name == 'two')", [("spec", "containers", 1, "name")]),
        (
            "object.spec.containers.filter(c, c.image.contains('latest')).size() == 0",
            [("spec", "containers", 1, "image")],
        ),
        (
            "object.spec.containers.map(c, c.image).all(i, i.contains('@'))",
            [("spec", "containers", 1, "image")],
        ),
        ("object.?spec.priorityClassName.orValue('') == 'x'", [("spec", "priorityClassName")]),
        ("object.kind == 'Pod' ? object.metadata.name == 'q' : true", [("metadata", "name")]),
        ("object.spec.containers[0].image.contains(':')", [("spec", "containers", 0, "image")]),
    ],
)
def test_violations_name_the_fields_that_decided(text: str, paths: list[Any]) -> None:
    (found,) = judged(pod(), text)
    assert list(found.paths) == paths


def test_blamed_fields_are_found_through_variables() -> None:
    variables = [
        {
            "name": "containers",
            "expression": "object.spec.containers + object.spec.?initContainers.orValue([])",
        },
        {"name": "bad", "expression": "variables.containers.filter(c, c.image.endsWith(':latest'))"},
    ]
    init = [{"name": "init", "image": "d:latest"}]
    (found,) = judged(pod(initContainers=init), "variables.bad.size() == 0", variables=variables)
    assert set(found.paths) == {("spec", "containers", 1, "image"), ("spec", "initContainers", 0, "image")}


@pytest.mark.parametrize(
    ("selector", "is_taken"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "In", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_label_selectors_follow_kubernetes(selector: Body, is_taken: bool) -> None:
    assert matches_admission_policy_selector(selector, {"a": "1"}) == is_taken


def test_plurals_are_guessed_or_known() -> None:
    words = {"NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses", "Endpoints": "endpoints"}
    assert {kind: guess_resource_plural_of_kind(kind) for kind in words} == words
    assert ExtraKinds({("x.y", "Fish"): ("fish", False)}).find("x.y/v1", "Fish").plural == "fish"
    assert not ExtraKinds().find("kueue.x-k8s.io/v1beta2", "ClusterQueue").namespaced
