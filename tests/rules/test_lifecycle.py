"""What servers accept but runs fail on: every trap of lifecycle.yaml, with near misses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.rules.model import Severity
from gangplan.validate.gate import judge_built
from gangplan.validate.problems import Problem
from tests import plain
from tests.validate.cases import CLUSTERS
from tests.validate.test_consistency import STARTS, changed, clusters, objects

CASES: list[dict[str, Any]] = plain.load(
    Path(__file__).with_name("lifecycle.yaml").read_text(encoding="utf-8")
)
WARNINGS = {"quantity-drift", "env-overwritten"}


def told(case: dict[str, Any], at: Any) -> list[Problem]:
    """Return the problems of the changed objects at some versions."""
    bodies, _, _ = changed(case)
    for kind, (first, *rest), value in case.get("also", ()):
        assert value is None
        node: Any = next(body for body in bodies if body["kind"] == kind)
        *way, last = (*STARTS.get(first, (first,)), *rest)
        for step in way:
            node = node[step]
        del node[last]
    return [problem for problems in judge_built(bodies, at) for problem in problems]


@pytest.mark.parametrize("at", CLUSTERS, ids=lambda at: f"trainer-{at.trainer}")
def test_a_good_run_has_no_trap(at: Any) -> None:
    assert judge_built(objects(), at) == [[], [], []]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"].replace(" ", "-"))
def test_each_trap_is_reported_and_each_near_miss_is_not(case: dict[str, Any]) -> None:
    assert clusters(case)
    for at in clusters(case):
        found = told(case, at)
        assert [one.rule for one in found] == ([case["is"]] if "is" in case else []), (at, found)
        for one in found:
            assert (one.severity is Severity.WARNING) == (one.rule in WARNINGS)
            assert one.help
            assert one.path


def test_every_trap_has_near_misses() -> None:
    assert sum("is" in case for case in CASES) >= 18
    assert sum("is" not in case for case in CASES) >= 12
