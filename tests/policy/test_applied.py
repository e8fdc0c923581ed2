"""Policies as `render` writes them: which objects, their names and order, and what they leave alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.objects import BINDING_KIND, POLICY_KIND
from gangplan.packs.cases import read_pack_cases
from gangplan.packs.read import PolicySource
from gangplan.policies import BUILTIN_PACKS
from gangplan.policy.cases import build_policy_case_evaluator, build_policy_case_suites
from gangplan.policy.export import choose_server_action, export_objects, fill_policy_defaults_of_server
from gangplan.policy.guards import (
    CONTROLLER_CONDITION,
    DELETION_CONDITION,
    add_policy_guard_conditions,
    build_match_conditions,
)
from gangplan.policy.limits import check_policy_sizes
from gangplan.policy.objects import POLICY_FILE
from gangplan.source import load_objects
from gangplan.validate.apiserver.policy.obstruction import check_admission_policy_obstruction
from gangplan.workspace import load_workspace
from tests.workspaces import CLUSTER, SPEC, TEAM, gangplan, rendered, stock, write

Object = dict[str, Any]
EVERY = f"policies: {{packs: [{', '.join(BUILTIN_PACKS)}]}}\n"
OWN = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short-names}
spec:
  paramKind: {apiVersion: example.com/v1, kind: Limits}
  matchConstraints:
    resourceRules:
    - apiGroups: [trainer.kubeflow.org]
      apiVersions: [v1alpha1]
      operations: [CREATE, UPDATE]
      resources: [trainjobs]
  matchConditions:
  - {name: mine, expression: "true"}
  validations:
  - expression: object.metadata.name.size() <= 40
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short-names-everywhere}
spec:
  policyName: short-names
  validationActions: [Deny, Audit]
  paramRef: {name: lengths, namespace: limits, parameterNotFoundAction: Deny}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: lengths, namespace: limits}
data: {most: "40"}
"""


def site(root: Path, policies: str = EVERY, **files: str) -> Path:
    """Create a workspace whose cluster has policies."""
    stock(root)
    written = {name.replace("__", "/") + ".yaml": text for name, text in files.items()}
    team = TEAM + "costCentre: '4711'\ncontact: nlp@example.com\n"
    base = {"overlays/lab/cluster.yaml": CLUSTER + policies, "specs/nlp/team.yaml": team}
    return write(root, {**base, **written})


def bodies(root: Path) -> list[Object]:
    """Return the objects that the cluster's policies are applied as."""
    return export_objects(load_workspace(root), "lab")


def test_render_and_export_write_the_same(tmp_path: Path) -> None:
    root = site(tmp_path)
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    file = rendered(root)[f"lab/{POLICY_FILE}"]
    printed = gangplan("policy", "export", "--cluster", "lab", "-C", root).out
    assert load_objects(file) == load_objects(printed) == bodies(root)
    assert gangplan("render", "--check", "-C", root).code == Exit.CLEAN
    assert gangplan("validate", "-C", root, "--no-cache").code == Exit.CLEAN


def test_a_cluster_without_packs_has_no_file(tmp_path: Path) -> None:
    root = stock(tmp_path)
    gangplan("render", "-C", root)
    assert f"lab/{POLICY_FILE}" not in rendered(root)


def test_removing_the_packs_removes_the_file(tmp_path: Path) -> None:
    root = site(tmp_path, "policies: {packs: [residency]}\n")
    gangplan("render", "-C", root)
    assert f"lab/{POLICY_FILE}" in rendered(root)
    write(root, {"overlays/lab/cluster.yaml": CLUSTER})
    gangplan("render", "-C", root)
    assert f"lab/{POLICY_FILE}" not in rendered(root)


