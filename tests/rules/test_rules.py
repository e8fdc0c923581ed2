"""Every rule has a page, every page a rule; every example breaks its rule and, made right, does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gangplan.commands.docs import pages
from gangplan.commands.explain import explain
from gangplan.errors import Exit
from gangplan.rules import SEVERITIES, Rule, built_in, rules
from tests.rules.code import emitted, texts
from tests.rules.worlds import build
from tests.workspaces import Outcome, gangplan

RULES = rules()
EXAMPLES = [rule for rule in RULES.values() if rule.example]


def test_every_rule_of_the_code_has_a_page() -> None:
    missing = {rule: module for rule, module in emitted().items() if rule not in RULES}
    assert not missing, "add them to gangplan/rules/ (see the first lines of core.yaml)"


def test_every_page_is_of_a_rule() -> None:
    assert set(built_in()) - texts() == set()


def test_there_are_many() -> None:
    assert len(emitted()) > 120


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_page_says_enough(rule: Rule) -> None:
    assert rule.severity in SEVERITIES
    assert 15 <= len(rule.title) <= 110
    assert rule.title.endswith(".")
    assert len(rule.why) >= 60, "two sentences that make sense of the rule"
    assert len(rule.fix) >= 15
    assert not re.search(r"\bfacts [A-Z]?[0-9]", rule.why + rule.fix), "a user has no such document"
    # A page without an example says why no workspace can show the rule, and the test that does.
    assert (rule.example is None) == bool(rule.untested)


def found(outcome: Outcome) -> dict[str, set[str]]:
    """Rule -> severities."""
    result: dict[str, set[str]] = {}
    for one in outcome.findings:
        result.setdefault(one.rule, set()).add(one.severity)
    return result


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.id)
def test_before_breaks_this_rule_alone(rule: Rule, tmp_path: Path, builder: str) -> None:
    assert rule.example
    outcome = build(tmp_path / "workspace", rule.example, "before")
    assert set(found(outcome)) == {rule.id, *rule.example.rest}, outcome.err
    assert rule.severity in found(outcome)[rule.id]
    told = [one for one in outcome.findings if one.rule == rule.id]
    assert all(one.help for one in told), "a finding says what helps"
    assert (outcome.code == Exit.CLEAN) == (rule.severity != "error" and not rule.example.rest), outcome.err


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.id)
def test_after_does_not(rule: Rule, tmp_path: Path, builder: str) -> None:
    assert rule.example
    outcome = build(tmp_path / "workspace", rule.example, "after")
    assert rule.id not in found(outcome), outcome.err
    assert outcome.code == Exit.CLEAN, outcome.err


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    for rule in RULES.values():
        assert explain(rule.id) == Exit.CLEAN
        words = " ".join(capsys.readouterr().out.split())
        for part in (rule.title, rule.why, rule.fix):
            assert " ".join(part.split()) in words, rule.id


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
def test_explain_a_field(name: str, says: str) -> None:
    outcome = gangplan("explain", name)
    assert outcome.code == Exit.CLEAN
    assert says in outcome.out


def test_the_page_has_every_rule() -> None:
    shown = pages()
    for rule in RULES:
        page = shown["rules.md" if rule in built_in() else "policies.md"]
        assert f"### {rule}\n" in page
