"""`gangplan why FILE:LINE`: every line of a rendered file has an answer, and a written line leads to its
fields."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.generators.scripts import read_launch_scripts, scripts_digest
from gangplan.pipeline.request import Request
from gangplan.plan.names import HASH_PLACEHOLDER
from gangplan.provenance.lines import (
    RenderedFile,
    render_cluster_files_with_line_origins,
    render_run_files_with_line_origins,
)
from gangplan.provenance.lookup import LineAnswer, explain_provenance_of_line, parse_file_line
from gangplan.provenance.scripts import describe_launch_scripts
from gangplan.source.lines import find_yaml_paths_at_line, lines_of
from gangplan.trace.files import find_value_at
from gangplan.validate.problems import format_path
from gangplan.workspace import RENDERED, load_workspace
from tests import plain
from tests.schedules import worlds
from tests.sweeps.files import FILE, SWEEP, workspace
from tests.trace.worlds import everything
from tests.workspaces import gangplan, render


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the workspace with every field."""
    root = everything(tmp_path_factory.mktemp("why")).resolve()
    render(root)
    return root


@pytest.fixture(scope="module")
def files(root: Path) -> list[RenderedFile]:
    """Return all rendered files of the workspace with their traces."""
    runs, found = render_run_files_with_line_origins(load_workspace(root), Request(root))
    standing, more = render_cluster_files_with_line_origins(load_workspace(root), Request(root), "lab")
    assert not any(one.is_error for one in (*found, *more))
    return [*runs, *standing]


def test_every_cause_has_its_field_at_its_place(root: Path, files: list[RenderedFile]) -> None:
    """The file of a written cause has the field at that line and column."""
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
                    values[name] = plain.load("\n".join(texts[name]))
                text, value = texts[name], find_value_at(values[name], cause.field)
                here = text[cause.where.line - 1][cause.where.column - 1 :].lstrip("'\"")
                assert value is not None
                if isinstance(value, str | int) and not isinstance(value, bool):
                    assert here.startswith((str(value), str(cause.field[-1]))), (cause, here)
                count += 1
    assert count > 2000


def test_traced_files_equal_those_of_render(root: Path, files: list[RenderedFile]) -> None:
    assert len(files) == 15
    for file in files:
        assert (root / RENDERED / file.path).read_text(encoding="utf-8") == file.text


def _asked(root: Path, file: str, line: int) -> LineAnswer:
    return explain_provenance_of_line(Request(root), f"{root}/{file}", line)


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Yield each document of a rendered file after the number of lines before it."""
    start = 0
    for document in text.split("---\n"):
        yield start, document
        start += document.count("\n") + 1


def _drawn(chance: random.Random, text: str, most: int) -> Iterator[tuple[int, int, str]]:
    """Yield random lines that show a field: the lines before the document, the line's number in it, the
    document."""
    lines = [
        (start, number, document)
        for start, document in _documents(text)
        for number, line in enumerate(document.splitlines(), 1)
        if not line.startswith("#")
    ]
    yield from chance.sample(lines, min(most, len(lines)))


def _assert_true(fields: Sequence[Path], document: str, number: int) -> None:
    """Check that the fields are on the line with key and value; inside a text, that the field began above the
    line."""
    places, line = lines_of(document), document.splitlines()[number - 1]
    if number not in places.values():
        nearest = max(start for start in places.values() if start < number)
        assert list(fields) == [path for path, start in places.items() if start == nearest][-1:], line
        return
    assert fields, line
    for path in fields:
        key, value = path[-1], find_value_at(plain.load(document), path)
        assert places[path] == number, line
        marks = ("-", "[") if isinstance(key, int) else (key,)
        assert any(mark in line for mark in marks), path
        if not isinstance(value, dict | list) and not line.endswith(("|", "|-", "|+")):
            assert str(value) in line or json.dumps(value)[1:-1] in line, path


def test_random_lines_have_their_fields(files: list[RenderedFile]) -> None:
    chance = random.Random(3)
    for file in files:
        for _, number, document in _drawn(chance, file.text, 30):
            _assert_true(find_yaml_paths_at_line(document, number), document, number)


def test_answers_for_random_lines_match_the_lines(root: Path, files: list[RenderedFile]) -> None:
    """The reported fields are on the line, and their values are those of the line's object."""
    chance = random.Random(3)
    for file in files:
        for start, number, document in _drawn(chance, file.text, 2):
            answer = _asked(root, f"{RENDERED}/{file.path}", start + number)
            _assert_true(answer.fields, document, number)
            _assert_of_document(answer, document)


