"""Steps in costs: their pods hold GPUs and cores for their own time, workers hold quota for all of it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.model.cost import format_hours
from gangplan.source import load_objects
from gangplan.validate.run_hours import describe_run_hours
from tests import workspaces
from tests.golden import render_example
from tests.report.test_cost import CPU, GPU
from tests.review.repository import begin
from tests.workspaces import gangplan, write

FIRST = "{name: tokens, command: [python, tokens.py], gpus: 1, cpu: 4, timeout: 15m}"
SECOND = "{name: scans, command: [python, scans.py], cpu: 2, timeout: 6m}"
SPEC = workspaces.SPEC.replace("openmpi", "pytorch")


def files(steps: str, more: str = "", versions: tuple[str, str] = ("", "")) -> dict[str, str]:
    """Return 8 GPUs at 1.5625 for a day, with steps; cores of pools without GPUs at 0.04."""
    cluster = workspaces.CLUSTER.replace(*versions).replace(
        "cpu: 60, memory: 240Gi}", "cpu: 60, memory: 240Gi, labels: {pool: cpu}}"
    )
    for after, price in (GPU, CPU):
        assert after in cluster
        cluster = cluster.replace(after, f"{after}, {price}", 1)
    spec = f"{SPEC}{more}steps: [{steps}]\n"
    return {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": cluster}


def document(root: Path, *flags: object) -> dict[str, Any]:
    outcome = gangplan("cost", "-C", root, "--format", "json", *flags)
    assert outcome.code == 0, outcome.err
    (run,) = json.loads(outcome.out)["runs"]
    found: dict[str, Any] = run
    return found


# Examples with launchers, roles, steps and sidecars, also of MPIJobs and of an old Trainer.
LAUNCHED = ["openmpi5-cpu", "mpich-runs-ranks", "mpijob", "roles", "steps", "setup-and-sidecars"]
LAUNCHED += ["trainer-2.1-deadline"]
OLD = ('trainer: "2.3.0", kueue: "0.19.2"', 'trainer: "2.1.0", kueue: "0.15.2"')
# Steps, more lines of the spec, versions; GPU-hours, the most, and the row of the plan.
CASES = {
    "a step with a GPU and one without": (
        f"{FIRST}, {SECOND}", "", ("", ""), "192.25", "300.40",
        "300.40 USD (8 GPUs x 1.5625 x 24h + 1 GPU x 1.5625 x 15m + 2 CPU x 0.04 x 6m)",
    ),
    "every attempt takes its steps again": (
        FIRST, "retries: 3\n", ("", ""), "193", "301.56",
        "301.56 USD (8 GPUs x 1.5625 x 24h + 1 GPU x 1.5625 x 1h)",
    ),
    "no step outlasts the run": (
        FIRST, "timeout: 30m\nretries: 3\n", ("", ""), "4.5", "7.03",
        "7.03 USD (8 GPUs x 1.5625 x 30m + 1 GPU x 1.5625 x 30m)",
    ),
    "an old Trainer ends Jobs one by one": (
        FIRST, "timeout: 45m\nretries: 1\n", OLD, "16.5", "25.78",
        "25.78 USD (8 GPUs x 1.5625 x 2h + 1 GPU x 1.5625 x 30m)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_case_costs_the_listed_amount_at_most(name: str, root: Path) -> None:
    steps, more, versions, hours, most, row = CASES[name]
    write(root, files(steps, more, versions))
    run = document(root)
    assert (run["gpuHours"], run["most"], run["perHour"]) == (hours, most, "12.5000")
    plan = gangplan("plan", "-C", root).out
    assert f"  cost      at most {row}\n" in plan
    assert (
        f"new run, at most {hours if '.' in hours and len(hours) < 4 else round(float(hours))} GPU-hours"
        in plan
    )


@pytest.mark.parametrize("name", CASES)
def test_objects_take_the_hours_that_are_paid_for(name: str, root: Path) -> None:
    steps, more, versions, *_ = CASES[name]
    write(root, files(steps, more, versions))
    assert gangplan("render", "-C", root).code == 0
    _compare_hours(root)


@pytest.mark.parametrize("name", LAUNCHED)
def test_launchers_and_roles_count_in_the_objects_too(name: str) -> None:
    _compare_hours(render_example(name).parent)


def _compare_hours(root: Path) -> None:
    """Compare what --base says about new runs with the costs of the same runs."""
    costs = json.loads(gangplan("cost", "-C", root, "--format", "json").out)["runs"]
    assert costs
    for run in costs:
        text = (root / "rendered" / run["cluster"] / "runs" / run["team"] / f"{run['run']}.yaml").read_text()
        bodies = {
            (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
            for one in load_objects(text)
        }
        (key,) = (key for key in bodies if key[0] in BACKEND_BY_KIND)
        unit = "GPU" if run["gpuHours"] != "0" else "CPU"
        hours = Decimal(run[f"{unit.lower()}Hours"])
        assert describe_run_hours(bodies, key) == f"at most {format_hours(hours)} {unit}-hours"


def test_expected_counts_steps_no_longer_than_the_run(root: Path) -> None:
    write(root, {**files(FIRST), "durations.yaml": "nlp/filings: 10m\n"})
    # 8 GPUs and one more for ten minutes, however long the step may take.
    assert document(root, "--durations", root / "durations.yaml")["expected"] == "2.34"


def test_quotas_count_steps_too(tmp_path: Path) -> None:
    """Kueue admits steps with the workers: nine GPUs at once."""
    repo = begin(tmp_path / "repo")
    write(repo.root, files(f"{FIRST}, {SECOND}"))
    outcome = gangplan("plan", "-C", repo.root, "--base", "HEAD", "--format", "json")
    (found,) = (one for one in json.loads(outcome.out)["quotas"] if one["pool"] == "a100")
    assert (found["before"]["wanted"], found["after"]["wanted"]) == ("8", "9")


def test_history_counts_a_step_for_its_own_time(tmp_path: Path) -> None:
    repo = begin(tmp_path / "repo", is_rendered=False)
    write(repo.root, files(FIRST, "retries: 3\n"))
    repo.render()
    repo.commit()
    outcome = gangplan("cost", "-C", repo.root, "--history", "--since", "2020-01-01", "--format", "json")
    (run,) = json.loads(outcome.out)["runs"]
    assert (run["gpuHours"], run["most"], run["perHour"]) == ("193", "301.56", "12.5000")


def test_pods_of_a_step_are_called_by_its_name(root: Path) -> None:
    write(root, files(SECOND))
    assert "pod of scans on cpu" in gangplan("plan", "-C", root).out
