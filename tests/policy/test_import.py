"""`gangplan schema import`: what it refuses and where, and that it writes nowhere else."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit, UserError
from gangplan.objects import dump_all
from gangplan.pipeline.crds import check_crd_file, read_crds_for_schema_import
from gangplan.source import load_objects
from gangplan.validate.apiserver.crdrules.manifest import find_crd_problem
from tests.policy.crd_cases import CASES, definition
from tests.validate.crd import FOLDER, needs_crds
from tests.workspaces import Outcome, gangplan, write

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
"""
SIZE = "{type: integer}"
RULES = "        x-kubernetes-validations: "


def take_in(root: Path, text: str) -> Outcome:
    """Import one file."""
    write(root, {"crd.yaml": text})
    return gangplan("schema", "import", str(root / "crd.yaml"), "-C", str(root))


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", "1:13", "apiVersion"),
        (CRD[CRD.index("spec:") :], "spec: x\n", "4:7", "spec is not a mapping"),
        (CRD[CRD.index("spec:") :], "", "1:1", "spec is missing"),
        ("group: example.com", "group: ../../..", "5:10", "spec.group is not a DNS name"),
        ("group: example.com", "group: /tmp/x.y", "5:10", "spec.group is not a DNS name"),
        ("group: example.com", "group: [a]", "5:10", "spec.group is not a DNS name"),
        ("group: example.com", 'group: "a.b\\0"', "5:10", "spec.group is not a DNS name"),
        ("  group: example.com\n", "", "5:3", "spec.group is not a DNS name"),
        ("plural: widgets", "plural: ../../x", "6:33", "spec.names.plural is not a DNS label"),
        ("plural: widgets", f"plural: {'a' * 300}", "6:33", "spec.names.plural is not a DNS label"),
        ("{kind: Widget, plural: widgets}", "x", "6:10", "spec.names.plural is not a DNS label"),
        ("kind: Widget", 'kind: "Foo\\n::error::x"', "6:17", "spec.names.kind is not a name"),
        ("widgets.example.com", "widgets.example.org", "3:18", "(widgets.example.com)"),
        ("Namespaced", "Anywhere", "7:10", "spec.scope is not Namespaced or Cluster"),
        (CRD[CRD.index("  versions:") :], "  versions: []\n", "8:13", "is not a list of versions"),
        (CRD[CRD.index("  - name") :], "  - x\n", "9:5", "a version is not a mapping"),
        ("name: v1\n", "name: [v1]\n", "9:11", "the name of a version"),
        ("served: true", "served: maybe", "10:13", "served of version v1"),
        ("served: true", "served: false", "9:3", "no version is served"),
        (CRD[CRD.index("type: object") :], "5\n", "14:9", "version v1 has no schema"),
        (CRD[CRD.index("openAPIV3Schema") :], "openAPIV3Schema: null\n", "13:24", "version v1 has no schema"),
        (SIZE, "{properties: [a]}", "16:64", "properties of spec.size is not a mapping"),
        (SIZE, "{items: x}", "16:59", "items of spec.size is not a mapping"),
        (SIZE, "{items: [1, 2]}", "16:59", "items of spec.size is not a mapping"),
        (SIZE, "5", "16:51", "the schema of spec.size is not a mapping"),
        (SIZE, "{type: banana}", "16:58", "the type of spec.size is none of array"),
        (SIZE, '{type: string, maxLength: "5"}', "16:77", "maxLength of spec.size is not a whole number"),
        (SIZE, "{enum: abc}", "16:58", "enum of spec.size is not a list"),
        (SIZE, "{required: [1]}", "16:62", "required of spec.size is not a list of names"),
        (SIZE, "{allOf: [x]}", "16:60", "is not a mapping"),
        ("", f"{RULES}x\n", "17:35", "x-kubernetes-validations of the object is not a list"),
        ("", f"{RULES}[x]\n", "17:36", "a rule of the object has no expression"),
        ("", f"{RULES}[{{rule: 5}}]\n", "17:43", "rule of the object is not text"),
        ("", f"{RULES}[{{message: a}}]\n", "17:36", "a rule of the object has no expression"),
    ],
)
def test_crds_that_a_server_refuses_are_refused_at_their_line(
    old: str, new: str, place: str, said: str, root: Path
) -> None:
    assert old in CRD
    outcome = take_in(root, CRD.replace(old, new, 1) if old else CRD + new)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert outcome.err.startswith(f"fatal: {root}/crd.yaml:{place}: "), outcome.err
    assert said in outcome.err
    assert "\n  help: " in outcome.err
    assert not (root / "schemas").exists()


