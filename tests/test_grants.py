"""Debug grants: RBAC cannot expire, so the check fails once a grant's last day is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import gangplan

TEAM = "specs/nlp/team.yaml"
GRANTS = """\
debuggers:
  - {group: on-call, until: "2026-12-31", reason: Hang in all-reduce}
  - {group: vendor, until: "2027-01-15", reason: Driver}
"""


@pytest.fixture
def granted(root: Path) -> Path:
    """Create the small workspace on a dev cluster, with two grants."""
    cluster = workspaces.CLUSTER + "environment: dev\n"
    return workspaces.write(root, {TEAM: workspaces.TEAM + GRANTS, "overlays/lab/cluster.yaml": cluster})


@pytest.mark.parametrize("today", ["2026-01-01", "2026-12-31"])
def test_a_grant_is_valid_through_its_last_day(today: str, granted: Path) -> None:
    outcome = gangplan("validate", "-C", granted, "--today", today)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert not outcome.findings


def test_an_expired_grant_is_an_error(granted: Path) -> None:
    outcome = gangplan("validate", "-C", granted, "--today", "2027-01-01")
    assert outcome.errors() == [(f"{TEAM}:14:29", "grant-expired")]
    (shown,) = outcome.findings
    assert "only until 2026-12-31, and today is 2027-01-01" in shown.message
    assert shown.help == "Remove the grant and render, or set a later day."
    assert outcome.code == Exit.FINDINGS


def test_every_expired_grant_is_reported(granted: Path) -> None:
    outcome = gangplan("validate", "-C", granted, "--today", "2030-06-01")
    assert [place for place, _ in outcome.errors()] == [f"{TEAM}:14:29", f"{TEAM}:15:28"]


def test_grants_of_other_teams_are_ignored(granted: Path) -> None:
    files = {
        "specs/vision/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n",
        "specs/vision/other.yaml": workspaces.SPEC,
        "overlays/lab/cluster.yaml": (granted / "overlays/lab/cluster.yaml")
        .read_text()
        .replace("  nlp: {queue: training}\n", "  nlp: {queue: training}\n  vision: {queue: training}\n"),
    }
    workspaces.write(granted, files)
    arguments = ("validate", "-C", granted, "--today", "2030-06-01", "--team")
    assert gangplan(*arguments, "vision").errors() == []
    assert len(gangplan(*arguments, "nlp").errors()) == 2


def test_rendering_ignores_the_day(granted: Path) -> None:
    workspaces.write(granted, {TEAM: workspaces.TEAM + GRANTS.replace("2026", "2020")})
    assert gangplan("render", "-C", granted).code == Exit.CLEAN
    assert "2020-12-31" in workspaces.rendered(granted)["lab/tenants/nlp/tenant.yaml"].decode()
    assert [rule for _, rule in gangplan("validate", "-C", granted).errors()] == ["grant-expired"]


@pytest.mark.parametrize("today", ["2026-02-30", "tomorrow", "31.12.2026", "", "2026-W01-1", "20261231"])
def test_an_invalid_day_is_refused(today: str, granted: Path) -> None:
    outcome = gangplan("validate", "-C", granted, "--today", today)
    assert outcome.code == Exit.INPUT
    assert f"'{today}' is not a valid date" in outcome.err


def test_a_grant_in_production_is_a_warning(granted: Path) -> None:
    workspaces.write(granted, {"overlays/lab/cluster.yaml": workspaces.CLUSTER})
    outcome = gangplan("validate", "-C", granted, "--today", "2026-06-01")
    assert [(shown.place, shown.severity, shown.rule) for shown in outcome.findings] == [
        (f"{TEAM}:14:5", "warning", "grant-in-prod"),
        (f"{TEAM}:15:5", "warning", "grant-in-prod"),
    ]
    assert "production pods of team nlp (lab) until 2026-12-31" in outcome.findings[0].message
    assert outcome.code == Exit.CLEAN


def test_one_path_for_all_teams_is_a_warning(root: Path) -> None:
    workspaces.write(
        root,
        {
            "overlays/lab/cluster.yaml": workspaces.CLUSTER
            + "secretStore: {name: vault, path: 'kv/{secret}'}\n"
        },
    )
    outcome = gangplan("validate", "-C", root)
    assert [(shown.severity, shown.rule) for shown in outcome.findings] == [("warning", "secret-path-shared")]
