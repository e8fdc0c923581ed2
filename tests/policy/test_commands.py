"""`gangplan policy list|test|export`, `gangplan schema import`, and policies in `gangplan validate`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.source import load_objects
from tests.validate.crd import FOLDER, needs_crds
from tests.workspaces import gangplan, stock, write

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few-workers}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - apiGroups: [trainer.kubeflow.org]
      apiVersions: [v1alpha1]
      operations: [CREATE]
      resources: [trainjobs]
  validations:
  - expression: object.spec.trainer.numNodes <= int(params.data.most)
    messageExpression: |-
      'the run has ' + string(object.spec.trainer.numNodes) + ' nodes, ' + params.data.most + ' are the most'
"""
PACK = """\
title: Our own rules.
why: They hold in this company alone.
policies:
  few-workers:
    title: Runs are small.
    why: The cluster is.
    fix: Lower workers.
    params: {most: 3}
"""
CASE = """\
object:
  apiVersion: trainer.kubeflow.org/v1alpha1
  kind: TrainJob
  metadata: {name: a, namespace: test}
  spec: {runtimeRef: {name: x}, trainer: {numNodes: %d}}
"""
OURS = {
    "policies/ours/pack.yaml": PACK,
    "policies/ours/few-workers.yaml": POLICY,
    "policies/ours/tests/few-workers.three.allow.yaml": CASE % 3,
    "policies/ours/tests/few-workers.four.deny.yaml": CASE % 4
    + "message: the run has 4 nodes, 3 are the most\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    stock(folder)
    write(folder, OURS)
    with (folder / "overlays/lab/cluster.yaml").open("a") as file:
        file.write("policies: {packs: [ours]}\n")
    return folder


def test_a_breach_is_reported_at_the_field_of_the_spec(root: Path) -> None:
    outcome = gangplan("validate", "-C", str(root))
    (found,) = [one for one in outcome.findings if one.rule == "few-workers"]
    assert outcome.code == Exit.FINDINGS
    text = (root / "specs/nlp/filings.yaml").read_text().split("\n")
    line, column = (int(part) for part in found.place.split(":")[1:3])
    assert text[line - 1][column - 1 :] == "4"
    assert "3 are the most" in outcome.err


def test_the_summary_counts_policies(root: Path) -> None:
    assert "1 policy" in gangplan("validate", "-C", str(root)).out


def test_the_cluster_sets_parameters_and_actions(root: Path) -> None:
    file = root / "overlays/lab/cluster.yaml"
    text = file.read_text()
    file.write_text(text.replace("[ours]}", "[ours], params: {few-workers: {most: 8}}}"))
    assert gangplan("validate", "-C", str(root)).code == Exit.CLEAN
    file.write_text(text.replace("[ours]}", "[ours], actions: {few-workers: Warn}}"))
    outcome = gangplan("validate", "-C", str(root))
    assert outcome.code == Exit.CLEAN
    assert "warning[few-workers]" in outcome.err


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{packs: [our]}", "there is no policy pack 'our'"),
        ("{packs: [ours], actions: {few-worker: Warn}}", "no pack of this cluster has a policy 'few-worker'"),
        ("{packs: [ours], params: {few-workers: {mst: 1}}}", "policy 'few-workers' has no parameter 'mst'"),
    ],
)
def test_unknown_packs_policies_and_parameters_are_refused(root: Path, settings: str, said: str) -> None:
    file = root / "overlays/lab/cluster.yaml"
    file.write_text(file.read_text().replace("{packs: [ours]}", settings))
    outcome = gangplan("validate", "-C", str(root))
    assert outcome.code == Exit.INPUT
    assert said in outcome.err
    assert "Did you mean" in outcome.err


