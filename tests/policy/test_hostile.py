"""Files without a valid policy, and cases that prove nothing: reported at their place, without a crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import gangplan, write

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [trainer.kubeflow.org], apiVersions: ['*'], operations: [CREATE], resources: [trainjobs]}
  validations:
  - {expression: 'false', message: never}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small}
spec: {policyName: small, validationActions: [Deny]}
"""
VAP = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n"
JOB = "apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob"
WHOLE = f"object: {{{JOB}, metadata: {{name: a}}, spec: {{runtimeRef: {{name: x}}}}}}"

SHAPELESS = [
    (
        VAP + "metadata: [a]\n",
        "policies/x.yaml:3:11: error[policy-invalid] the ValidatingAdmissionPolicy has no",
    ),
    ("apiVersion: v1\nkind: Namespace\n", "policies/x.yaml:1:1: error[policy-invalid] the Namespace has no"),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: str\n", "policies/x.yaml:3:11: error[policy-invalid]"),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 5}\n", "policies/x.yaml:3:18: error[policy-invalid]"),
    (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: [b]}\n",
        "x.yaml:3:29: error[policy-invalid]",
    ),
    ("- 1\n", "policies/x.yaml:1:1: error[policy-invalid] the document is not a Kubernetes object"),
    ("hello\n", "policies/x.yaml:1:1: error[policy-invalid] the document is not a Kubernetes object"),
]


@pytest.mark.parametrize("command", [("validate",), ("policy", "list"), ("policy", "test")])
@pytest.mark.parametrize(("text", "says"), SHAPELESS)
def test_documents_that_are_not_objects_are_refused(
    tmp_path: Path, text: str, says: str, command: tuple[str, ...]
) -> None:
    root = write(workspaces.stock(tmp_path), {"policies/x.yaml": text})
    result = gangplan(*command, "-C", root)
    assert says in result.err
    assert result.code in (Exit.INPUT, Exit.CLEAN if command == ("policy", "list") else Exit.INPUT)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/nowhere")])
def test_irregular_files_are_refused(tmp_path: Path, make: object) -> None:
    root = workspaces.stock(tmp_path)
    (root / "policies").mkdir()
    make(root / "policies" / "x.yaml")  # type: ignore[operator]
    result = gangplan("validate", "-C", root)
    rule = "policy-file-ignored" if (root / "policies/x.yaml").is_dir() else "file-unreadable"
    assert f"policies/x.yaml: error[{rule}] this is " in result.err
    assert result.code == Exit.INPUT


@pytest.mark.parametrize("name", ["policies", "policies/waivers", "policies/tests"])
def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    root = write(workspaces.stock(tmp_path), {name: "x"})
    result = gangplan("validate", "-C", root)
    assert f"{name}: error[policy-file-ignored] {name} is not a folder" in result.err
    assert result.code == Exit.INPUT


CASES = [
    ("object: {apiVersion: v1, kind: Pod, metadata: x}", ":2:47: ", "metadata is the text 'x'"),
    (f"object: {{{JOB}, metadata: {{name: a}}, bogus: 1}}", ":2:97: ", "unknown field 'bogus'"),
    (
        f"{WHOLE}\nnamespace: {{metadata: x}}",
        ":3:12: ",
        "this is not a Namespace",
    ),
    (
        f"matches: false\n{WHOLE}",
        ":2:10: ",
        "never refuses an object",
    ),
]


@pytest.mark.parametrize(("case", "place", "says"), CASES)
def test_a_case_that_proves_nothing_is_reported(tmp_path: Path, case: str, place: str, says: str) -> None:
    files = {"policies/x.yaml": POLICY, "policies/tests/small.a.deny.yaml": f"message: never\n{case}\n"}
    result = gangplan("policy", "test", "-C", write(workspaces.stock(tmp_path), files))
    assert f"policies/tests/small.a.deny.yaml{place}error[policy-case]" in result.err
    assert says in result.err
    assert result.code == Exit.FINDINGS


def test_a_wrong_binding_is_reported_once(tmp_path: Path) -> None:
    text = POLICY.replace("[Deny]", "[Deny, Warn]")
    result = gangplan("validate", "-C", write(workspaces.stock(tmp_path), {"policies/x.yaml": text}))
    assert "Deny and Warn exclude each other" in result.err
    assert "policy-inert" not in result.err