def _assert_of_document(answer: LineAnswer, document: str) -> None:
    """Check that the answer is about the object of the document, and has its values."""
    shown = plain.load(document)
    assert [one.path for one in answer.origins] == list(answer.fields)
    for one in answer.origins:
        assert one.body["kind"] == shown["kind"]
        assert _rough(one.value) == _rough(find_value_at(shown, one.path))


def _rough(value: object) -> str:
    """Return a value without the hash of a run's name, for which objects have a placeholder."""
    return re.sub(rf"-([0-9a-f]{{8}}|{HASH_PLACEHOLDER})\b", "-HASH", json.dumps(value))


def test_a_mark_and_a_border_have_a_remark(root: Path, files: list[RenderedFile]) -> None:
    name = f"{RENDERED}/{files[-1].path}"
    border = files[-1].text.splitlines().index("---") + 1
    assert "mark" in _asked(root, name, 1).remark
    assert "between two objects" in _asked(root, name, border).remark


def test_an_object_missing_from_a_stale_file_shifts_no_answer(root: Path, files: list[RenderedFile]) -> None:
    """Objects are counted within their kind, so that a missing one moves no answer to another object."""
    file = next(one for one in files if one.path.endswith("tenants/cv/tenant.yaml"))
    first, *rest = [document for _, document in _documents(file.text)]
    stale = "---\n".join([rest[0], *rest[1:]])
    kinds = [plain.load(one)["kind"] for one in (first, *rest)]
    assert kinds.count(kinds[0]) == 1
    path = root / RENDERED / file.path
    path.write_text(stale, encoding="utf-8")
    try:
        for start, document in [*_documents(stale)][-3:]:
            number = document.splitlines().index("metadata:") + 2
            answer = _asked(root, f"{RENDERED}/{file.path}", start + number)
            assert "stale" in answer.remark
            _assert_true(answer.fields, document, number)
            _assert_of_document(answer, document)
    finally:
        path.write_text(file.text, encoding="utf-8")


def _fields(root: Path, file: str, mark: str) -> set[str]:
    """Return the rendered fields that the first line with a mark decides, by kind and last step."""
    lines = (root / file).read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if mark in text)
    answer = _asked(root, file, line)
    shown = [one for one in answer.outcomes if one.is_direct]
    for one in shown:
        written = (root / one.file).read_text(encoding="utf-8").splitlines()[one.line - 1]
        assert isinstance(one.origin.path[-1], int) or str(one.origin.path[-1]) in written
    return {f"{one.origin.body['kind']}.{one.origin.path[-1]}" for one in shown}


def test_a_line_of_a_spec_leads_to_its_rendered_fields(root: Path) -> None:
    assert "TrainJob.numNodes" in _fields(root, "specs/cv/full.yaml", "workers:")
    # value: that of OMP_NUM_THREADS, a rank's share of these CPUs.
    assert _fields(root, "specs/cv/full.yaml", "cpu: 16") == {"TrainingRuntime.cpu", "TrainingRuntime.value"}
    assert "TrainingRuntime.maxRestarts" in _fields(root, "specs/cv/full.yaml", "retries:")


def test_lines_of_a_team_and_a_patch_lead_to_their_rendered_fields(root: Path) -> None:
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
def test_missing_files_and_lines_are_refused(what: str, says: str, root: Path) -> None:
    outcome = gangplan("why", "-C", root, what)
    assert outcome.code == Exit.INPUT
    assert says in outcome.err


def test_a_line_of_the_launch_scripts_leads_to_its_file_and_its_runs(
    root: Path, files: list[RenderedFile]
) -> None:
    file = next(one for one in files if "/launch." in one.path)
    assert [one["metadata"]["name"] for one in file.bodies] == [f"gangplan-launch-{scripts_digest()[:8]}"]
    lines = file.text.splitlines()
    for script, text in read_launch_scripts().items():
        line = lines.index(f"  {script}: |") + 4
        answer = _asked(root, f"{RENDERED}/{file.path}", line)
        assert text.splitlines()[2] == lines[line - 1][4:]
        assert answer.remark.startswith(f"line 3 of templates/launch/{script}; mounted by ")
        assert "full-" in answer.remark
        (origin,) = answer.origins
        assert (origin.path, origin.trace.is_own) == (("data", script), True)
    (origin,) = _asked(root, f"{RENDERED}/{file.path}", lines.index("  namespace: team-cv") + 1).origins
    assert str(origin.trace.where).startswith("specs/cv/team.yaml:4:")
    assert "ConfigMap.namespace" in _fields(root, "specs/cv/team.yaml", "namespace:")


def test_scripts_of_an_earlier_gangplan_are_named_as_such(root: Path, files: list[RenderedFile]) -> None:
    file = next(one for one in files if "/launch." in one.path)
    text = file.text.replace(scripts_digest()[:8], "0a1b2c3d")
    line = text.splitlines().index("  ranks.sh: |") + 2
    assert describe_launch_scripts(root, f"{RENDERED}/lab/runs/cv/launch.0a1b2c3d.yaml", text, line) == (
        "line 1 of templates/launch/ranks.sh of an earlier gangplan; no run in rendered/ mounts them"
    )


