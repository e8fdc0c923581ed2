"""Where commits start runs: which jobs are due, and how their specs change."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import workspaces
from tests.schedules import worlds
from tests.workspaces import gangplan, write

CLUSTER = workspaces.CLUSTER + "schedules: {backend: commit}\n"
SPEC = workspaces.SPEC + "timeout: 6h  # enough\n" + 'schedule: {cron: "0 4 * * *", startingDeadline: 2h}\n'


def commit(root: Path, at: str) -> None:
    """Render and commit at a time."""
    assert gangplan("render", "-C", root).code == 0
    names = [f"GIT_{part}_{name}" for part in ("AUTHOR", "COMMITTER") for name in ("NAME", "EMAIL")]
    env = {**os.environ, **dict.fromkeys(names, "ml@example.com")}
    env |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    if not (root / ".git").exists():
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "-m", at], cwd=root, env=env, check=True)


@pytest.fixture
def jobs(root: Path) -> Path:
    workspaces.stock(root)
    write(root, {"specs/nlp/filings.yaml": SPEC, "overlays/lab/cluster.yaml": CLUSTER})
    commit(root, "2026-01-10T12:00:00Z")
    return root


def test_runs_are_rendered_without_cronjobs(jobs: Path) -> None:
    (file,) = (jobs / "rendered/lab/runs/nlp").glob("*-*.yaml")
    text = file.read_text()
    assert "kind: TrainJob" in text
    assert "kind: CronJob" not in text
    assert "gangplan-scheduler" not in (jobs / "rendered/lab/tenants/nlp/tenant.yaml").read_text()


# The time of the command, whether a run is due, why.
CASES = {
    "before the start": ("2026-01-11T03:59Z", False, "no start is due"),
    "at the start": ("2026-01-11T04:00Z", True, "its start is due"),
    "a late pipeline": ("2026-01-11T05:59Z", True, "its start is due"),
    "too late": ("2026-01-11T06:01Z", False, "no start is due"),
    "the day of the first run": ("2026-01-10T12:30Z", False, "no start is due"),
}


@pytest.mark.parametrize("name", CASES)
def test_only_a_due_start_changes_the_spec(name: str, jobs: Path) -> None:
    at, is_due, why = CASES[name]
    before = (jobs / "specs/nlp/filings.yaml").read_text()
    outcome = gangplan("repeat", "-C", jobs, "--at", at, "--write")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(f"nlp/filings: {why}")
    assert (jobs / "specs/nlp/filings.yaml").read_text() == before + ("run: 2\n" if is_due else "")


def test_a_start_is_made_once(jobs: Path) -> None:
    gangplan("repeat", "-C", jobs, "--at", "2026-01-11T04:05Z", "--write")
    commit(jobs, "2026-01-11T04:06:00Z")
    assert len(list((jobs / "rendered/lab/runs/nlp").glob("*-*.yaml"))) == 1
    again = gangplan("repeat", "-C", jobs, "--at", "2026-01-11T04:20Z", "--write")
    assert "its start was made" in again.out
    # Until its timeout is over, it may still train; then the next night is due.
    write(jobs, {"specs/nlp/filings.yaml": SPEC.replace("6h", "24h") + "run: 2\n"})
    assert "start skipped" in gangplan("repeat", "-C", jobs, "--at", "2026-01-12T04:05Z").out
    write(jobs, {"specs/nlp/filings.yaml": SPEC + "run: 2\n"})
    later = gangplan("repeat", "-C", jobs, "--at", "2026-01-12T04:05Z", "--format", "json")
    assert json.loads(later.out)["jobs"] == [
        {"spec": "specs/nlp/filings.yaml", "job": "nlp/filings", "run": 3, "why": "its start is due"}
    ]


def test_a_record_of_an_earlier_run_is_not_a_start(jobs: Path) -> None:
    """Its file comes back to Git, but the run was made long ago."""
    (first,) = (jobs / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(jobs, {"specs/nlp/filings.yaml": SPEC + "run: 2\n"})
    commit(jobs, "2026-01-11T04:06:00Z")
    write(jobs, {"specs/nlp/filings.yaml": SPEC + f"run: 2\nretired: [{first.stem}]\n"})
    commit(jobs, "2026-01-12T04:01:00Z")
    assert first.exists()
    assert "its start is due" in gangplan("repeat", "-C", jobs, "--at", "2026-01-12T04:05Z").out


@pytest.mark.parametrize(("end", "is_due"), [("", False), ("Complete", True), ("Failed", True)])
def test_forbid_follows_the_status_on_the_cluster(end: str, is_due: bool, jobs: Path, tmp_path: Path) -> None:
    (file,) = (jobs / "rendered/lab/runs/nlp").glob("*-*.yaml")
    labels = {"gangplan.dev/run": file.stem, "gangplan.dev/job": "filings", "gangplan.dev/team": "nlp"}
    conditions = [{"type": end, "status": "True"}] if end else [{"type": "Suspended", "status": "True"}]
    run = {
        "kind": "TrainJob",
        "metadata": {"namespace": "nlp", "name": file.stem, "labels": labels},
        "status": {"conditions": conditions},
    }
    statuses = tmp_path / "statuses.json"
    statuses.write_text(json.dumps({"items": [run]}))
    outcome = gangplan("repeat", "-C", jobs, "--at", "2026-01-11T04:05Z", "--finished", statuses)
    assert ("its start is due" in outcome.out) == is_due
    assert ("still waits or trains" in outcome.out) != is_due


def test_retire_lists_dated_runs_beyond_the_kept_ones(root: Path, tmp_path: Path) -> None:
    worlds.stock(root, worlds.SPEC.replace("Berlin}", "Berlin, keep: 2}"))
    commit(root, "2026-01-10T12:00:00Z")
    labels = {
        "gangplan.dev/run": "filings-0a1b2c3d",
        "gangplan.dev/job": "filings",
        "gangplan.dev/team": "nlp",
    }
    items = [
        {
            "kind": "TrainJob",
            "metadata": {"namespace": "nlp", "name": f"filings-202601{day}-0300", "labels": labels},
            "status": {"conditions": [{"type": "Complete", "status": "True" if day < 15 else "False"}]},
        }
        for day in range(11, 16)
    ]
    statuses = tmp_path / "statuses.json"
    statuses.write_text(json.dumps({"items": items}))
    outcome = gangplan("retire", "-C", root, "--finished", statuses)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines() == [
        f"nlp/filings-202601{day}-0300 on lab: it is over, and its schedule keeps 2;"
        f" kubectl delete trainjob -n nlp filings-202601{day}-0300"
        for day in (11, 12)
    ]


def test_wrong_flags_are_refused(jobs: Path) -> None:
    assert gangplan("repeat", "-C", jobs, "--at", "tomorrow").code == 2
    assert gangplan("repeat", "-C", jobs, "--format", "xml").code == 2


def test_the_plan_says_that_runs_stay_until_they_are_retired(jobs: Path) -> None:
    out = gangplan("plan", "specs/nlp/filings.yaml", "-C", jobs).out
    assert "by commits, never two at a time; up to 2h late; runs stay until they are retired" in out


def test_a_second_run_before_the_commit_raises_nothing(jobs: Path) -> None:
    spec = jobs / "specs/nlp/filings.yaml"
    for _ in range(2):
        outcome = gangplan("repeat", "-C", jobs, "--at", "2026-01-11T04:05Z", "--write")
        assert outcome.code == 0, outcome.err
        assert spec.read_text() == f"{SPEC}run: 2\n"
    assert outcome.out == "nlp/filings: run: 2 in its spec is not committed yet\n"
    assert not outcome.err


def test_each_start_has_checkpoints_of_its_own(jobs: Path) -> None:
    """A commit that starts a run names it, and the run's folder of checkpoints after it."""
    folders = []
    for run in (1, 2):
        write(jobs, {"specs/nlp/filings.yaml": f"{SPEC}checkpoint: {{to: filings}}\nrun: {run}\n"})
        assert gangplan("render", "-C", jobs).code == 0
        (file,) = (jobs / "rendered/lab/runs/nlp").glob("*-*.yaml")
        assert f"value: /checkpoints/filings/{file.stem}}}" in file.read_text()
        folders.append(file.stem)
    assert len({*folders}) == 2
