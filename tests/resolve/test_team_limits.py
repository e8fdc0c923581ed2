"""Limits that the platform sets for one team on a cluster: the longest timeout of its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan

SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"
SHARED = "limits: {timeoutHours: 12}\n"


def limited(root: Path, spec: str, hours: int | None, cluster: str = "") -> workspaces.Outcome:
    """Validate the small workspace with a spec's further lines and a longest timeout of its team."""
    text = workspaces.CLUSTER + cluster
    if hours is not None:
        assert "  nlp: {" in text
        text = text.replace("  nlp: {", f"  nlp: {{timeoutHours: {hours}, ")
    workspaces.write(root, {SPEC: workspaces.SPEC + spec, CLUSTER: text})
    return gangplan("validate", "-C", root)


LONG = "extendedTimeout: true\ncheckpoint: {to: filings}\n"
CASES = {
    "below": ("timeout: 7h\n", 8, "", None),
    "near: exactly": ("timeout: 8h\n", 8, "", None),
    "near: a second more": ("timeout: 28801s\n", 8, "", "cluster lab allows team nlp 8h"),
    "the default of a day": ("", 8, "", "timeout is 24h, but cluster lab allows team nlp 8h"),
    "near: the default of a day": ("", 24, "", None),
    "two days": (f"timeout: 48h\n{LONG}", 47, "", "timeout is 2d, but cluster lab allows team nlp 47h"),
    "no limit of the team": (f"timeout: 48h\n{LONG}", None, "", None),
    "the cluster's is less": ("timeout: 13h\n", 20, SHARED, "cluster lab allows 12h"),
    "both are the same": ("timeout: 13h\n", 12, SHARED, "cluster lab allows 12h"),
    "the team's is less": ("timeout: 11h\n", 10, SHARED, "cluster lab allows team nlp 10h"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_lower_of_both_limits_holds(name: str, root: Path) -> None:
    spec, hours, cluster, words = CASES[name]
    outcome = limited(root, spec, hours, cluster)
    assert [rule for _, rule in outcome.errors()] == (["timeout-over-limit"] if words else [])
    if words:
        (found,) = (one for one in outcome.findings if one.severity == "error")
        assert found.message.endswith(words)
        is_own = "team nlp" in words
        line = next(
            number
            for number, text in enumerate((root / CLUSTER).read_text().splitlines(), 1)
            if "nlp" in text
        )
        assert (f"({CLUSTER}:{line})" in (found.help or "")) == is_own


def test_another_team_keeps_the_limit_of_the_cluster(root: Path) -> None:
    text = workspaces.CLUSTER.replace("teams:\n", "teams:\n  vision: {queue: vision, timeoutHours: 1}\n")
    assert text != workspaces.CLUSTER
    workspaces.write(root, {CLUSTER: text, "specs/vision/team.yaml": workspaces.TEAM})
    assert "timeout-over-limit" not in [rule for _, rule in gangplan("validate", "-C", root).errors()]


NO_HOURS = {"0": "spec-value", "8761": "spec-value", "2d": "spec-type", "1.5": "spec-type"}


@pytest.mark.parametrize("hours", NO_HOURS)
def test_hours_are_whole_numbers_of_a_year_at_most(hours: str, root: Path) -> None:
    text = workspaces.CLUSTER.replace("  nlp: {", f"  nlp: {{timeoutHours: {hours}, ")
    workspaces.write(root, {CLUSTER: text})
    outcome = gangplan("validate", "-C", root)
    assert [rule for _, rule in outcome.errors()] == [NO_HOURS[hours]]


def test_a_limit_renames_no_run(root: Path) -> None:
    names = []
    for hours in (None, 48):
        limited(root, "timeout: 8h\n", hours)
        found = json.loads(gangplan("plan", "-C", root, "--format", "json").out)
        names.append([run["name"] for run in found["runs"]])
    assert names[0] == names[1]


def test_lists_show_the_limits_of_teams(root: Path) -> None:
    limited(root, "", 30)
    assert "nlp: 30h" in gangplan("list", "limits", "-C", root).out
    assert "nlp: 30h" not in gangplan("list", "limits", "--team", "vision", "-C", root).out
