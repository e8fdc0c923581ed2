"""docs/own-policies.md works as written: its files written in order, its commands run between them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.packs.facts import PACK_FACTS
from gangplan.packs.model import Pack, PackPolicy
from gangplan.reference.pages import render_docs_pages
from gangplan.rulebook import load_built_in_rules, load_shipped_rules
from gangplan.source import load_objects
from tests.workspaces import STOCK, gangplan, write

PAGE = render_docs_pages()["own-policies.md"]
BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"# (\S+\.yaml)( \(added\))?\n")
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.example.com}
spec:
  group: example.com
  names: {kind: Limits, plural: limits, singular: limits}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {most: {type: integer}}}}}}
"""  # noqa: E501
# Exit codes of the commands that find something.
CODES = {"gangplan validate": Exit.FINDINGS}


def test_the_page_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, {**STOCK, "crd.yaml": CRD})
    monkeypatch.chdir(root)
    commands = 0
    for language, text in BLOCK.findall(PAGE):
        if language == "yaml":
            head = FILE.match(text)
            assert head, f"a file says where it stands: {text}"
            before = (root / head[1]).read_text() if head[2] else ""
            write(root, {head[1]: before + text[head.end() :]})
            continue
        for step in text.split("$ ")[1:]:
            command, _, shown = step.partition("\n")
            outcome = gangplan(*shlex.split(command)[1:])
            assert outcome.code == CODES.get(command, Exit.CLEAN), outcome.err
            for line in shown.splitlines():
                assert line in outcome.err + outcome.out, f"{command}: {outcome.err}{outcome.out}"
            commands += 1
    assert commands >= 6
    exported = load_objects((root / "policies-lab.yaml").read_text())
    names = {body["metadata"]["name"] for body in exported}
    assert {"gangplan-few-nodes", "gangplan-short-names", "gangplan-waiver-granted"} <= names


def test_the_page_has_every_field_and_fact() -> None:
    for model in (Pack, PackPolicy):
        for name, field in model.model_fields.items():
            assert f"| `{field.alias or name}` |" in PAGE
    assert all(f"| `{name}` |" in PAGE for name in PACK_FACTS)


def test_explain_describes_a_policy_of_a_pack() -> None:
    text = gangplan("explain", "image-scan").out
    for said in (
        "Pack: images (comes with gangplan); holds for every team.",
        "Parameter maxCritical: 0",
        "Parameter scans: filled in from the cluster.",
        "critical (refused)",
        "Refused, in policies/images/tests/image-scan.critical.deny.yaml:",
        "    kind: TrainingRuntime",
        "Waiver: a waiver may excuse it.",
    ):
        assert said in text
    assert "holds for what bears gangplan.dev/hipaa" in gangplan("explain", "transport-open").out
    assert "Waiver: no waiver may excuse it." in gangplan("explain", "waiver-granted").out


def test_explain_describes_own_policies(tmp_path: Path) -> None:
    files = {head[1]: text[head.end() :] for _, text in BLOCK.findall(PAGE) if (head := FILE.match(text))}
    root = write(tmp_path, {**STOCK, **{k: v for k, v in files.items() if "overlays" not in k}})
    text = gangplan("explain", "few-nodes", "-C", root).out
    assert "Pack: ours (this workspace)" in text
    assert "Parameter most: 50" in text
    assert "Refused, in policies/ours/tests/few-nodes.one-more.deny.yaml:" in text
    text = gangplan("explain", "short-names", "-C", root).out
    assert "It is in policies/short-names.yaml:3:18 and applies to every cluster." in text
    assert "Says else: names have at most 40 characters" in text
    assert "A breach leads to: Deny." in text
    assert "Did you mean 'short-names'?" in gangplan("explain", "short-name", "-C", root).err
    assert "few-nodes" in gangplan("explain", "-C", root).out


def test_pages_say_which_rules_can_be_waived() -> None:
    for file, sections in (("rules.md", load_built_in_rules()), ("policies.md", load_shipped_rules())):
        page = render_docs_pages()[file]
        for rule in (
            sections if file == "rules.md" else set(load_shipped_rules()) - set(load_built_in_rules())
        ):
            section = page.split(f"### {rule}\n")[1].split("\n### ")[0]
            may = load_shipped_rules()[rule].may_be_waived
            assert ("A waiver may excuse it." in section) == (may and file == "rules.md")
            assert ("No waiver may excuse it." in section) == (not may and file == "policies.md")
