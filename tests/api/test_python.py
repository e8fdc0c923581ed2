"""The Python API: its page is right, and it gives the results of the command line."""

from __future__ import annotations

import ast
import datetime
import doctest
import enum
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gangplan as package
from gangplan import InvalidError, TrainingJob, UserError, Workspace
from gangplan.api.page import render_python_api_fields_module, render_python_page
from gangplan.report.json import build_findings_json
from gangplan.spec.job import TrainingJob as Format
from tests import plain
from tests.workspaces import REPOSITORY, STOCK, gangplan, sample, tree, write

SPEC = "specs/nlp/filings.yaml"
GOOD: dict[str, Any] = {"image": "openmpi", "command": ["python", "train.py"], "workers": 2, "gpus": 2}


def test_the_page_is_fresh_and_its_examples_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs/python.md").read_text(encoding="utf-8")
    assert page == render_python_page()
    monkeypatch.chdir(tmp_path)
    assert gangplan("init", "jobs", "--team", "nlp", "--cluster", "lab").code == 0
    test = doctest.DocTestParser().get_doctest(page, {}, "python.md", "docs/python.md", 0)
    assert len(test.examples) > 20
    said = io.StringIO()
    failed = doctest.DocTestRunner(verbose=False).run(test, out=said.write).failed
    assert failed == 0, said.getvalue()


def test_every_public_name_exists_and_is_on_the_page() -> None:
    page = render_python_page()
    for name in package.__all__:
        assert getattr(package, name)
        assert name in dir(package)
        assert name == "__version__" or name in page
    with pytest.raises(AttributeError, match="has no attribute 'Cluster'"):
        package.Cluster  # noqa: B018


def test_the_types_of_fields_are_those_of_the_format() -> None:
    text = (REPOSITORY / "gangplan/api/fields.py").read_text(encoding="utf-8")
    assert text == render_python_api_fields_module()
    (fields,) = (one for one in ast.parse(text).body if isinstance(one, ast.ClassDef))
    named = {ast.unparse(one.target) for one in fields.body if isinstance(one, ast.AnnAssign)}
    assert named == {one.alias or name for name, one in Format.model_fields.items()} - {"apiVersion", "kind"}


def test_importing_the_package_imports_no_other_module() -> None:
    asked = "import sys; before = set(sys.modules); import gangplan; print(*(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert set(found.split()) - {"gangplan", "__future__"} == set()


@pytest.mark.parametrize(
    "change", ["", "gpus: 9\n", "memory: 64GB\n", "image: opnmpi\n", "nothing: 1\n", "env: {A: $B}\n"]
)
def test_findings_and_plans_are_those_of_the_command_line(change: str, root: Path) -> None:
    name = change.partition(":")[0]
    lines = [
        line for line in STOCK[SPEC].splitlines(keepends=True) if not name or not line.startswith(f"{name}:")
    ]
    write(root, {SPEC: "".join(lines) + change})
    said = json.loads(gangplan("validate", "-C", root, "--format", "json").out)
    found = Workspace(root).validate()
    assert build_findings_json(found)["findings"] == said["findings"]
    assert bool(found) is bool(change)
    assert Workspace(root).validate(SPEC) == found
    planned = json.loads(gangplan("plan", "-C", root, "--format", "json").out)
    assert json.loads(json.dumps(Workspace(root).plan())) == planned


def test_the_sample_has_the_findings_and_files_of_the_command_line(tmp_path: Path) -> None:
    one, other = sample(tmp_path / "one"), sample(tmp_path / "other")
    said = json.loads(gangplan("validate", "-C", one, "--format", "json").out)
    assert build_findings_json(Workspace(one).validate())["findings"] == said["findings"]
    assert said["findings"]
    for folder in (one, other):
        for path in sorted((folder / "rendered").rglob("*.yaml"))[:3]:
            path.write_text(path.read_text().replace("namespace:", "namespace: "))
    assert not Workspace(one).render(check=True).is_fresh
    rendering = Workspace(one).render()
    assert sorted(set(rendering.files.values())) == ["changed", "same"]
    assert gangplan("render", "-C", other).code == 0
    assert tree(one / "rendered") == tree(other / "rendered")
    assert Workspace(one).render(check=True).is_fresh


