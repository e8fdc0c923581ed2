"""Mistakes in a cluster file: reported once, at their line, before anything is written; near misses pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests import plain
from tests.standing.base import workspace
from tests.workspaces import gangplan, write

CASES: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8")
)
FILE = "overlays/lab/cluster.yaml"


def test_the_cluster_without_mistakes_has_no_findings(tmp_path: Path) -> None:
    outcome = gangplan("validate", "-C", workspace(tmp_path))
    assert outcome.code == Exit.CLEAN, outcome.err
    assert not outcome.findings


@pytest.mark.parametrize("name", CASES)
def test_each_mistake_is_reported_at_its_line(name: str, tmp_path: Path) -> None:
    case, root = CASES[name], workspace(tmp_path)
    text = (root / FILE).read_text()
    changes = case.get("change", [])
    for old, new in [changes] if changes and isinstance(changes[0], str) else changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    write(root, {FILE: text, **case.get("write", {})})

    outcome = gangplan("render", "-C", root)

    level = case.get("level", "error")
    found = sorted((shown.place, shown.rule) for shown in outcome.findings if shown.severity == level)
    wanted = sorted(_place(line) for line in case["finds"])
    assert found == wanted, outcome.err
    assert level == "error" or not outcome.errors()
    is_refused = bool(case["finds"]) and level == "error"
    assert outcome.code == (case.get("code", Exit.INPUT) if is_refused else Exit.CLEAN), outcome.err
    assert (root / "rendered").exists() != is_refused
    told = [shown for shown in outcome.findings if shown.severity == level]
    if "says" in case:
        assert case["says"] in told[0].message
    if "helps" in case:
        assert case["helps"] in told[0].help
    assert all(shown.help for shown in told)


def _place(line: str) -> tuple[str, str]:
    place, rule = line.rsplit(" ", 1)
    return (f"{FILE}:{place}" if place[0].isdigit() else place, rule)
