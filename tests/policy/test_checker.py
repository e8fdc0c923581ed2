"""Findings of a workspace's policies: each cause once, at its worst, and not where a rule has reported it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.findings import Finding, Location
from gangplan.policy.checks import PolicyChecker, build_policy_checker, judge_objects_by_policies
from gangplan.policy.export import fill_policy_defaults_of_server
from gangplan.rulebook import SHIPPED_PACKS_FOLDER, Rulebook
from gangplan.rules.model import Severity
from gangplan.trace import Trace
from gangplan.workspace import load_workspace
from tests import plain
from tests.workspaces import CLUSTER, STOCK, write

SPEC = Location("specs/nlp/filings.yaml", 3, 1)
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-pods}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "false", message: no pods here}]
"""
BINDING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %s}
spec: {policyName: no-pods, validationActions: [%s]}
"""


def pod(name: str = "p") -> dict[str, Any]:
    """Return a pod for the policies to refuse."""
    spec = {"containers": [{"name": "one", "image": "a@b"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "nlp"}, "spec": spec}


def checker(root: Path, files: dict[str, str]) -> PolicyChecker:
    """Return the policies of the small workspace with more files."""
    workspace = load_workspace(write(root, {**STOCK, **files}))
    findings = workspace.findings
    assert not findings
    labels = {"gangplan.dev/team": "nlp", "app.kubernetes.io/managed-by": "gangplan"}
    spaces = [{"name": name, "labels": labels} for name in ("nlp", "test")]
    return build_policy_checker(
        workspace, "lab", [{"apiVersion": "v1", "kind": "Namespace", "metadata": one} for one in spaces]
    )


def tracer(index: int, path: object) -> Trace:
    """Trace every field to one line."""
    return Trace(SPEC, "")


def test_a_policy_is_silent_where_a_rule_reported_the_cause(tmp_path: Path) -> None:
    """pod-security covers host-namespaces (`told_by`); no other rule does."""
    text = CLUSTER.replace("region:", "policies: {packs: [baseline]}\nregion:")
    baseline = checker(tmp_path, {"overlays/lab/cluster.yaml": text})
    case = (SHIPPED_PACKS_FOLDER / "baseline/tests/host-namespaces.network.deny.yaml").read_text(
        encoding="utf-8"
    )
    body = plain.load(case)["object"]

    def told(*before: str) -> list[str]:
        others = [Finding(Rulebook().policy(rule), SPEC, "", "") for rule in before]
        return [one.rule for one in judge_objects_by_policies(baseline, [body], tracer, others)]

    assert "host-namespaces" in told()
    assert "host-namespaces" in told("network-open")
    assert "host-namespaces" not in told("pod-security")


@pytest.mark.parametrize("order", [("Warn", "Deny"), ("Deny", "Warn")], ids="-".join)
def test_of_two_bindings_the_worst_finding_is_reported(order: tuple[str, str], tmp_path: Path) -> None:
    bindings = {f"policies/b{place}.yaml": BINDING % (f"b{place}", word) for place, word in enumerate(order)}
    judge = checker(tmp_path, {"policies/a.yaml": POLICY, **bindings})
    assert [one.severity for one in judge.evaluator.judge([pod()])] == [
        Severity.ERROR if word == "Deny" else Severity.WARNING for word in order
    ]
    (found,) = judge_objects_by_policies(judge, [pod()], tracer)
    assert (found.rule, found.severity, found.where) == ("no-pods", Severity.ERROR, SPEC)


def test_a_line_that_causes_ten_findings_is_reported_once(tmp_path: Path) -> None:
    judge = checker(tmp_path, {"policies/a.yaml": POLICY, "policies/b.yaml": BINDING % ("b", "Deny")})
    pods = [pod(f"p-{number}") for number in range(10)]
    assert len(judge.evaluator.judge(pods)) == 10
    assert len(judge_objects_by_policies(judge, pods, tracer)) == 1


def test_exported_objects_have_what_a_server_fills_in() -> None:
    """Without the defaults, a GitOps engine would see a difference forever."""
    rules = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    match = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    filled = {**match, "resourceRules": [{**rules, "scope": "*"}]}
    policy, binding = plain.load(POLICY), plain.load(BINDING % ("b", "Deny"))
    policy["spec"]["matchConstraints"]["excludeResourceRules"] = [rules]
    assert fill_policy_defaults_of_server(policy)["spec"] == {
        **policy["spec"],
        "failurePolicy": "Fail",
        "matchConstraints": {**filled, "excludeResourceRules": [{**rules, "scope": "*"}]},
    }
    binding["spec"]["matchResources"] = {"resourceRules": [rules]}
    assert fill_policy_defaults_of_server(binding)["spec"] == {**binding["spec"], "matchResources": filled}
    own = {"resourceRules": [{**rules, "scope": "Namespaced"}], "matchPolicy": "Exact"}
    binding["spec"]["matchResources"] = own
    assert fill_policy_defaults_of_server(binding)["spec"]["matchResources"] == {**match, **own}