def test_the_line_in_a_list_is_that_of_the_file(root: Path) -> None:
    """`kubectl get crd -o yaml` prints a List; other objects and documents may come before it."""
    entries = "".join(f"  {line}\n" if line else "" for line in CRD.replace("example.com", "x").splitlines())
    text = f"kind: ConfigMap\n---\nkind: List\nitems:\n- kind: Other\n-{entries[1:]}"
    outcome = take_in(root, text)
    assert f"crd.yaml:{text[: text.index('group')].count(chr(10)) + 1}:12: spec.group" in outcome.err


@needs_crds
def test_the_crds_in_use_are_accepted() -> None:
    """These are the real ones of Trainer, JobSet and Kueue."""
    seen = 0
    for file in sorted(FOLDER.rglob("*.yaml")):
        for body in load_objects(file.read_bytes()):
            if body.get("kind") == "CustomResourceDefinition":
                assert find_crd_problem(body) is None, file
                seen += 1
    assert seen > 20


def test_nothing_is_written_outside_of_the_workspace(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "schemas").symlink_to(outside)
    outcome = take_in(root, CRD)
    assert outcome.code == Exit.INPUT
    assert "schemas/example.com/widgets.json would be written outside of the workspace" in outcome.err
    assert list(outside.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_not_an_internal_error(root: Path) -> None:
    write(root, {"schemas": "a file"})
    outcome = take_in(root, CRD)
    assert outcome.code == Exit.ENVIRONMENT
    assert "fatal: schemas/example.com/widgets.json was not written: " in outcome.err
    assert "Traceback" not in outcome.err


def test_a_broken_cluster_file_is_named(root: Path) -> None:
    write(root, {"crd.yaml": CRD, "overlays/lab/cluster.yaml": "a: [\n"})
    outcome = gangplan("schema", "import", str(root / "crd.yaml"), "-C", str(root), "--cluster", "lab")
    assert outcome.code == Exit.INPUT
    assert outcome.err.startswith("fatal: overlays/lab/cluster.yaml:2:1: a value is missing here")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "it is not JSON (line 1, column 1)"),
        (b"[]", "it is not a JSON object"),
        (b"{}", "group is missing"),
        (b"\xff", "it is not UTF-8"),
        (b"[" * 100_000, "it is nested too deep"),
        (b'{"group": "a", "kind": "A", "plural": "as", "scope": "Cluster"}', "versions are missing"),
        (
            b'{"group": "a", "kind": "A", "plural": "as", "scope": "Cluster", "versions": {"v1": 5}}',
            "versions",
        ),
    ],
)
def test_an_invalid_schema_file_is_reported(text: bytes, said: str, root: Path) -> None:
    write(root, {"schemas/ex.com/foos.json": text})
    outcome = gangplan("validate", "-C", str(root))
    assert outcome.code == Exit.INPUT
    assert "schemas/ex.com/foos.json:1:1: error[crd-unreadable] the file holds no CRD: " in outcome.err
    assert said in outcome.err


def test_a_broken_rule_exits_with_findings(root: Path) -> None:
    """Everything was read, and a check found something, so the exit code is 1, not 2."""
    trainjob = (
        CRD.replace("widgets.example.com", "trainjobs.trainer.kubeflow.org")
        .replace("example.com", "trainer.kubeflow.org")
        .replace("Widget", "TrainJob")
        .replace("plural: widgets", "plural: trainjobs")
        .replace("name: v1\n", "name: v1alpha1\n")
        .replace("properties: {size: {type: integer}}", "x-kubernetes-preserve-unknown-fields: true")
    )
    assert take_in(root, trainjob + RULES + "[{rule: 'false', message: never}]\n").code == Exit.CLEAN
    outcome = gangplan("validate", "-C", str(root))
    assert {rule for _, rule in outcome.errors()} == {"crd-rule"}
    assert outcome.code == Exit.FINDINGS


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_crd_is_accepted_exactly_where_servers_accept_it(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text(dump_all([definition(case)]), encoding="utf-8")
    refused = nullcontext() if case["taken"] else pytest.raises(UserError)
    with refused:
        for crd in read_crds_for_schema_import(file):
            check_crd_file(file, crd, 34)
