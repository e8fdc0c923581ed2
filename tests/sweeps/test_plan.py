"""What commands show of a sweep, as text and as data, with the figures of US-05 and US-06."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sweeps.files import SWEEP, US_05, us_05, workspace
from tests.workspaces import gangplan


def test_plan_shows_trials_waves_hours_and_cost(tmp_path: Path) -> None:
    """The figures that US-05 and US-06 name."""
    outcome = gangplan("plan", "-C", us_05(tmp_path))
    lines = [line.strip() for line in outcome.out.splitlines()]
    for wanted in (
        "trials    48",
        "at once   10 trials: 40 GPUs",
        "time      at most 20h: 5 waves of 4h",
        "totals    at most 768 GPU-hours",
        "cost      at most 1200.00 USD",
    ):
        assert wanted in lines
    document = json.loads(gangplan("plan", "-C", tmp_path, "--format", "json").out)
    (sweep,) = document["sweeps"]
    assert sweep == {
        "spec": "specs/nlp/rates.yaml",
        "cluster": "lab",
        "name": "rates",
        "trials": 48,
        "active": 48,
        "maxConcurrent": 10,
        "atOnce": 10,
        "waves": 5,
        "seconds": 20 * 3600,
        "gpuHours": "768",
        "gpusAtOnce": 40,
        "cost": {"most": "1200.00", "currency": "USD"},
    }
    assert len(document["runs"]) == 48
    assert document["runs"][0]["trial"] == {"lr": "1e-5", "batch": "32", "dropout": "0.0"}


def test_waves_follow_from_the_quota(tmp_path: Path) -> None:
    us_05(tmp_path)
    path = tmp_path / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text().replace("count: 8, price", "count: 4, price"))
    out = gangplan("plan", "-C", tmp_path).out
    assert "at once   8 trials: 32 GPUs; maxConcurrent is 10, but quota holds no more" in out
    assert "time      at most 24h: 6 waves of 4h" in out


def test_trials_that_are_over_add_no_cost(tmp_path: Path) -> None:
    us_05(tmp_path)
    trials = json.loads(gangplan("plan", "-C", tmp_path, "--format", "json").out)["runs"]
    over = [run["name"].split("-")[1] for run in trials[:24]]
    workspace(tmp_path, US_05 + f"stopped: [{', '.join(over)}]\n")
    cluster = tmp_path / "overlays/lab/cluster.yaml"
    us_05(tmp_path / "again")
    cluster.write_text((tmp_path / "again/overlays/lab/cluster.yaml").read_text())
    out = gangplan("plan", "-C", tmp_path, "specs/nlp/rates.yaml").out
    assert "trials    48, 24 of them over" in out
    assert "at most 384 GPU-hours" in out
    assert "at most 12h: 3 waves of 4h" in out
    assert out.count("(over)") == 24


def test_a_trial_uses_the_quota_of_its_team(tmp_path: Path) -> None:
    out = gangplan("plan", "-C", us_05(tmp_path)).out
    assert "4 GPUs of a100" in out
    assert "of the team's quota" in out
    assert "beyond the team's own quota" not in out


@pytest.mark.parametrize("command", [["list", "runs"], ["list", "specs"], ["cost"], ["cost", "--by", "team"]])
def test_list_and_cost_show_trials(command: list[str], tmp_path: Path) -> None:
    root = workspace(tmp_path, SWEEP)
    gangplan("render", "-C", root)
    outcome = gangplan(*command, "-C", root)
    assert outcome.code == 0, outcome.err
    assert "rates" in outcome.out or command[-1] == "team"


def test_cost_sums_the_trials(tmp_path: Path) -> None:
    outcome = gangplan("cost", "--by", "team", "-C", us_05(tmp_path))
    assert outcome.out.splitlines()[1].split() == ["nlp", "48", "768", "1200.00", "USD"]


def test_simulated_48_trials_take_five_waves(tmp_path: Path) -> None:
    """20 hours, ten at once, by the port of Kueue's scheduler; one line of durations covers every trial."""
    root = us_05(tmp_path)
    lines = tmp_path / "durations.yaml"
    lines.write_text("nlp/rates: 4h\n")
    outcome = gangplan("simulate", "-C", root, "--durations", lines, "--format", "json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert document["total"]["makespan"] == 20 * 3600
    assert document["total"]["runs"] == document["total"]["admissions"] == 48
    assert document["without_borrowing"]["total"]["makespan"] == 20 * 3600
    holding = most = 0
    for event in document["events"]:
        holding += {"admitted": 1, "finished": -1, "preempted": -1}.get(event["what"], 0)
        most = max(most, holding)
    assert most == 10


def test_a_duration_line_for_the_sweep_covers_every_trial(tmp_path: Path) -> None:
    root = us_05(tmp_path)
    lines = tmp_path / "durations.yaml"
    lines.write_text("nlp/rates: 2h\n")
    outcome = gangplan("cost", "--by", "team", "-C", root, "--durations", lines)
    assert outcome.out.splitlines()[1].split() == ["nlp", "48", "768", "1200.00", "USD", "600.00", "USD"]
