"""What a pull request does to schedules: a sync starts nothing, and the next start uses what is new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import workspaces
from tests.schedules import worlds
from tests.schedules.test_commits import commit
from tests.workspaces import gangplan, write

PLAIN = workspaces.SPEC + "timeout: 20h\n"
LARGER = worlds.SPEC.replace("32Gi", "48Gi")


def review(root: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the edits of runs since the last commit, and the plan as text."""
    assert gangplan("render", "-C", root).code in (0, 1)
    outcome = gangplan("plan", "-C", root, "--base", "HEAD", "--format", "json")
    assert outcome.code in (0, 1), outcome.err
    runs: list[dict[str, Any]] = json.loads(outcome.out)["runs"]
    return runs, gangplan("plan", "-C", root, "--base", "HEAD").out


# Before, after, the edit, words of the text.
EDITS = {
    "a new schedule": (None, worlds.SPEC, "scheduled", "0 4 * * * Europe/Berlin"),
    "another template": (
        worlds.SPEC,
        worlds.SPEC.replace("32Gi", "48Gi"),
        "scheduled",
        "from the next start on",
    ),
    "another hour": (worlds.SPEC, worlds.SPEC.replace("0 4", "0 5"), "scheduled", "0 5 * * *"),
    "suspended": (worlds.SPEC, worlds.SPEC + "state: stopped\n", "stopped", "1 stopped"),
    "started again": (worlds.SPEC + "state: stopped\n", worlds.SPEC, "scheduled", "1 scheduled"),
    "no schedule any more": (worlds.SPEC, PLAIN, "new", "1 run starts"),
    "a run that got a schedule": (PLAIN, LARGER, "scheduled", "filings-"),
}


@pytest.mark.parametrize("name", EDITS)
def test_each_change_of_a_schedule_is_its_edit(name: str, root: Path) -> None:
    before, after, edit, said = EDITS[name]
    worlds.stock(root, before or worlds.SPEC)
    if before is None:
        (root / "specs/nlp/filings.yaml").unlink()
    commit(root, "2026-01-10T12:00:00Z")
    write(root, {"specs/nlp/filings.yaml": after})
    runs, text = review(root)
    assert [one["edit"] for one in runs] == [edit]
    assert said in text


def test_a_changed_description_is_not_an_edit(root: Path) -> None:
    worlds.stock(root)
    commit(root, "2026-01-10T12:00:00Z")
    write(root, {"specs/nlp/filings.yaml": worlds.SPEC + "description: Of the filings\n"})
    assert review(root)[0] == []


def test_a_run_that_got_a_schedule_goes_on(root: Path) -> None:
    worlds.stock(root, PLAIN)
    commit(root, "2026-01-10T12:00:00Z")
    (old,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(root, {"specs/nlp/filings.yaml": worlds.SPEC.replace("32Gi", "48Gi")})
    (edit,) = review(root)[0]
    assert edit["goesOn"] == old.stem