def test_a_waiver_and_its_label_lead_to_each_other(root: Path, files: list[RenderedFile]) -> None:
    """The label of an excused run comes from the waiver, and the waiver knows what it labels."""
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


def test_the_value_is_the_one_that_the_line_shows(root: Path, files: list[RenderedFile]) -> None:
    """This includes the hash in the run's name."""
    file = next(one for one in files if "/runs/cv/full-" in one.path)
    for line, text in enumerate(file.text.splitlines(), 1):
        if "gangplan.dev/run: " in text:
            (origin,) = _asked(root, f"{RENDERED}/{file.path}", line).origins
            assert str(origin.value) in text
            return
    raise AssertionError(file.text)


def test_a_line_without_effect_gets_a_remark(root: Path) -> None:
    assert _asked(root, "specs/cv/full.yaml", 1).remark.startswith("nothing that is rendered shows it; ")
    assert _asked(root, "policies/waivers/bucket.yaml", 5).remark == "nothing that is rendered shows it"


def test_the_command_shows_the_rendered_field(root: Path) -> None:
    outcome = gangplan("why", "-C", root, "specs/cv/full.yaml:7")
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "specs/cv/full.yaml:7  workers" in outcome.out
    assert "spec.trainer.numNodes = 4" in outcome.out


def test_without_a_line_why_explains_the_spec(root: Path) -> None:
    outcome = gangplan("why", "-C", root, str(root / "specs/cv/full.yaml"))
    assert outcome.code == Exit.CLEAN
    assert "workers" in outcome.out
    assert parse_file_line("specs/cv/full.yaml") is None
    assert parse_file_line("a.yaml:3:4") == ("a.yaml", 3)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render a sweep whose trials have several sizes, and jobs of a template with a size."""
    job = (
        SIZED.replace("template:", "job:")
        .replace("Sweep\n", "JobTemplate\n")
        .replace("maxConcurrent: 2\n", "")
    )
    sizes = "parameters: {size: {type: integer, default: 2}, batch: {type: integer, default: 64}}\n"
    start, end = job.index("parameters:"), job.index("job:")
    named = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\ntemplate: sized\n"
    made = {
        "jobtemplates/sized.yaml": job[:start] + sizes + job[end:],
        "specs/nlp/given.yaml": f"{named}parameters: {{size: 4}}\n",
        "specs/nlp/plain.yaml": named,
    }
    root = workspace(tmp_path_factory.mktemp("sweep"), SIZED, **made).resolve()
    render(root)
    return root


SIZED = SWEEP.replace("workers: 2", "workers: ${{ parameters.size }}").replace(
    "lr: [1e-4, 3e-4, 1e-3]", "size: [2, 4]"
)
SIZED = SIZED.replace(', "--lr=${{ parameters.lr }}"', "")
LINES = {
    "a field of a sweep's template": (FILE, "  gpus: 1", "limits['nvidia.com/gpu']"),
    "a parameter in a sweep's template": (FILE, "  workers: $", "numNodes"),
    "the values of a parameter": (FILE, "    size: ", "numNodes"),
    "the trials at once": (FILE, "maxConcurrent", "nominalQuota"),
    "a parameter in a template": ("jobtemplates/sized.yaml", "  workers: $", "numNodes"),
    "the default of a parameter": ("jobtemplates/sized.yaml", "parameters: ", "numNodes"),
    "the value of a parameter": ("specs/nlp/given.yaml", "parameters: ", "numNodes"),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_of_sweeps_and_templates_lead_to_fields_of_their_runs(name: str, sweep: Path) -> None:
    file, start, field = LINES[name]
    lines = (sweep / file).read_text().splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if text.startswith(start)]
    answer = explain_provenance_of_line(Request(sweep), file, line)
    assert not answer.remark
    found = [one for one in answer.outcomes if one.is_direct]
    assert any(format_path(one.origin.path).endswith(field) for one in found), [
        one.origin.path for one in found
    ]


def test_a_field_of_a_scheduled_job_leads_to_the_run_that_is_created_later(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    worlds.stock(root, worlds.SPEC.replace("image: openmpi", "image: pytorch"))
    render(root)
    spec = (root / "specs/nlp/filings.yaml").read_text().splitlines()
    (line,) = [number for number, text in enumerate(spec, 1) if text.startswith("workers: ")]
    answer = explain_provenance_of_line(Request(root), "specs/nlp/filings.yaml", line)
    assert [one.origin.path for one in answer.outcomes] == [("data", "run.yaml")]
