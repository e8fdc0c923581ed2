"""Findings as a whole: sentences, amounts as people read them, each cause once.

The cases that change one file of the small workspace are in tests/malformed/messages.yaml.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.findings import Finding, Location, format_sentence
from gangplan.report.changes import suggest_first_changes_for_findings
from gangplan.report.github import github_report
from gangplan.report.model import Report
from gangplan.report.sarif import sarif_report
from gangplan.report.text import text_report
from gangplan.rulebook import Rulebook, load_shipped_rules
from gangplan.spec.near import find_closest
from tests import test_thirty_faults, workspaces
from tests.workspaces import SPEC, gangplan, write

NAME = "specs/nlp/filings.yaml"
# Texts of Kubernetes that a message should not have: bytes, thousandths of a core, a number before a
# resource.
RAW = re.compile(r"\b[0-9]{8,}\b|[0-9]m (?:cpu|CPU)|[0-9](?:[KMGT]i?)? (?:memory|cpu)\b|[0-9]k CPU")
TWICE = re.compile(r"\b(\w{3,})[: ]+\1\b")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace."""
    return workspaces.stock(tmp_path)


def test_thirty_faults_are_reported_in_sentences_and_readable_amounts(tmp_path: Path) -> None:
    found = gangplan("validate", "-C", test_thirty_faults.workspace(tmp_path)).findings
    assert len(found) >= 30
    for one in found:
        assert one.help, one
        assert one.help[-1] in ".?!", one
        assert one.help == format_sentence(one.help), one
        assert not one.message.endswith(": "), one
        assert not RAW.search(one.message), one
        assert not TWICE.search(one.message), one


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("keep one", "Keep one."),
        ("Did you mean 4h?", "Did you mean 4h?"),
        ("workers: 4 is enough", "workers: 4 is enough."),
        ("gangplan explain lists all rules", "gangplan explain lists all rules."),
        ("", ""),
    ],
)
def test_a_help_is_a_sentence(written: str, said: str) -> None:
    assert (
        Finding(Rulebook().policy("x"), Location("a"), "m", written).help == format_sentence(written) == said
    )


def test_the_whole_word_is_underlined(root: Path) -> None:
    write(
        root, {NAME: SPEC.replace("memory: 32Gi", "memory: '320 GB'  # much").replace("workers", "wrokers")}
    )
    document = json.loads(gangplan("validate", "-C", root, "--format", "json").out)
    marks = {one["line"]: (one["column"], one["endColumn"]) for one in document["findings"]}
    assert marks == {5: (1, 8), 8: (9, 17)}


def test_every_format_marks_the_end_of_a_value() -> None:
    found = Finding(Rulebook().policy("spec-value"), Location("specs/a.yaml", 8, 9, 13), "m", "h")
    text = text_report([found], line=lambda where: "memory: 32GB  # much")
    assert text.splitlines()[2] == "      |         ^^^^"
    report = Report((found,))
    assert "col=9,endColumn=13," in github_report(report)
    region = json.loads(sarif_report(report))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert region["region"] == {"startLine": 8, "startColumn": 9, "endLine": 8, "endColumn": 13}


def test_places_with_different_ends_are_equal() -> None:
    assert Location("a", 1, 2, 5) == Location("a", 1, 2)
    assert len({Location("a", 1, 2, 5), Location("a", 1, 2, 9)}) == 1


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("wrokers", "workers"), ("worker", "workers"), ("imgae", "image"), ("priorty", "priority"),
        ("logs", ""), ("template", ""), ("after", ""), ("queue", ""), ("foo", ""), ("workers", ""), ("x", ""),
    ],
)  # fmt: skip
def test_only_similar_words_are_suggested(word: str, meant: str) -> None:
    known = ["workers", "slots", "state", "image", "priority", "gpus", "cpu", "labels", "timeout", "retries"]
    assert find_closest(word, known) == meant


def test_a_list_of_known_fields_is_not_a_fix() -> None:
    found = [
        Finding(
            Rulebook().policy("spec-unknown-field"),
            Location("specs/a.yaml", line, 1),
            f"m{line}",
            "Known fields: mig, model.",
        )
        for line in (1, 2, 3)
    ]
    assert not suggest_first_changes_for_findings(found)


def test_any_number_of_mig_slices_is_usual(root: Path) -> None:
    gpu = "gpu: {model: a100-80gb, count: 7, mig: 1g.10gb}"
    pool = f"  mig: {{count: 2, cpu: 60, memory: 240Gi, {gpu}, labels: {{pool: mig}}}}\n"
    cluster = workspaces.CLUSTER.replace("topology:\n", f"{pool}topology:\n", 1)
    write(root, {"overlays/lab/cluster.yaml": cluster})
    write(root, {NAME: SPEC.replace("gpus: 2", "gpus: 7\ngpu: {model: a100-80gb, mig: 1g.10gb}")})
    assert "gpus-unusual" not in {one.rule for one in gangplan("validate", "-C", root).findings}
    write(root, {NAME: SPEC.replace("gpus: 2", "gpus: 3")})
    (found,) = [one for one in gangplan("validate", "-C", root).findings if one.rule == "gpus-unusual"]
    assert found.message == "3 GPUs per worker leave 1 of the 7 GPUs of a node idle"


def test_the_help_for_a_secret_in_a_command_is_valid(root: Path) -> None:
    token = "hf_" + "abcdefghijABCDEFGHIJabcdefghijABCD"
    write(root, {NAME: SPEC.replace("[python, train.py]", f"python train.py --token {token}")})
    (found,) = gangplan("validate", "-C", root).findings
    assert found.rule == "secret-literal"
    assert found.help == "Revoke it, and take it from a secret: secrets: {env: {HF_TOKEN: SECRET/KEY}}."
    block = "secrets: {env: {HF_TOKEN: huggingface/token}}\n"
    write(root, {NAME: SPEC + block})
    assert not gangplan("validate", "-C", root).errors()


def test_the_retention_period_is_only_in_the_message() -> None:
    """Several regimes use the policy, so its page names no number: the message has the regime's own."""
    pages = [page for name, page in load_shipped_rules().items() if name.startswith("audit-retention")]
    assert pages
    assert not any(re.search(r"[0-9]+ ?d", page.fix) for page in pages)


def test_a_cluster_without_fips_is_reported_once(root: Path) -> None:
    cluster = workspaces.CLUSTER + "policies: {packs: [fedramp]}\n"
    write(root, {"overlays/lab/cluster.yaml": cluster, NAME: SPEC + "compliance: [fedramp]\n"})
    found = [one for one in gangplan("validate", "-C", root).findings if "FIPS" in one.message]
    assert [one.rule for one in found] == ["cluster-fips"]


@pytest.mark.parametrize("command", [("cluster",), ("schema",), ("gitops",)])
def test_a_bare_command_shows_its_help(command: tuple[str, ...]) -> None:
    outcome = gangplan(*command)
    assert outcome.code == Exit.INPUT  # nothing was checked, which is not a success
    assert outcome.err.startswith(f"Usage: {' '.join(('gangplan', *command))} ")
    assert "\\n" not in outcome.err
    assert "Commands:" in outcome.err


@pytest.mark.parametrize("asked", [("-h",), ("--help",), ("help",), ("plan", "-h"), ("help", "plan")])
def test_each_usual_way_to_ask_for_help_works(asked: tuple[str, ...]) -> None:
    outcome = gangplan(*asked)
    assert outcome.code == Exit.CLEAN
    assert outcome.out.startswith("Usage: gangplan")
