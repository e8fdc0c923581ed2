"""An unchanged team is taken as a whole: the output is the same, and the results of its runs are not read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from gangplan.pipeline import known
from gangplan.pipeline.course import PipelineState
from gangplan.pipeline.known import KnownResults
from gangplan.pipeline.whole import WholeTeam
from tests import workspaces
from tests.incremental.edits import FILES

SPEC = "specs/nlp/notes.yaml"
ODD = workspaces.SPEC.replace("gpus: 2", "gpus: 5").replace("workers: 4", "workers: 2")  # a warning


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Render and validate two teams."""
    found = workspaces.write(tmp_path, {**FILES, "specs/vision/more.yaml": ODD, "specs/nlp/more.yaml": ODD})
    workspaces.render(found)
    workspaces.gangplan("validate", "-C", found)
    return found


@pytest.fixture
def read() -> Iterator[list[str]]:
    """Record the specs whose results are read, and the teams that are read again."""
    seen: list[str] = []
    result, details = known.load_expanded, KnownResults.details

    def one(file: str, *given: object) -> object:
        seen.append(file)
        return result(file, *given)

    def team(self: KnownResults, whole: WholeTeam) -> object:
        seen.append(whole.team)
        return details(self, whole)

    with mock.patch.object(known, "load_expanded", one), mock.patch.object(KnownResults, "details", team):
        yield seen


def change(root: Path, line: str, file: str = SPEC) -> None:
    """Add a line to a spec."""
    path = root / file
    path.write_text(f"{path.read_text()}{line}\n")


def said(root: Path, command: str) -> tuple[int, str, str]:
    """Return what a command says with the cache; for validate, this must be what it says without."""
    outcome = workspaces.gangplan(command, "-C", root, "--engine", "serial")
    plain = workspaces.gangplan(command, "-C", root, "--engine", "serial", "--no-cache")
    if command == "validate":
        assert (outcome.code, outcome.out, outcome.err) == (plain.code, plain.out, plain.err)
    return outcome.code, outcome.out, outcome.err


@pytest.mark.parametrize("command", ["render", "validate"])
def test_only_the_changed_team_is_read(root: Path, command: str, read: list[str]) -> None:
    change(root, "run: 2")
    workspaces.gangplan(command, "-C", root)
    assert sorted(one for one in read if one) == ["specs/nlp/filings.yaml", "specs/nlp/more.yaml"]


def test_runs_and_findings_of_unchanged_teams_count(root: Path) -> None:
    change(root, "run: 2")
    code, out, err = said(root, "validate")
    assert code == 0
    assert err.count("warning[gpus-unusual]") == 2
    assert "checked 6 specs, 12 runs, " in out
    assert "12 runs of 6 specs" in said(root, "render")[1]


def test_a_report_for_programs_reads_all(root: Path, read: list[str]) -> None:
    """The report names every file."""
    workspaces.gangplan("render", "-C", root, "--format", "json")
    assert len([one for one in read if one.endswith(".yaml")]) == 6


def test_runs_of_several_priorities_are_compared_across_teams(root: Path, read: list[str]) -> None:
    """If a queue has runs of several priorities, the demands of its runs are read."""
    change(root, "priority: high")
    said(root, "validate")
    assert "vision" in read


def test_a_patch_that_matches_nothing_is_reported_with_its_job(root: Path) -> None:
    operation = "- {op: remove, path: /metadata/labels/x}"
    patch = f"- target: {{kind: TrainJob, name: filings}}\n  patch: |-\n    {operation}\n"
    (root / "overlays/lab/kustomization.yaml").write_text(workspaces.KUSTOMIZATION + patch)
    workspaces.gangplan("validate", "-C", root)
    change(root, "run: 2")
    assert "matches no object" in said(root, "validate")[2]


def test_a_duplicate_job_is_reported_each_time(root: Path) -> None:
    change(root, "name: filings", "specs/vision/notes.yaml")
    for number in (2, 3):
        change(root, f"run: {number}", f"specs/nlp/{'notes' if number == 2 else 'filings'}.yaml")
        assert "job-name-twice" in said(root, "validate")[2]


def test_a_missing_record_is_made_again(root: Path) -> None:
    """Only the sums are there; what they leave out is asked for."""
    change(root, "priority: high")
    shutil.rmtree(root / ".gangplan/cache/runs")
    said(root, "validate")


def test_parts_that_teams_leave_out_are_added_once(root: Path) -> None:
    """They are asked for several times."""
    completed: list[PipelineState] = []
    complete = PipelineState.complete

    def note(self: PipelineState) -> None:
        completed.append(self)
        complete(self)
        complete(self)

    with mock.patch.object(PipelineState, "complete", note):
        change(root, "priority: high")
        assert workspaces.gangplan("validate", "-C", root).code == 0
    (course,) = completed
    assert len(course.others) == 6
    assert len(course.demands["lab"]) == 6
