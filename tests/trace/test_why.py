"""`gangplan why FILE:LINE`: every line of a rendered file has an answer, a written line tells its fields."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from gangplan.asked import Answer, ask, place_in
from gangplan.errors import Exit
from gangplan.pipeline import Request
from gangplan.trace.files import at
from gangplan.whence import Rendered, runs_of, standing_on
from gangplan.workspace import RENDERED
from tests.trace.worlds import everything
from tests.workspaces import gangplan, render


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace with every field, rendered."""
    root = everything(tmp_path_factory.mktemp("why")).resolve()
    render(root)
    return root


@pytest.fixture(scope="module")
def files(root: Path) -> list[Rendered]:
    """All of its rendered files with their traces."""
    runs, found = runs_of(Request(root))
    standing, more = standing_on(Request(root), "lab")
    assert not any(one.is_error for one in (*found, *more))
    return [*runs, *standing]


def test_every_field_has_a_true_place(root: Path, files: list[Rendered]) -> None:
    """Where a cause is written, its file has that field at that line and column."""
    texts: dict[str, list[str]] = {}
    values: dict[str, object] = {}
    count = 0
    for file in files:
        for _, path, _, trace in file.fields():
            assert trace.because, path
            for cause in trace.causes:
                if cause.where is None or not cause.is_written or not cause.field:
                    continue
                name = cause.where.file
                if name not in texts:
                    texts[name] = (root / name).read_text(encoding="utf-8").splitlines()
                    values[name] = yaml.safe_load("\n".join(texts[name]))
                text, value = texts[name], at(values[name], cause.field)
                here = text[cause.where.line - 1][cause.where.column - 1 :].lstrip("'\"")
                assert value is not None
                if isinstance(value, str | int) and not isinstance(value, bool):
                    assert here.startswith((str(value), str(cause.field[-1]))), (cause, here)
                count += 1
    assert count > 2000


def test_rendered_files_are_those_of_render(root: Path, files: list[Rendered]) -> None:
    assert len(files) == 7
    for file in files:
        assert (root / RENDERED / file.path).read_text(encoding="utf-8") == file.text


def _asked(root: Path, file: str, line: int) -> Answer:
    return ask(Request(root), f"{root}/{file}", line)


def test_random_lines(root: Path, files: list[Rendered]) -> None:
    """The field that is told stands on the line, with its value."""
    chance = random.Random(3)
    for file in files:
        lines = file.text.splitlines()
        for line in chance.sample(range(1, len(lines) + 1), 2):
            answer = _asked(root, f"{RENDERED}/{file.path}", line)
            text = lines[line - 1]
            if text.startswith(("#", "---")):
                assert answer.remark
                continue
            assert answer.origins, text
            key = answer.fields[-1][-1]
            assert isinstance(key, int) or key in text or "|" not in text


def _fields(root: Path, file: str, mark: str) -> set[str]:
    """The rendered fields that the first line with a mark decides, by their last step."""
    lines = (root / file).read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if mark in text)
    answer = _asked(root, file, line)
    shown = [one for one in answer.outcomes if one.is_direct]
    for one in shown:
        written = (root / one.file).read_text(encoding="utf-8").splitlines()[one.line - 1]
        assert isinstance(one.origin.path[-1], int) or str(one.origin.path[-1]) in written
    return {f"{one.origin.body['kind']}.{one.origin.path[-1]}" for one in shown}


def test_a_line_of_a_spec(root: Path) -> None:
    assert "TrainJob.numNodes" in _fields(root, "specs/cv/full.yaml", "workers:")
    assert _fields(root, "specs/cv/full.yaml", "cpu: 16") == {"TrainingRuntime.cpu"}
    assert "TrainingRuntime.maxRestarts" in _fields(root, "specs/cv/full.yaml", "retries:")


def test_a_line_of_a_team_and_a_patch(root: Path) -> None:
    assert _fields(root, "specs/cv/team.yaml", "contact:") == {"Namespace.gangplan.dev/contact"}
    assert _fields(root, "overlays/lab/labels.yaml", "value: north") == {"Namespace.example.com/site"}


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("rendered/lab/nothing.yaml:3", "there is no file rendered/lab/nothing.yaml"),
        ("specs/cv/full.yaml:900", "It has the lines 1 to"),
        ("specs/cv/full.yaml:0", "there is no line 0"),
        ("specs/cv/ful.yaml:2", "Did you mean 'specs/cv/full.yaml'?"),
    ],
)
def test_what_is_not_there(what: str, says: str, root: Path) -> None:
    outcome = gangplan("why", "-C", root, what)
    assert outcome.code == Exit.INPUT
    assert says in outcome.err


def test_a_waiver(root: Path, files: list[Rendered]) -> None:
    """The label of what is excused comes from the waiver, and the waiver knows what it labels."""
    file = next(one for one in files if "/runs/cv/full-" in one.path)
    mark = "gangplan.dev/waived-bucket-residency"
    line = next(number for number, text in enumerate(file.text.splitlines(), 1) if mark in text)
    (origin,) = _asked(root, f"{RENDERED}/{file.path}", line).origins
    assert str(origin.trace.where) == "policies/waivers/bucket.yaml:3:7"
    assert "waiver bucket" in origin.trace.because
    answer = _asked(root, "policies/waivers/bucket.yaml", 3)
    assert answer.remark
    assert {f"{RENDERED}/{file.path}"} == {one.file for one in answer.outcomes}
    assert {one.origin.path[-1] for one in answer.outcomes} == {mark}


def test_the_value_is_that_of_the_line(root: Path, files: list[Rendered]) -> None:
    """Also where it holds the run's name, hash and all."""
    file = next(one for one in files if "/runs/cv/full-" in one.path)
    for line, text in enumerate(file.text.splitlines(), 1):
        if "gangplan.dev/run: " in text:
            (origin,) = _asked(root, f"{RENDERED}/{file.path}", line).origins
            assert str(origin.value) in text
            return
    raise AssertionError(file.text)


def test_a_line_that_nothing_comes_from(root: Path) -> None:
    assert _asked(root, "specs/cv/full.yaml", 1).remark.startswith("nothing that is rendered shows it; ")
    assert _asked(root, "policies/waivers/bucket.yaml", 5).remark == "nothing that is rendered shows it"


def test_the_command(root: Path) -> None:
    outcome = gangplan("why", "-C", root, "specs/cv/full.yaml:7")
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "specs/cv/full.yaml:7  workers" in outcome.out
    assert "spec.trainer.numNodes = 4" in outcome.out


def test_without_a_line_it_is_what_it_was(root: Path) -> None:
    outcome = gangplan("why", "-C", root, str(root / "specs/cv/full.yaml"))
    assert outcome.code == Exit.CLEAN
    assert "workers" in outcome.out
    assert place_in("specs/cv/full.yaml") is None
    assert place_in("a.yaml:3:4") == ("a.yaml", 3)