def test_jobs_are_the_files_that_validate_reads(tmp_path: Path) -> None:
    """Sweeps, templates, mounted files and hidden files are not jobs."""
    root = sample(tmp_path)
    write(root, {"specs/nlp/files/mounted.yaml": "kind: TrainingJob\n", "specs/nlp/.hidden.yaml": "a: 1\n"})
    listed = json.loads(gangplan("list", "specs", "-C", root, "--format", "json").out)["specs"]
    jobs = Workspace(root).jobs()
    assert set(jobs) == {
        row["file"] for row in listed if "sweep" not in (root / row["file"]).read_text().lower()
    }
    for file, job in jobs.items():
        assert job.to_yaml() == (root / file).read_text()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"image: \xff\n", "specs/nlp/bad.yaml:1:8: this is not a job: "),
        (b"a: b: c\n", "specs/nlp/bad.yaml:1:5: this is not a job: "),
        (b"", "specs/nlp/bad.yaml:1:1: this is not a job: "),
        (b"[]\n", "specs/nlp/bad.yaml:1:1: this is not a job: "),
    ],
)
def test_an_unreadable_job_is_named(data: bytes, said: str, root: Path) -> None:
    (root / "specs/nlp/bad.yaml").write_bytes(data)
    with pytest.raises(UserError) as raised:
        Workspace(root).jobs()
    assert raised.value.message.startswith(said)


def test_no_link_is_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(STOCK[SPEC])
    (root / "specs/nlp/link.yaml").symlink_to(tmp_path / "other.yaml")
    with pytest.raises(UserError, match=r"specs/nlp/link\.yaml"):
        Workspace(root).jobs()


def test_with_errors_nothing_is_rendered(root: Path) -> None:
    write(root, {SPEC: STOCK[SPEC].replace("gpus: 2", "gpus: 99")})
    rendering = Workspace(root).render()
    assert (rendering.files, rendering.is_fresh) == ({}, False)
    assert not (root / "rendered").exists()


def test_a_draft_has_the_findings_of_its_file(root: Path) -> None:
    """This also holds for a draft that replaces an existing file."""
    workspace = Workspace(root)
    draft = workspace.draft("nlp", "other", TrainingJob(**GOOD, env={"NCCL_SOCKET_IFNAME": "eno1"}))
    (found,) = draft.validate()
    assert str(found.where).startswith("specs/nlp/other.yaml:")
    with pytest.raises(InvalidError, match="interface-unknown") as raised:
        draft.write()
    assert raised.value.findings == [found]
    with pytest.raises(InvalidError):
        draft.render()
    assert not (root / draft.file).exists()
    (root / draft.file).write_text(draft.to_yaml())
    assert workspace.validate(draft.file) == [found]
    (root / draft.file).unlink()
    again = workspace.draft("nlp", "filings", TrainingJob(**GOOD))
    assert again.validate() == []
    with pytest.raises(UserError, match="exists"):
        again.write()


def test_a_draft_renders_and_plans_as_its_file(root: Path) -> None:
    draft = Workspace(root).draft("nlp", "other", TrainingJob(**GOOD))
    (path, text), *_ = draft.render().items()
    planned = draft.plan()
    assert draft.write() == root / "specs/nlp/other.yaml"
    assert Workspace(root).plan("specs/nlp/other.yaml") == planned
    assert gangplan("render", "-C", root).code == 0
    assert (root / "rendered" / path).read_text() == text
    assert Workspace(root).jobs()["specs/nlp/other.yaml"] == draft.job


@pytest.mark.parametrize(
    ("team", "name"), [("nlp", "../up"), ("nlp", "Ä"), ("nlp", ""), ("no", "job"), ("..", "job")]
)
def test_hostile_names_are_refused(team: str, name: str, root: Path) -> None:
    before = tree(root)
    with pytest.raises(UserError):
        Workspace(root).draft(team, name, TrainingJob(**GOOD))
    assert tree(root) == before


