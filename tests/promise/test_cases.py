"""Patches that a site may write, each with its verdict: refused at the operation, reported, or allowed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.rules.model import Severity
from tests import plain
from tests.promise.patched import OVERLAY, verdict, workspace

FILE = plain.load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))
CASES: dict[str, dict[str, Any]] = FILE["cases"]
BROKEN, WEAKENED = "plan-broken", "plan-weakened"


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a workspace for each run."""
    return {
        name: workspace(tmp_path_factory.mktemp(name), fields, FILE["clusters"].get(name, {}))
        for name, fields in FILE["runs"].items()
    }


@pytest.mark.parametrize("name", CASES)
def test_each_patch_has_its_verdict(name: str, roots: dict[str, Path]) -> None:
    case = CASES[name]
    root = roots[case.get("of", "mpi")]
    found = verdict(root, case.get("kind", "TrainingRuntime"), case["patch"])

    mine = [one for one in found.findings if one.rule in (BROKEN, WEAKENED)]
    errors = {one.rule for one in found.findings if one.severity is Severity.ERROR}
    wanted_errors = {*([BROKEN] if "refused" in case else []), *case.get("rest", []), *case.get("other", {})}
    assert errors == wanted_errors, found.findings
    for rule, words in case.get("other", {}).items():
        assert any(one.rule == rule and words in one.message for one in found.findings), found.findings
    wanted = case.get("refused", case.get("told"))
    if wanted is None:
        assert case.get("allowed") or case["other"]
        assert not mine
        return
    rule = BROKEN if "refused" in case else WEAKENED
    told = [one for one in mine if one.rule == rule and wanted in one.message]
    assert told, [one.message for one in mine]
    # The place is in one of the operations, and the help says how to do it right.
    for one in mine:
        line = (root / OVERLAY).read_text().splitlines()[one.where.line - 1]
        assert one.where.file == OVERLAY
        assert re.match(r"    - \{op: ", line), line
        assert one.help.endswith(".")


def test_every_case_has_exactly_one_verdict() -> None:
    for name, case in CASES.items():
        assert sum(key in case for key in ("refused", "told", "allowed", "other")) == 1, name
