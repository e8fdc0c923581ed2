"""Every rule has a page, and every page a rule; every example breaks its rule and, once fixed, does not."""

from __future__ import annotations

import ast
import json
import pickle
import re
from importlib import import_module
from pathlib import Path

import pytest

from gangplan import rulebook
from gangplan.commands.explain import run_explain_command
from gangplan.errors import Exit
from gangplan.findings import Finding, Location
from gangplan.reference.pages import render_docs_pages
from gangplan.report.sarif import sarif_report
from gangplan.rulebook import (
    Rulebook,
    find_rule_example,
    formerly,
    group_built_in_rules_by_topic,
    load_built_in_rules,
    load_examples_of_rules,
    load_shipped_rules,
)
from gangplan.rules.merges import RENDERED_STALE
from gangplan.rules.model import ERROR, Rule
from tests.report.samples import report
from tests.rules.worlds import build
from tests.workspaces import REPOSITORY, Outcome, gangplan

RULES = load_shipped_rules()
EXAMPLES = {rule: example for rule in RULES.values() if (example := find_rule_example(rule))}


def raised() -> frozenset[str]:
    """Return the names of rules that the code imports; mypy refuses an import that does not exist."""
    return frozenset(
        alias.name
        for folder in ("gangplan", "validate", "generators")
        for path in (REPOSITORY / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gangplan.rules.")
        for alias in node.names
    )


def test_every_rule_is_raised() -> None:
    assert {rule.upper().replace("-", "_") for rule in load_built_in_rules()} - raised() == set()


def test_the_name_of_a_rule_is_its_id() -> None:
    for topic, found in group_built_in_rules_by_topic().items():
        module = import_module(f"gangplan.rules.{topic}")
        assert all(getattr(module, rule.upper().replace("-", "_")) is rule for rule in found.values())


def test_a_rule_can_be_pickled() -> None:
    for rule in RULES.values():
        copy = pickle.loads(pickle.dumps(rule))
        assert (copy, vars(copy)) == (rule, vars(rule))


def test_no_rule_is_named_by_a_literal_in_the_code() -> None:
    """Rules are imported, so that a rule that does not exist cannot be raised."""
    plain = {"schema", "kubeconform", "pod-security"}  # words with other meanings as well
    for folder in ("gangplan", "validate", "generators"):
        for path in (REPOSITORY / folder).rglob("*.py"):
            # Causes of diagnose name rules as pages do; tests/diagnose/test_causes.py checks that they exist.
            if "rules" not in path.parts and not path.name.startswith("known_"):
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        assert node.value in plain or node.value not in load_built_in_rules(), (
                            f"{path}:{node.lineno}"
                        )


@pytest.mark.parametrize("rule", RULES.values(), ids=str)
def test_each_page_has_a_summary_a_reason_and_a_fix(rule: Rule) -> None:
    assert 15 <= len(rule.summary) <= 110
    assert rule.summary.endswith(".")
    assert len(rule.why) >= 60, "two sentences that make sense of the rule"
    assert len(rule.fix) >= 15
    assert not re.search(r"\bfacts [A-Z]?[0-9]", rule.why + rule.fix), "a user has no such document"
    # A page without an example says why no workspace can show the rule, and names the test that does.
    assert (find_rule_example(rule) is None) == bool(rule.untested)


def found(outcome: Outcome) -> dict[str, set[str]]:
    """Return the severities of findings, by rule."""
    result: dict[str, set[str]] = {}
    for one in outcome.findings:
        result.setdefault(one.rule, set()).add(one.severity)
    return result


def test_examples_are_in_the_file_of_their_topic_in_the_order_of_rules() -> None:
    written = {file.stem: list(load_examples_of_rules(file.stem)) for file in rulebook.EXAMPLES.iterdir()}
    of_topics = group_built_in_rules_by_topic().items()
    assert written == {
        topic: [rule for rule in found if not found[rule].untested] for topic, found in of_topics
    }


def test_render_and_validate_do_not_read_examples(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_examples_of_rules.cache_clear()
    monkeypatch.setattr(rulebook, "EXAMPLES", Path("nowhere"))
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    assert gangplan("validate", "-C", root, "--format", "sarif").code == Exit.CLEAN
    assert "not installed" in gangplan("explain", "over-quota").err
    monkeypatch.undo()


@pytest.mark.parametrize("rule", EXAMPLES, ids=str)
def test_the_example_before_breaks_only_its_rule(rule: Rule, tmp_path: Path, builder: str) -> None:
    example = EXAMPLES[rule]
    outcome = build(tmp_path / "workspace", example, "before")
    # A change after rendering makes rendered/ stale.
    stale = {RENDERED_STALE} if example.run.startswith(("since", "again")) else set()
    assert set(found(outcome)) - stale == {rule, *example.rest} - stale, outcome.err
    assert rule.severity.word in found(outcome)[rule]
    told = [one for one in outcome.findings if one.rule == rule]
    assert all(one.help for one in told), "a finding says what helps"
    is_error = any(RULES[one].severity is ERROR for one in (rule, *example.rest))
    assert (outcome.code == Exit.CLEAN) != is_error, outcome.err


@pytest.mark.parametrize("rule", EXAMPLES, ids=str)
def test_the_example_after_does_not_break_its_rule(rule: Rule, tmp_path: Path, builder: str) -> None:
    outcome = build(tmp_path / "workspace", EXAMPLES[rule], "after")
    assert rule not in found(outcome), outcome.err
    assert outcome.code == Exit.CLEAN, outcome.err


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    for rule in RULES.values():
        assert run_explain_command(rule) == Exit.CLEAN
        words = " ".join(capsys.readouterr().out.split())
        for part in (rule.summary, rule.why, rule.fix):
            assert " ".join(part.split()) in words, rule


def test_explain_lists_all() -> None:
    outcome = gangplan("explain")
    assert [line.split()[0] for line in outcome.out.splitlines()] == list(RULES)


def test_explain_helps_with_a_typo() -> None:
    outcome = gangplan("explain", "pool-no-fits")
    assert outcome.code == Exit.INPUT
    assert "Did you mean 'pool-no-fit'?" in outcome.err


@pytest.mark.parametrize(
    ("name", "says"),
    [("workers", "Pods that run ranks"), ("TrainingJob.gpus", "GPUs"), ("nodePools", "pools")],
)
def test_explain_shows_a_field(name: str, says: str) -> None:
    outcome = gangplan("explain", name)
    assert outcome.code == Exit.CLEAN
    assert says in outcome.out


def test_the_pages_have_every_rule() -> None:
    shown = render_docs_pages()
    for rule in RULES:
        page = shown["rules.md" if rule in load_built_in_rules() else "policies.md"]
        assert f"### {rule}\n" in page


def test_a_rule_is_found_by_its_former_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(formerly()).isdisjoint(load_shipped_rules())
    for name, rule in formerly().items():
        assert Rulebook().find(name) is rule
        assert run_explain_command(name) == Exit.CLEAN
        assert f"Formerly: {name}." in capsys.readouterr().out
        found = Finding(rule, Location("overlays/lab/cluster.yaml", 1, 1), "m")
        (page,) = json.loads(sarif_report(report(found)))["runs"][0]["tool"]["driver"]["rules"]
        assert (page["id"], page["deprecatedIds"]) == (rule, list(rule.formerly))
