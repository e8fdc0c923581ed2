"""`gangplan simulate` and `gangplan plan --usage` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests.schedules import worlds
from tests.workspaces import REPOSITORY, gangplan

FIVE = REPOSITORY / "tests/examples/five-teams/input"
DAY = Path(__file__).with_name("us-01")
FILES = ("--durations", DAY / "durations.yaml", "--arrivals", DAY / "arrivals.yaml")
GPU = "nvidia.com/gpu"


def simulated(*arguments: str | Path) -> dict[str, Any]:
    """Return the JSON of a simulation of the five teams."""
    outcome = gangplan("simulate", "-C", FIVE, "--cluster", "gpu-23", "--format", "json", *arguments)
    assert outcome.code == Exit.CLEAN, outcome.err
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def test_borrowing_lifts_utilisation_from_62_to_92_percent() -> None:
    """US-01, SCH-27: the same work of five teams with fixed quotas, and with a cohort."""
    found = simulated(*FILES)
    assert round(100 * found["without_borrowing"]["utilisation"]) == 62
    assert round(100 * found["utilisation"]["mean"]) == 92
    assert found["total"]["makespan"] == pytest.approx(8 * 3600, rel=0.02)
    # Within its 16 GPUs, cv runs detect-small, two of segment-extra, then the third: 4 h + 2 x 3.95 h.
    assert found["without_borrowing"]["total"]["makespan"] == pytest.approx(11.9 * 3600)
    # GPU-hours by hand: 128 + 56 + 94.8 (cv), 96 + 96 (forecasting), 84 + 128 (nlp), 96 + 42
    # (recommender), 56 + 64 (research) = 940.8 of 128 GPUs x 8 h, or x 11.9 h.
    assert found["utilisation"]["mean"] == pytest.approx(940.8 / (128 * 8))
    assert found["without_borrowing"]["utilisation"] == pytest.approx(940.8 / (128 * 11.9))
    assert found["total"]["runs"] == 23


def test_text_shows_teams_and_the_comparison() -> None:
    outcome = gangplan("simulate", "-C", FIVE, "--cluster", "gpu-23", *FILES)
    assert "nvidia.com/gpu: 92 % of 128 used over 8.0h" in outcome.out
    assert "without borrowing: 62 % over 11.9h" in outcome.out
    rows = [line.split()[:2] for line in outcome.out.splitlines()[2:8]]
    assert rows == [
        ["cv", "6"],
        ["forecasting", "4"],
        ["nlp", "4"],
        ["recommender", "5"],
        ["research", "4"],
        ["all", "23"],
    ]


def test_a_run_without_a_duration_takes_half_of_its_timeout() -> None:
    found = simulated()
    first = next(event for event in found["events"] if event["what"] == "finished")
    assert first["time"] == 12 * 3600  # the timeout is 24 h


def test_a_schedule_is_simulated_like_any_run(tmp_path: Path) -> None:
    """What it creates is in Git as a template."""
    root = tmp_path
    worlds.stock(root)
    outcome = gangplan("simulate", "-C", root, "--cluster", "lab", "--format", "json")
    assert outcome.code == Exit.CLEAN, outcome.err
    assert json.loads(outcome.out)["total"]["runs"] == 1
    assert "never be admitted" not in outcome.err


def test_the_same_seed_gives_the_same_day(tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals.yaml"
    arrivals.write_text('"*/*": {every: 2h, times: 4}\n')
    one, same, other = (simulated("--arrivals", arrivals, "--seed", seed) for seed in ("7", "7", "8"))
    assert one == same
    assert one["events"] != other["events"]
    assert one["total"]["runs"] == 4 * 14


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cv/none: 1h\ncv/no: 2h\n", "durations.yaml:1:10: no job is called cv/none; "),
        ("cv/none: 1h\ncv/no: 2h\n", "durations.yaml:2:8: no job is called cv/no\n"),
        ("cv/detect-large: soon\n", "durations.yaml:1:18: 'soon' is not a time"),
        ("# all\n'cv/*': -3h\n", "durations.yaml:2:9: '-3h' is not a time"),
        ("cv/detect-large: 1h\ncv/detect-large: 2h\n", "durations.yaml:2:1: "),
        ("cv/detect-large: [\n", "durations.yaml:"),
        ("- 1h\n", "is not a mapping"),
        ("", "durations.yaml"),
    ],
)
def test_mistakes_in_files_are_reported(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "durations.yaml"
    file.write_text(text)
    outcome = gangplan("simulate", "-C", FIVE, "--cluster", "gpu-23", "--durations", file)
    assert outcome.code == Exit.INPUT
    assert said in outcome.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{every: 0m, times: 2}", "every is zero"),
        ("{every: 1h, times: -2}", "is not understood"),
        ("{every: 1h, times: yes}", "is not understood"),
    ],
)
def test_arrivals_that_never_come_or_never_end_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "arrivals.yaml"
    file.write_text(f"cv/detect-large: {text}\n")
    outcome = gangplan("simulate", "-C", FIVE, "--cluster", "gpu-23", "--arrivals", file)
    assert outcome.code == Exit.INPUT
    assert "arrivals.yaml:1:18: " in outcome.err
    assert said in outcome.err


def test_several_clusters_are_refused() -> None:
    outcome = gangplan("simulate", "-C", FIVE)
    assert outcome.code == Exit.INPUT
    assert "a simulation covers one cluster, but there are 3" in outcome.err


def snapshot(path: Path, **used: tuple[int, int]) -> Path:
    """Write a snapshot of GPUs in use by queue, for each of the two flavors."""
    items = [
        {
            "kind": "ClusterQueue",
            "metadata": {"name": queue},
            "status": {
                "flavorsUsage": [
                    {"name": flavor, "resources": [{"name": GPU, "total": str(count)}]}
                    for flavor, count in zip(("a100-80gb", "a100-40gb"), counts, strict=True)
                ]
            },
        }
        for queue, counts in used.items()
    ]
    path.write_text(json.dumps({"items": items}))
    return path


def now(usage: Path) -> tuple[dict[str, dict[str, Any]], str, str]:
    """Return what `plan --usage` says: by job, as text, and its warnings."""
    arguments = ("plan", "-C", FIVE, "--cluster", "gpu-23", "--usage", usage)
    found = json.loads(gangplan(*arguments, "--format", "json").out)["now"]
    outcome = gangplan(*arguments)
    return {one["job"]: one for one in found}, outcome.out, outcome.err


def test_plan_shows_what_is_admitted_now(tmp_path: Path) -> None:
    """US-01: 118 of 128 GPUs are in use; eight more for cv borrow, sixteen more for research wait."""
    usage = snapshot(
        tmp_path / "usage.json",
        cv=(16, 14),
        nlp=(16, 12),
        forecasting=(12, 12),
        recommender=(12, 8),
        research=(8, 8),
    )
    found, text, warnings = now(usage)
    assert found["cv/segment-extra"]["outcome"] == "admit"
    assert found["cv/segment-extra"]["borrowed"][f"a100-40gb/{GPU}"] == "6"
    assert "cv/segment-extra: admitted now, borrows" in text
    assert found["research/sweep-late"]["outcome"] == "queue"
    assert "research/sweep-late: waits for 6 more GPUs of a100-40gb (0 of its queue's own left)" in text
    assert "team cv is approaching its quota limit (30/32 GPUs used)" in warnings


def test_plan_shows_runs_that_give_way_to_a_lender(tmp_path: Path) -> None:
    usage = snapshot(
        tmp_path / "usage.json",
        cv=(16, 22),
        nlp=(16, 12),
        forecasting=(12, 12),
        recommender=(12, 8),
        research=(8, 8),
    )
    found, text, _ = now(usage)
    assert found["recommender/rank-refresh"]["gives_way"] == ["cv"]
    assert "its own quota is lent out: runs of cv give way" in text
    assert found["nlp/finetune"]["gives_way"] == []


def test_a_snapshot_of_several_clusters_is_refused(tmp_path: Path) -> None:
    outcome = gangplan("plan", "-C", FIVE, "--usage", snapshot(tmp_path / "usage.json", cv=(0, 0)))
    assert outcome.code == Exit.INPUT
    assert "a snapshot covers one cluster" in outcome.err
