"""Texts that look like variables of Flux's postBuild stay as they are, in every object of every example."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.objects import dump_object_as_block_yaml
from tests import plain
from tests.golden import EXAMPLES, read_example
from tests.workspaces import SPEC, gangplan, stock, write

# Flux fills in every ${NAME} in a text unless its object has this annotation (kustomize-controller 1.9, "Post
# build variable substitution").
SAYS = ("kustomize.toolkit.fluxcd.io/substitute", "disabled")


@pytest.mark.parametrize("name", [path.name for path in EXAMPLES])
def test_no_engine_fills_values_into_texts_of_examples(name: str) -> None:
    found = [
        body
        for text in read_example(name).values()
        for body in plain.load_all(text)
        if "${" in dump_object_as_block_yaml(body)
    ]
    assert found
    for body in found:
        assert SAYS in body["metadata"]["annotations"].items(), (body["kind"], body["metadata"]["name"])


POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-braces}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [trainer.kubeflow.org]
        apiVersions: [v1alpha1]
        operations: [CREATE, UPDATE]
        resources: [trainjobs]
  validations:
    - {expression: "!object.metadata.name.contains('WORD')", message: named so}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-braces}
spec: {policyName: no-braces, validationActions: [Deny]}
"""


@pytest.mark.parametrize(("word", "is_told"), [("${", True), ("$x", False)])
def test_a_policy_of_the_workspace_is_kept_from_substitution(
    word: str, is_told: bool, tmp_path: Path
) -> None:
    root = stock(tmp_path)
    write(root, {"policies/own.yaml": POLICY.replace("WORD", word), "specs/nlp/job.yaml": SPEC})
    assert gangplan("render", "-C", root).code == 0
    bodies = plain.load_all((root / "rendered/lab/platform/policies.yaml").read_text())
    (policy,) = [one for one in bodies if one["metadata"]["name"] == "gangplan-no-braces"][:1]
    assert (SAYS in policy["metadata"]["annotations"].items()) is is_told