def test_list_has_actions_and_clusters(root: Path) -> None:
    rows = json.loads(gangplan("policy", "list", "-C", str(root), "--format", "json").out)
    (mine,) = [row for row in rows if row["policy"] == "few-workers"]
    assert mine == {
        "policy": "few-workers",
        "pack": "ours",
        "title": "Runs are small.",
        "actions": {"lab": "Deny"},
        "server": {"lab": "Deny"},
        "ciOnly": "",
    }
    assert "few-workers" in gangplan("policy", "list", "-C", str(root)).out


def test_passing_cases_are_counted(root: Path) -> None:
    outcome = gangplan("policy", "test", "ours", "-C", str(root))
    assert (outcome.code, outcome.out) == (Exit.CLEAN, "checked 1 policy, 2 cases: all as they should be\n")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("few-workers.x.allow.yaml", CASE % 4, "must let this through, but says: the run has 4 nodes"),
        ("few-workers.x.deny.yaml", CASE % 2 + "message: x\n", "must refuse this, but lets it through"),
        (
            "few-workers.x.deny.yaml",
            CASE % 4 + "message: nope\n",
            "with another message: the run has 4 nodes",
        ),
        ("few-workers.x.deny.yaml", CASE % 4, "a refusal without a message"),
        ("few-workers.x.allow.yaml", (CASE % 4).replace("TrainJob", "TrainJib"), "nothing was checked"),
        ("few-worker.x.allow.yaml", CASE % 1, "there is no policy 'few-worker'"),
        ("few-workers.allow.yaml", CASE % 1, "does not say which policy"),
    ],
)
def test_failing_cases_are_reported_with_a_reason(root: Path, name: str, text: str, said: str) -> None:
    write(root, {f"policies/ours/tests/{name}": text})
    outcome = gangplan("policy", "test", "ours", "-C", str(root))
    assert outcome.code == Exit.FINDINGS
    assert f"policies/ours/tests/{name}" in outcome.err
    assert "error[policy-case]" in outcome.err
    assert said in outcome.err
    assert said in outcome.err


def test_a_policy_without_cases_is_a_warning(root: Path) -> None:
    for file in (root / "policies/ours/tests").iterdir():
        file.unlink()
    outcome = gangplan("policy", "test", "ours", "-C", str(root))
    assert re.search(r"(?m)^policies/ours/[^:]+\.yaml:[0-9]+:[0-9]+: warning\[policy-untested\]", outcome.err)
    assert gangplan("policy", "test", "nope", "-C", str(root)).code == Exit.INPUT


def test_export_is_complete_and_stable(root: Path) -> None:
    first = gangplan("policy", "export", "--cluster", "lab", "-C", str(root))
    assert first.out == gangplan("policy", "export", "--cluster", "lab", "-C", str(root)).out
    bodies = load_objects(first.out)
    assert [body["kind"] for body in bodies] == [
        "Namespace",
        "ConfigMap",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]
    assert bodies[1]["data"] == {"most": "3"}
    assert bodies[3]["spec"]["paramRef"]["name"] == bodies[1]["metadata"]["name"]
    gangplan("policy", "export", "--cluster", "lab", "-C", str(root), "-o", str(root / "all.yaml"))
    assert (root / "all.yaml").read_text() == first.out


def test_nothing_is_exported_of_a_broken_policy(root: Path) -> None:
    file = root / "policies/ours/few-workers.yaml"
    file.write_text(POLICY.replace("numNodes <=", "numNodes ==>"))
    outcome = gangplan("policy", "export", "--cluster", "lab", "-C", str(root))
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert "policies/ours/few-workers.yaml:13:" in outcome.err


def test_a_cluster_without_policies_exports_nothing(root: Path) -> None:
    file = root / "overlays/lab/cluster.yaml"
    file.write_text(file.read_text().replace("policies: {packs: [ours]}\n", ""))
    outcome = gangplan("policy", "export", "--cluster", "lab", "-C", str(root))
    assert outcome.code == Exit.INPUT
    assert "has no policies" in outcome.err