def test_unknown_workspaces_files_clusters_and_dates_are_refused(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(UserError, match="not a gangplan workspace"):
        Workspace(elsewhere)
    with pytest.raises(UserError, match="not in the workspace"):
        Workspace(root).validate("/etc/hostname")
    with pytest.raises(UserError, match="nothing was checked"):
        Workspace(root).validate(clusters=["moon"])
    with pytest.raises(UserError, match="is not a valid date"):
        Workspace(root).validate(today="tomorrow")
    assert Workspace(root / "specs/nlp").root == root.resolve()


@pytest.mark.parametrize("value", [Decimal(1), b"x", {1, 2}, object(), [object()], {"a": Decimal(1)}])
def test_values_of_unknown_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="memory"):
        TrainingJob(memory=value)  # type: ignore[arg-type]


def test_jobs_are_values() -> None:
    job = TrainingJob(**GOOD, memory=None)
    assert job == TrainingJob(**dict(reversed(GOOD.items())))
    assert hash(job) == hash(TrainingJob(**GOOD))
    assert {job, TrainingJob.from_yaml(f"# mine\n{job.to_yaml()}")} == {job}
    assert job.but(workers=4).fields["workers"] == 4
    assert job.fields["workers"] == 2
    assert "workers" not in job.but(workers=None).fields
    assert eval(repr(job)) == job
    assert job != "job"
    assert TrainingJob(command="python train.py --lr '1 2'").fields["command"] == [
        "python",
        "train.py",
        "--lr",
        "1 2",
    ]
    assert TrainingJob(command="cd /a && python t.py").fields["command"] == "cd /a && python t.py"
    assert TrainingJob(command="python 'open").fields["command"] == "python 'open"
    assert job.findings == []
    (found,) = job.but(gpus=-1).findings
    assert (found.where.line, found.rule) == (6, "spec-value")


def test_a_file_read_is_the_same_file() -> None:
    """Comments stay, and so does 1e-4, which a float would be written differently from."""
    head = "# mine\napiVersion: gangplan.dev/v1\nkind: TrainingJob\n"
    text = f"{head}image: openmpi\ncommand: [python, t.py, --lr, 1e-4]\n"
    job = TrainingJob.from_yaml(text)
    assert job.to_yaml() == text
    assert "1e-4" in job.but(workers=4).to_yaml()
    assert job.but(workers=4).fields["command"][-1] == job.fields["command"][-1]


@pytest.mark.parametrize("text", ["", "[1]", "a: [", "a: 1\n---\nb: 2\n", "\0", "just words", "a: \ud800"])
def test_texts_that_are_not_jobs_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="this is not a job"):
        TrainingJob.from_yaml(text)


VALUES = st.recursive(
    st.text()
    | st.integers(-(10**9), 10**9)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries({}, optional={"command": VALUES, "env": VALUES, "memory": VALUES, "labels": VALUES})
)
def test_a_job_written_and_read_again_is_the_same(fields: Mapping[str, Any]) -> None:
    """The file is YAML whatever the values are, and mistakes in them are findings, never exceptions."""
    try:
        text = TrainingJob(**fields).to_yaml()
    except ValueError:  # half a surrogate pair cannot be encoded
        return
    read = plain.load(text)
    given = {name: value for name, value in read.items() if name not in ("apiVersion", "kind")}
    assert given == TrainingJob(**fields).fields
    assert {**given, "command": 0} == {**fields, "command": 0} if "command" in fields else given == fields
    assert all(one.message for one in TrainingJob(**fields).findings)


def test_one_name_can_be_given_without_a_list(root: Path) -> None:
    workspace = Workspace(root)
    assert workspace.validate(clusters="lab", teams="nlp") == workspace.validate(
        clusters=["lab"], teams=["nlp"]
    )
    assert workspace.plan(clusters="lab") == workspace.plan(clusters=("lab",))
    with pytest.raises(UserError, match="there is no cluster 'lib'"):
        workspace.render(clusters="lib")


def test_a_job_never_changes() -> None:
    job = TrainingJob(**GOOD, env={"A": "1"})
    before = (hash(job), job.to_yaml())
    job.fields["image"] = "other"
    job.fields["env"]["A"] = "2"
    assert (hash(job), job.to_yaml(), job.fields["env"]) == (*before, {"A": "1"})
    with pytest.raises(AttributeError):
        job.fields = {}  # type: ignore[misc]


