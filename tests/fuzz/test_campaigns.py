"""A few cases of every campaign; `make fuzz` runs more. What campaigns found has tests of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time

import pytest

from tests.fuzz.base import Texts, judged, run, within
from tests.fuzz.campaigns import CAMPAIGNS
from tests.fuzz.guided import PARTS
from tests.workspaces import REPOSITORY

# Cases of each campaign. Others have tests of their own: edits (tests/incremental),
# kills (tests/incremental/test_journal.py) and tools (tests/tools/test_odd.py).
COUNTS = {"yaml": 300, "quantities": 2000, "commands": 200, "cel": 300, "regex": 60, "crds": 100,
          "workspaces": 8, "strings": 15}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_the_first_cases_of_each_campaign_break_no_law(name: str) -> None:
    assert list(run(CAMPAIGNS[name], COUNTS[name], seed=0)) == []


@pytest.mark.parametrize("name", [name for name, one in CAMPAIGNS.items() if isinstance(one, Texts)])
def test_the_corpus_of_each_campaign_breaks_no_law(name: str) -> None:
    campaign = CAMPAIGNS[name]
    assert isinstance(campaign, Texts)
    texts = campaign.corpus()[:150]
    assert [text for text in texts if judged(campaign.law, text)] == []


def test_coverage_can_guide_each_campaign_of_texts() -> None:
    assert set(PARTS) == {name for name, one in CAMPAIGNS.items() if isinstance(one, Texts)}
    for part in (part for parts in PARTS.values() for part in parts):
        assert importlib.util.find_spec(part), part


def test_a_broken_law_is_reported_with_its_seed() -> None:
    def law(data: bytes) -> None:
        assert b"\0" not in data, "a zero"

    told = list(run(Texts(law, lambda: [b"abc"]), 200, seed=3))
    assert told
    assert told[0].startswith("seed 3, case ")
    assert told == list(run(Texts(law, lambda: [b"abc"]), 200, seed=3))


def test_a_slow_text_is_a_broken_law() -> None:
    def law(_: bytes) -> None:
        with within(0.05):
            begin = time.process_time()
            while time.process_time() - begin < 5:
                pass

    assert judged(law, b"").startswith("SlowError")


def test_the_program_runs_a_campaign_and_refuses_unknown_names() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "quantities", "50", "1"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("quantities: 50 cases, 0 broken")
    unknown = subprocess.run(
        [*command[:3], "x", "1", "1"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert unknown.returncode == 2
    assert "there is no campaign x; there are all, yaml" in unknown.stdout