def test_a_case_that_only_the_cluster_can_decide_is_reported(root: Path) -> None:
    text = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-queue}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [kueue.x-k8s.io], apiVersions: [v1beta1], operations: [CREATE], resources: [localqueues]}
  validations: [{expression: "false", message: none}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-queue}
spec: {policyName: no-queue, validationActions: [Deny]}
"""
    case = (
        "object: {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: x},\n"
        "  spec: {clusterQueue: q}}\nmessage: none\n"
    )
    write(root, {"policies/own.yaml": text, "policies/tests/no-queue.plain.deny.yaml": case})
    outcome = gangplan("policy", "test", "no-queue", "-C", str(root))
    assert outcome.code == Exit.FINDINGS
    assert "applies to this object: the policy names localqueues of kueue.x-k8s.io/v1beta1" in outcome.err
    exact = text.replace("  matchConstraints:\n", "  matchConstraints:\n    matchPolicy: Exact\n")
    write(root, {"policies/own.yaml": exact})
    assert "does not apply to this object" in gangplan("policy", "test", "no-queue", "-C", str(root)).err


def test_own_policies_apply_to_every_cluster(root: Path) -> None:
    own = POLICY.replace("few-workers", "own-rule").replace(
        "  paramKind: {apiVersion: v1, kind: ConfigMap}\n", ""
    )
    own = own.replace("int(params.data.most)", "2").replace("params.data.most", "'2'")
    bound = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n"
    bound += "metadata: {name: own-rule}\nspec: {policyName: own-rule, validationActions: [Warn]}\n"
    write(root, {"policies/own.yaml": own + bound})
    assert "warning[own-rule]" in gangplan("validate", "-C", str(root)).err


WIDGET = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: left out
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
        x-kubernetes-validations: [{rule: self.spec.size < 3}]
"""


def test_a_crd_is_imported(root: Path) -> None:
    write(root, {"crd.yaml": WIDGET})
    outcome = gangplan("schema", "import", str(root / "crd.yaml"), "-C", str(root))
    assert (outcome.code, outcome.out) == (Exit.CLEAN, "schemas/example.com/widgets.json: Widget (v1)\n")
    taken = (root / "schemas/example.com/widgets.json").read_text()
    assert "left out" not in taken
    gangplan("schema", "import", str(root / "crd.yaml"), "-C", str(root), "--cluster", "lab")
    assert (root / "overlays/lab/schemas/example.com/widgets.json").read_text() == taken


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WIDGET.replace("self.spec.size", "self.spec.sise"), "crd.yaml:18:52: a rule of Widget"),
        (WIDGET.replace("self.spec.size", "self.spec.sise"), "undefined field 'sise'"),
        ("kind: ConfigMap\n---\n" + WIDGET.replace("self.spec.size", "self.spec.sise"), "crd.yaml:20:52: "),
        ("kind: ConfigMap\n", "holds no CustomResourceDefinition"),
        (WIDGET.replace("  scope: Namespaced\n", ""), "spec.scope is not Namespaced or Cluster"),
        ("a: [", "is not YAML"),
    ],
)
def test_an_invalid_crd_is_refused(root: Path, text: str, said: str) -> None:
    write(root, {"crd.yaml": text})
    outcome = gangplan("schema", "import", str(root / "crd.yaml"), "-C", str(root))
    assert outcome.code == Exit.INPUT
    assert said in outcome.err
    assert not (root / "schemas").exists()


@needs_crds
def test_the_workspace_is_checked_by_its_own_crds(root: Path) -> None:
    file = next(FOLDER.glob("trainer-v2.3*/*trainjobs.yaml"))
    text = file.read_text().replace("size(self.metadata.name) <= 63", "size(self.metadata.name) <= 3")
    write(root, {"crd.yaml": text})
    assert gangplan("schema", "import", str(root / "crd.yaml"), "-C", str(root)).code == Exit.CLEAN
    outcome = gangplan("validate", "-C", str(root))
    assert "crd-rule" in outcome.err
    assert "no more than 63 characters" in outcome.err
