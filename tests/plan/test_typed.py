"""Commands as experts type them: wrapped, kept or refused by the right rule; every proposal is right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gangplan.rules.model import Severity
from gangplan.source import load_document
from tests.plan.asking import decided

TYPED = Path(__file__).with_name("typed.txt")
CASES = [
    tuple(part.strip() for part in line.split(" | ", 2))
    for line in TYPED.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("image", "decision", "command"), CASES, ids=lambda part: part[:80])
def test_each_typed_command_is_decided_as_listed(image: str, decision: str, command: str, root: Path) -> None:
    final = decided(root, image, shlex.split(command))
    marks = {Severity.ERROR: "", Severity.WARNING: "~"}
    rules = ",".join(sorted({marks[one.severity] + one.rule for one in final.problems}))
    said = rules or ("wrap" if final.is_wrapped else "keep")
    assert said == ",".join(sorted(decision.split(",")))


def proposed(help: str) -> list[str] | None:
    """Return the command in a help line, or None."""
    found = re.search(r"command: (\[.*\])\.", help, re.DOTALL)
    return None if found is None else [str(word) for word in load_list(found[1])]


def load_list(text: str) -> list[str]:
    """Read a list as a spec would contain it."""
    document, _ = load_document(f"command: {text}\n".encode(), "spec.yaml")
    assert document is not None, text
    return list(document.value["command"])


@pytest.mark.parametrize(("image", "decision", "command"), CASES, ids=lambda part: part[:80])
def test_a_proposed_command_is_right(image: str, decision: str, command: str, root: Path) -> None:
    for problem in decided(root, image, shlex.split(command)).problems:
        words = proposed(problem.help)
        if words is not None:
            wrong = [one for one in decided(root, image, words).problems if one.severity is Severity.ERROR]
            assert wrong == [], problem.help


def test_there_are_many_distinct_cases() -> None:
    assert len(CASES) >= 250
    assert len(set(CASES)) == len(CASES)
