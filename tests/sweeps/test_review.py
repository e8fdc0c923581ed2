"""What plan --base and validate --base report about a changed sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines import worlds as chains
from tests.rules.worlds import commit
from tests.sweeps.files import FILE, SWEEP, US_05, us_05, workspace
from tests.workspaces import SPEC, gangplan, render, write


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """Render and commit the small workspace with a sweep."""
    root = workspace(tmp_path / "work")
    write(root, {"specs/nlp/job.yaml": SPEC})
    render(root)
    commit(root)
    return root


def change(root: Path, text: str) -> list[str]:
    """Change the sweep and return the lines of plan --base."""
    write(root, {FILE: text})
    render(root)
    outcome = gangplan("plan", "--base", "HEAD", "-C", root)
    assert outcome.code == 0, outcome.err
    return outcome.out.splitlines()


def row(lines: list[str], words: str) -> str:
    """Return the only line with these words."""
    (found,) = [" ".join(line.split()) for line in lines if words in line]
    return found


def test_a_new_value_is_a_row_of_new_trials(committed: Path) -> None:
    lines = change(committed, SWEEP.replace("[64, 128]", "[64, 96, 128]"))
    assert row(lines, "nlp/rates: 3 trials").startswith("new nlp/rates: 3 trials lab rates-")
    assert not [line for line in lines if "filings" in line or "nlp/job" in line]


def test_a_changed_template_is_a_row_of_changed_trials(committed: Path) -> None:
    lines = change(committed, SWEEP.replace("train.py", "train2.py"))
    assert "changed nlp/rates: 6 trials" in row(lines, "nlp/rates: 6 trials")


def test_stopped_trials_are_a_row_of_their_own(committed: Path) -> None:
    names = [path.stem.split("-")[1] for path in (committed / "rendered").glob("*/runs/*/rates-*.yaml")]
    lines = change(committed, SWEEP + f"stopped: [{', '.join(names[:2])}]\n")
    assert row(lines, "nlp/rates: 2 trials").startswith("stopped nlp/rates: 2 trials lab")


def test_a_removed_value_is_a_row_and_reports_run_removed(committed: Path) -> None:
    write(committed, {FILE: SWEEP.replace(", 1e-3]", "]")})
    render(committed)
    outcome = gangplan("plan", "--base", "HEAD", "-C", committed)
    assert "nlp/rates: 2 trials" in outcome.out
    outcome = gangplan("validate", "--base", "HEAD", "-C", committed)
    removed = [one for one in outcome.findings if one.rule == "run-removed"]
    assert removed, outcome.err


def test_the_first_sweep_of_a_team_leaves_its_runs_alone(tmp_path: Path) -> None:
    root = workspace(tmp_path / "work")
    (root / FILE).unlink()
    write(root, {"specs/nlp/job.yaml": SPEC})
    render(root)
    commit(root)
    lines = change(root, SWEEP)
    rows = [
        line for line in lines if line.startswith(("  new", "  changed", "  retrained", "new", "changed"))
    ]
    assert row(lines, "nlp/rates: 6 trials")
    assert not [line for line in rows if "nlp/job" in line]
    outcome = gangplan("validate", "--base", "HEAD", "-C", root)
    assert not [one for one in outcome.findings if one.rule in ("immutable-changed", "queue-removed")]


def test_the_row_of_48_trials_shows_gpu_hours_and_cost(tmp_path: Path) -> None:
    """US-05: what the sweep would take, before it is merged."""
    root = us_05(tmp_path / "work")
    (root / FILE).unlink()
    write(root, {"specs/nlp/job.yaml": SPEC})
    render(root)
    commit(root)
    lines = change(root, US_05)
    assert "48 runs start (at most 768 GPU-hours, 1200.00 USD)" in lines[0] + lines[1] + lines[2]
    assert "4 each 768 GPU-hours 1200.00 USD" in row(lines, "nlp/rates: 48 trials")


def test_a_job_after_a_sweep_waits_for_fewer_trials(tmp_path: Path) -> None:
    root = tmp_path / "work"
    chains.stock(root, {"filings": SPEC, "best": SPEC + "after: [rates]\n"}, **{FILE: SWEEP})
    render(root)
    commit(root)
    names = [path.stem.split("-")[1] for path in (root / "rendered").glob("*/runs/*/rates-*.yaml")]
    lines = change(root, SWEEP + f"stopped: [{names[0]}]\n")
    assert row(lines, "nlp/best").startswith("waits nlp/best lab best-")
    lines = change(root, SWEEP + "# the same\n")
    assert not [line for line in lines if "nlp/best" in line]


def test_the_queues_of_a_removed_sweep_end_as_its_runs_do(committed: Path) -> None:
    (committed / FILE).unlink()
    render(committed)
    outcome = gangplan("validate", "--base", "HEAD", "-C", committed)
    found = {one.help for one in outcome.findings if one.rule in ("queue-removed", "run-removed")}
    assert found == {"Put the sweep back with state: stopped, and remove it in a later change."}
    write(committed, {FILE: SWEEP + "state: stopped\n"})
    render(committed)
    commit(committed)
    (committed / FILE).unlink()
    render(committed)
    outcome = gangplan("validate", "--base", "HEAD", "-C", committed)
    assert not [one for one in outcome.findings if one.rule in ("queue-removed", "run-removed")], outcome.err