@pytest.mark.parametrize("other", [None, {"image": "openmpi"}, "image: openmpi"])
def test_arguments_that_are_not_jobs_are_refused(other: Any, root: Path) -> None:
    with pytest.raises(TypeError, match="a draft is made of a TrainingJob, not of"):
        Workspace(root).draft("nlp", "tune", other)
    if not isinstance(other, str):
        with pytest.raises(TypeError, match="the text of a file is expected, not"):
            TrainingJob.from_yaml(other)


def test_values_that_no_file_can_hold_are_refused() -> None:
    for number in (10**30, -(10**5000)):
        with pytest.raises(ValueError, match="workers does not fit into 64 bits"):
            TrainingJob(workers=number)
    for number in (2**64 - 1, -(2**63)):
        assert TrainingJob.from_yaml(f"workers: {number}\n").but(gpus=1).fields["workers"] == number
    for half in ("\ud800", ["\ud800"], {"\ud800": 1}):
        with pytest.raises(ValueError, match=r"env.*: half a surrogate pair, U\+D800"):
            TrainingJob(env=half)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a field: half a surrogate pair, U\+D800"):
        TrainingJob(**{"\ud800": 1})  # type: ignore[arg-type]
    endless: dict[str, Any] = {}
    endless["env"] = endless
    with pytest.raises(TypeError, match="deeper than 32 levels"):
        TrainingJob(env=endless)


def test_members_of_enums_are_written_as_their_values() -> None:
    class Image(enum.StrEnum):
        ONE = "openmpi"

    class Size(enum.IntEnum):
        TWO = 2

    job = TrainingJob(image=Image.ONE, workers=Size.TWO, env={Image.ONE: Size.TWO})
    assert job.to_yaml() == TrainingJob(image="openmpi", workers=2, env={"openmpi": 2}).to_yaml()


def test_arguments_of_the_wrong_type_are_named(root: Path) -> None:
    workspace: Any = Workspace(root)
    with pytest.raises(TypeError, match=r"\['a.yaml'\] is not a path; name each file on its own"):
        workspace.validate(["a.yaml"])
    with pytest.raises(TypeError, match=r"today is .*; write a text, such as '"):
        workspace.validate(today=datetime.date(2026, 12, 31))
    for call in (workspace.validate, workspace.plan, workspace.render):
        with pytest.raises(TypeError, match="clusters: 3 is not a name; write a text"):
            call(clusters=["lab", 3])
        with pytest.raises(TypeError, match="teams: None is not a name"):
            call(teams=None)
    with pytest.raises(TypeError, match="team and name: None is not a name"):
        workspace.draft("nlp", None, TrainingJob(**GOOD))


def test_an_unknown_engine_is_refused_at_once(root: Path) -> None:
    with pytest.raises(UserError, match="there is no engine 'x'"):
        Workspace(root, engine="x")


REQUEST = {
    "TrainingJobName": "digits",
    "AlgorithmSpecification": {
        "TrainingImage": "registry.example.com/training/pytorch:1",
        "ContainerEntrypoint": ["python", "digits.py"],
    },
    "ResourceConfig": {"InstanceType": "ml.m5.2xlarge", "InstanceCount": 2},
}


@pytest.mark.parametrize(
    ("kind", "source", "team", "error", "words"),
    [
        ("sagemaker", [REQUEST], "nlp", TypeError, "a source is a dict, not list"),
        ("slurm", REQUEST, "nlp", UserError, "there is no kind 'slurm' of values"),
        ("sagemaker", REQUEST, "nobody", UserError, "there is no team 'nobody'"),
        ("mpijob", REQUEST, "nlp", UserError, "there is no MPIJob in it"),
        ("sagemaker", {}, "nlp", UserError, "there is no training job of SageMaker"),
    ],
)
def test_values_that_cannot_be_imported_are_refused(
    kind: str, source: Any, team: str, error: type[Exception], words: str, root: Path
) -> None:
    with pytest.raises(error, match=words):
        Workspace(root).import_job(kind, source, team, image="pytorch")


def test_what_a_library_returns_can_be_imported(root: Path) -> None:
    """Such answers have dates, and mappings that are not dicts."""
    source = MappingProxyType({**REQUEST, "CreationTime": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)})
    found = Workspace(root).import_job("sagemaker", source, "nlp", image="pytorch")
    assert found.draft.job.fields["workers"] == 2
    assert "lab" in found.percent
    assert all(str(one.where).startswith(("source", "specs/")) for one in found.findings)