def test_every_object_has_our_prefix_or_our_namespace(tmp_path: Path) -> None:
    found = bodies(site(tmp_path))
    policies = {one["metadata"]["name"] for one in found if one["kind"] == POLICY_KIND}
    for one in found:
        metadata = one["metadata"]
        assert metadata["name"].startswith("gangplan-")
        assert metadata.get("namespace", "gangplan-policies") == "gangplan-policies"
        if one["kind"] == BINDING_KIND:
            assert one["spec"]["policyName"] in policies
    assert {one["apiVersion"] for one in found} == {"v1", "admissionregistration.k8s.io/v1"}


def test_parameters_are_applied_before_policies_and_bindings(tmp_path: Path) -> None:
    """Namespace and parameters come first, then policies, then bindings; all before queues and runs."""
    root = site(tmp_path)
    gangplan("render", "-C", root)
    waves: dict[str, set[int]] = {}
    for path, text in rendered(root).items():
        for one in load_objects(text) if "/runs/" not in path else ():
            wave = int(one["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
            waves.setdefault(one["kind"] if path.endswith(POLICY_FILE) else path, set()).add(wave)
    assert waves["Namespace"] == waves["ConfigMap"] == {-25}
    assert (waves[POLICY_KIND], waves[BINDING_KIND]) == ({-24}, {-23})
    assert min(waves["lab/platform/roles.yaml"]) > -23
    kinds = [one["kind"] for one in bodies(root)]
    assert kinds == sorted(kinds, key=["Namespace", "ConfigMap", POLICY_KIND, BINDING_KIND].index)


def test_no_policy_is_protected_from_pruning(tmp_path: Path) -> None:
    for one in bodies(site(tmp_path)):
        assert not {"argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/prune"} & set(
            one["metadata"]["annotations"]
        )


def test_the_number_of_objects_does_not_grow_with_specs(tmp_path: Path) -> None:
    root = site(tmp_path)
    few = bodies(root)
    write(root, {f"specs/nlp/more-{number}.yaml": SPEC for number in range(40)})
    assert bodies(root) == few


def test_policies_of_a_workspace_are_applied_under_our_prefix(tmp_path: Path) -> None:
    root = site(tmp_path, "policies: {packs: [], enforcement: Warn}\n", policies__own=OWN)
    found = {one["kind"]: one for one in bodies(root)}
    assert found[POLICY_KIND]["metadata"]["name"] == "gangplan-short-names"
    assert found[BINDING_KIND]["metadata"]["name"] == "gangplan-short-names-everywhere"
    spec = found[BINDING_KIND]["spec"]
    assert (spec["policyName"], spec["validationActions"]) == ("gangplan-short-names", ["Warn", "Audit"])
    assert spec["paramRef"] == {"name": "lengths", "namespace": "limits", "parameterNotFoundAction": "Deny"}
    assert found["ConfigMap"]["metadata"]["name"] == "lengths"
    names = [one["name"] for one in found[POLICY_KIND]["spec"]["matchConditions"]]
    assert names == [DELETION_CONDITION, CONTROLLER_CONDITION, "mine"]


def test_policies_that_no_server_can_evaluate_stay_in_ci(tmp_path: Path) -> None:
    page = "title: Ours.\nwhy: We say so.\npolicies:\n  short: {title: a, why: b, fix: c, CI}\n"
    policy = (
        OWN.partition("---")[0]
        .replace("short-names", "short")
        .replace("example.com/v1, kind: Limits", "v1, kind: ConfigMap")
    )
    root = site(
        tmp_path,
        "policies: {packs: [ours]}\n",
        policies__ours__pack=page.replace(", CI", ", ci_only: The list is in Git."),
        policies__ours__short=policy,
    )
    assert bodies(root) == []
    assert "Deny, CI only" in gangplan("policy", "list", "-C", root).out
    assert "CI only: The list is in Git." in gangplan("explain", "short", "-C", root).out
    write(root, {"policies/ours/pack.yaml": page.replace(", CI", "")})
    assert len(bodies(root)) == 4
    assert "ValidatingAdmissionPolicy gangplan-short" in gangplan("explain", "short", "-C", root).out


@pytest.mark.parametrize(
    ("action", "enforcement", "server"),
    [
        ("Deny", "Deny", "Deny"),
        ("Deny", "Warn", "Warn"),
        ("Deny", "Audit", "Audit"),
        ("Warn", "Deny", "Warn"),
        ("Warn", "Warn", "Warn"),
        ("Warn", "Audit", "Audit"),
        ("Audit", "Deny", "Audit"),
        ("Audit", "Warn", "Audit"),
        ("Audit", "Audit", "Audit"),
    ],
)
def test_the_server_enforces_no_more_than_the_cluster_states(
    action: str, enforcement: str, server: str
) -> None:
    assert choose_server_action(action, enforcement) == server


def test_validate_still_denies_what_the_server_only_audits(tmp_path: Path) -> None:
    policies = "policies: {packs: [lifecycle], enforcement: Audit, params: {run-deadline: {seconds: 60}}}\n"
    root = site(tmp_path, policies)
    outcome = gangplan("validate", "-C", root)
    assert (outcome.code, "error[run-deadline]" in outcome.err) == (Exit.FINDINGS, True)
    assert "Deny, server Audit" in gangplan("policy", "list", "-C", root).out
    assert "Deny, server Audit" in gangplan("list", "policies", "-C", root).out


def test_policies_that_do_not_fit_a_server_are_reported(tmp_path: Path) -> None:
    """The name is too long with our prefix, or the lists are too large for a ConfigMap."""
    long = "a" * 245
    root = site(
        tmp_path / "a", "policies: {packs: []}\n", policies__own=OWN.replace("short-names}", f"{long}}}", 1)
    )
    said = gangplan("validate", "-C", root).err
    assert "the name has 245 characters; with 'gangplan-' before it 244 are the most" in said
    data = {"known": "x" * (1024 * 1024 + 1)}
    large = {"kind": "ConfigMap", "metadata": {"name": "gangplan-image-catalog"}, "data": data}
    (found,) = check_policy_sizes([PolicySource(large, None, "overlays/lab/cluster.yaml")])
    assert (found.rule, found.where.file) == ("policy-invalid", "overlays/lab/cluster.yaml")
    assert "parameters of policy 'image-catalog' have 1048577 bytes; a ConfigMap holds" in found.message
    assert not list(
        check_policy_sizes([PolicySource({"kind": "x", "metadata": None, "data": []}, None, "a")])
    )


# What policies leave alone


def changing() -> list[Any]:
    """Return every refused case of policies that evaluate updates of its object."""
    found = []
    for suite in build_policy_case_suites(load_workspace(Path(__file__).parents[2])):
        for case in read_pack_cases(suite.folder, suite.shown)[0]:
            body = case.file.object
            is_changed = body["kind"] != "Pod"  # policies of pods evaluate only their creation
            if case.denies and is_changed and case.file.old_object is None:
                found.append(pytest.param(suite, case, id=f"{case.policy}.{case.name}"))
    return found


@pytest.mark.parametrize(("suite", "case"), changing())
def test_objects_that_break_a_policy_may_be_finished_and_annotated(suite: Any, case: Any) -> None:
    """Others may change finalizers, owners and marks, even when the object breaks the policy."""
    evaluator, _ = build_policy_case_evaluator(suite, case)
    before = copy.deepcopy(case.file.object)
    assert evaluator.judge([before])
    after = copy.deepcopy(before)
    after["metadata"]["finalizers"] = ["example.com/held"]
    after["metadata"].setdefault("annotations", {})["example.com/seen"] = "true"
    after["metadata"].setdefault("labels", {})["example.com/seen"] = "true"
    after["status"] = {"conditions": []}
    said = [one.message for one in evaluator.judge([after], [before])]
    if case.policy != "waiver-granted":  # it evaluates labels
        assert said == []


def test_every_policy_for_updates_begins_with_the_guards(tmp_path: Path) -> None:
    for one in bodies(site(tmp_path)):
        if one["kind"] != POLICY_KIND:
            continue
        rules = one["spec"]["matchConstraints"]["resourceRules"]
        names = [condition["name"] for condition in one["spec"].get("matchConditions", ())]
        is_guarded = names[:2] == [DELETION_CONDITION, CONTROLLER_CONDITION]
        assert is_guarded == any("UPDATE" in rule["operations"] for rule in rules)
        assert not list(check_admission_policy_obstruction(one))
        assert len(set(names)) == len(names)


def test_policies_ignore_the_site_s_controllers(tmp_path: Path) -> None:
    root = site(tmp_path, "policies: {packs: [residency], controllers: [openshift-kueue/manager]}\n")
    texts = [str(one["spec"].get("matchConditions")) for one in bodies(root) if one["kind"] == POLICY_KIND]
    assert all("system:serviceaccount:openshift-kueue:manager" in text for text in texts)
    assert "kueue-system:kueue-controller-manager" in build_match_conditions()[1]["expression"]


@pytest.mark.parametrize(("more", "is_known"), [("", False), ('openshift: "4.21", ', True)])
def test_policies_ignore_the_operators_of_openshift(more: str, is_known: bool, tmp_path: Path) -> None:
    """Kueue suspends and starts runs there under another name than upstream's."""
    root = site(tmp_path, "policies: {packs: [residency]}\n")
    file = root / "overlays/lab/cluster.yaml"
    file.write_text(file.read_text().replace("versions: {", f"versions: {{{more}"))
    texts = [str(one["spec"].get("matchConditions")) for one in bodies(root) if one["kind"] == POLICY_KIND]
    own = "system:serviceaccount:openshift-kueue-operator:kueue-controller-manager"
    assert [own in text for text in texts] == [is_known] * len(texts)
    assert texts


def test_a_policy_without_room_for_conditions_is_unchanged() -> None:
    own = [{"name": f"c{number}", "expression": "true"} for number in range(63)]
    spec = {"matchConstraints": {"resourceRules": [{"operations": ["UPDATE"]}]}, "matchConditions": own}
    add_policy_guard_conditions(spec)
    assert spec["matchConditions"] == own


def test_settled_accepts_any_file_content() -> None:
    for body in (
        {"kind": POLICY_KIND},
        {"kind": POLICY_KIND, "spec": None},
        {"kind": BINDING_KIND, "spec": []},
        {},
    ):
        assert (
            fill_policy_defaults_of_server(body)["kind" if body else "x"]
            if body
            else fill_policy_defaults_of_server(body) == {}
        )


RULE = {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "operations": ["CREATE", "UPDATE"]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, ""),
        ({"operations": ["CREATE", "DELETE"]}, "operations[1]"),
        ({"operations": ["*"]}, "operations[0]"),
        ({"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]}, "operations[0]"),
        ({"resources": ["trainjobs", "trainjobs/status"]}, "resources[1]"),
        ({"resources": ["*/*"]}, "resources[0]"),
        ({"resources": ["trainjobs/*"]}, "resources[0]"),
        ({"apiGroups": [""], "resources": ["pods/binding"]}, "resources[0]"),
        ({"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"]}, "resources[0]"),
        ({"apiGroups": [""], "resources": ["pods/exec"], "operations": ["CONNECT"]}, ""),
        ({"apiGroups": [""], "resources": ["persistentvolumeclaims"], "operations": ["DELETE"]}, ""),
        ({"apiGroups": ["apps"], "resources": ["deployments/status"], "operations": ["*"]}, ""),
        ({"apiGroups": ["batch"], "resources": ["*"], "operations": ["DELETE"]}, "operations[0]"),
        ({"apiGroups": [], "resources": [], "operations": ["DELETE"]}, ""),
    ],
)
def test_policies_that_keep_runs_from_ending_are_refused(change: Object, field: str) -> None:
    spec = {"matchConstraints": {"resourceRules": [{**RULE, **change}]}}
    found = list(check_admission_policy_obstruction({"spec": spec}))
    assert [field in one.message for one in found] == ([True] if field else [])
