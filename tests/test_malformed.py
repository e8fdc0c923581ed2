"""Wrong input: one clear finding per real cause, at its line and column, and nothing is written.

The tables in tests/malformed/ change one file of the small workspace in tests/workspaces.py. A case states
what it changes (`change` texts, `add` lines, the whole `text`; `in` which file) and what must be found:
`finds` as `LINE:COLUMN rule` in that file or `FILE:LINE:COLUMN rule`, and what the first of them `says` and
how it `helps` (`help`: the whole help, to the letter). render, validate and plan find the same, which a few
cases of each table show.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.containerfile.parse import parse_containerfile as parse_containerfile
from gangplan.errors import Exit
from gangplan.findings import format_sentence
from gangplan.imports.fabric import _parse_multus_networks
from gangplan.imports.managed.sagemaker import decode_hyperparameter
from gangplan.model.support import look_up_kueue_line
from gangplan.reference.schemas import list_format_models
from gangplan.source import load_document
from gangplan.spec.convert import convert_value
from gangplan.spec.load import parse_spec_document
from gangplan.starter.fields import NEW_FILE_FORMATS, fields_of
from gangplan.starter.text import NEW_FILE_KINDS
from gangplan.validate.kueue.annotations import LAYERS, _check_topology_layers
from gangplan.validate.network.beyond import _parse_extra_gke_pod_networks
from tests import plain, workspaces
from tests.workspaces import Outcome, gangplan, gangplan_process

SPEC, OVERLAY = "specs/nlp/filings.yaml", "overlays/lab/kustomization.yaml"
TABLES = sorted(Path(__file__).with_name("malformed").glob("*.yaml"))


@dataclass(frozen=True)
class Case:
    """One entry of a table."""

    table: str
    name: str
    body: dict[str, Any]

    @property
    def file(self) -> str:
        """The file that is changed."""
        return str(self.body.get("in", OVERLAY if self.table == "overlay" else SPEC))

    @property
    def expected(self) -> list[tuple[str, str]]:
        """The (place, rule) of every finding, sorted."""
        found = []
        for line in self.body["finds"]:
            place, rule = line.rsplit(" ", 1)
            inside = re.fullmatch(r"[0-9]+:[0-9]+", place)
            found.append((f"{self.file}:{place}" if inside else self.file if place == ":" else place, rule))
        return sorted(found)

    def apply(self, root: Path) -> None:
        """Make the workspace wrong."""
        path = root / self.file
        if self.table == "overlay":
            path.write_text(workspaces.KUSTOMIZATION)
        text = self.body.get("text", path.read_text())
        changes = self.body.get("change", [])
        for old, new in [changes] if changes and isinstance(changes[0], str) else changes:
            assert old in text, old
            text = text.replace(old, new, 1)
        if "add" in self.body:
            text += self.body["add"] + "\n"
        path.write_text(text)
        workspaces.write(root, self.body.get("write", {}))
        if "remove" in self.body:
            (root / self.body["remove"]).unlink()


def cases() -> list[Case]:
    """Return every case of every table."""
    return [
        Case(path.stem, name, body)
        for path in TABLES
        for name, body in plain.load(path.read_text(encoding="utf-8")).items()
    ]


CASES = cases()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create and render the small workspace."""
    root = workspaces.stock(tmp_path_factory.mktemp("good"))
    workspaces.render(root)
    return root


@pytest.fixture
def workspace(good: Path, tmp_path: Path) -> Path:
    """Copy the small workspace, for tests that spoil it."""
    shutil.copytree(good, tmp_path / "workspace")
    return tmp_path / "workspace"


def assert_refused(
    root: Path, expected: list[tuple[str, str]], code: int = Exit.INPUT, command: str = "render"
) -> Outcome:
    """Check that the command finds exactly this and leaves rendered/ as it is."""
    before = workspaces.rendered(root)
    outcome = gangplan(command, "-C", root)
    assert outcome.errors() == expected, outcome.err
    assert outcome.code == code, outcome.err
    assert workspaces.rendered(root) == before
    assert not list(root.glob(".gangplan/stage*"))
    return outcome


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.table}: {case.name}")
def test_wrong_input_is_reported_at_its_place(
    case: Case, workspace: Path, request: pytest.FixtureRequest
) -> None:
    if case.body.get("builder"):
        request.getfixturevalue("builder")
    case.apply(workspace)
    code = case.body.get("exit", Exit.INPUT)
    # All three commands run the same stages of gangplan.pipeline.stages up to the one that stops here.
    for command in ("render", "validate", "plan") if _is_for_all(case) else ("render",):
        outcome = assert_refused(workspace, case.expected, code, command)
    place, rule = _first(case)
    blamed = next(shown for shown in outcome.findings if (shown.place, shown.rule) == (place, rule))
    assert case.body.get("says", "") in blamed.message
    assert case.body.get("helps", "").lower() in blamed.help.lower()
    assert blamed.help == case.body.get("help", blamed.help) == format_sentence(blamed.help)
    assert blamed.help


def _is_for_all(case: Case) -> bool:
    """Return whether to try all commands: for a table's first two cases, and those with an exit code."""
    beside = [one.name for one in CASES if one.table == case.table]
    return case.name in beside[:2] or "exit" in case.body


def _first(case: Case) -> tuple[str, str]:
    """Return the finding that the case describes: the last of a list of files, else the first."""
    return case.expected[-1] if "write" in case.body else case.expected[0]


def bomb(depth: int) -> str:
    """Return a spec whose labels are nested too deeply."""
    return workspaces.SPEC + "labels: " + "{a: " * depth + "1" + "}" * depth + "\n"


def named(name: str) -> dict[str, str]:
    """Return a second spec under another file name."""
    return {f"specs/nlp/{name}": workspaces.SPEC}


# The files written into the workspace, and the findings.
FILES: dict[str, tuple[dict[str, str | bytes], list[tuple[str, str]]]] = {
    "not UTF-8": (
        {SPEC: workspaces.SPEC.encode() + b"description: f\xfcr alle\n"},
        [(f"{SPEC}:9:15", "yaml-not-utf8")],
    ),
    "UTF-16": ({SPEC: workspaces.SPEC.encode("utf-16")}, [(f"{SPEC}:1:1", "yaml-not-utf8")]),
    "too deep": ({SPEC: bomb(60)}, [(f"{SPEC}:9:245", "yaml-too-deep")]),
    "absurdly deep": ({SPEC: bomb(5_000)}, [(f"{SPEC}:9:4001", "yaml-too-deep")]),
    "too large": ({SPEC: workspaces.SPEC + "# " + "x" * (1 << 20)}, [(SPEC, "yaml-too-large")]),
    "a file name with capitals": (
        named("Filings-V2.yaml"),
        [("specs/nlp/Filings-V2.yaml:1:1", "spec-file-name")],
    ),
    "a file name with an underscore": (
        named("my_job.yaml"),
        [("specs/nlp/my_job.yaml:1:1", "spec-file-name")],
    ),
    "a file name with a space": (named("my job.yaml"), [("specs/nlp/my job.yaml:1:1", "spec-file-name")]),
    "a file name that is too long": (
        named(f"{'long-' * 8}name.yaml"),
        [(f"specs/nlp/{'long-' * 8}name.yaml:1:1", "name-too-long")],
    ),
    "another ending": (named("second.yml"), [("specs/nlp/second.yml", "spec-file-name")]),
    "an ending in capitals": (named("second.YAML"), [("specs/nlp/second.YAML", "spec-file-name")]),
    "a directory instead of a file": (
        {"specs/nlp/second.yaml/keep.txt": ""},
        [("specs/nlp/second.yaml", "file-unreadable")],
    ),
    "a directory instead of a team's file": (
        {"specs/vision/team.yaml/keep.txt": "", "specs/vision/job.yaml": workspaces.SPEC},
        [("specs/vision/team.yaml", "file-unreadable")],
    ),
    "a spec in no team's folder": (
        {"specs/second.yaml": workspaces.SPEC},
        [("specs/second.yaml", "spec-team")],
    ),
    "a job described twice": (
        {"specs/nlp/old/filings.yaml": workspaces.SPEC},
        [("specs/nlp/old/filings.yaml:1:1", "job-name-twice")],
    ),
    "a job described twice by name": (
        {"specs/nlp/second.yaml": workspaces.SPEC + "name: filings\n"},
        [("specs/nlp/second.yaml:9:7", "job-name-twice")],
    ),
    "a folder that is not a cluster": (
        {"overlays/notes/README.md": ""},
        [("overlays/notes/cluster.yaml", "file-unreadable")],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_unreadable_and_misplaced_files_are_reported(name: str, workspace: Path) -> None:
    files, expected = FILES[name]
    for path in files:
        if path == SPEC:
            (workspace / path).unlink()
    workspaces.write(workspace, files)
    outcome = assert_refused(workspace, expected)
    assert all(shown.help for shown in outcome.findings)
    assert_refused(workspace, expected, command="validate")


def test_a_symlink_is_refused(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.yaml").write_text(workspaces.SPEC)
    (workspace / "specs/nlp/second.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert_refused(workspace, [("specs/nlp/second.yaml", "file-unreadable")])


def test_a_pipe_is_refused(workspace: Path) -> None:
    os.mkfifo(workspace / "specs/nlp/second.yaml")
    assert_refused(workspace, [("specs/nlp/second.yaml", "file-unreadable")])


def test_a_missing_team_is_reported_once(workspace: Path) -> None:
    workspaces.write(
        workspace, {"specs/vision/job.yaml": workspaces.SPEC, "specs/vision/second.yaml": "x: 1\n"}
    )
    (workspace / "specs/vision/second.yaml").unlink()
    assert_refused(workspace, [("specs/vision/team.yaml", "team-missing")])


def test_every_wrong_file_is_reported_in_one_run(workspace: Path) -> None:
    workspaces.write(
        workspace,
        {
            "specs/nlp/second.yaml": workspaces.SPEC.replace("32Gi", "32GB"),
            "specs/nlp/third.yaml": workspaces.SPEC.replace("image: openmpi", "image: opnmpi"),
            SPEC: workspaces.SPEC.replace("workers", "nodes"),
        },
    )
    assert_refused(
        workspace,
        [
            (f"{SPEC}:5:1", "spec-unknown-field"),
            ("specs/nlp/second.yaml:8:9", "spec-value"),
            ("specs/nlp/third.yaml:3:8", "image-unknown"),
        ],
    )


@pytest.mark.parametrize("name", ["memory in GB", "a name prefix"])
def test_a_separate_process_reports_the_same(name: str, workspace: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    case.apply(workspace)
    before = workspaces.tree(workspace)
    outcome = gangplan_process("render", cwd=workspace)
    assert outcome.errors() == case.expected
    assert outcome.code == Exit.INPUT
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    after = workspaces.tree(workspace)
    assert {name: after[name] for name in before if not name.startswith(".gangplan/")} == {
        name: text for name, text in before.items() if not name.startswith(".gangplan/")
    }


def test_there_are_enough_cases() -> None:
    assert len(CASES) + len(FILES) >= 150


def test_nothing_to_check_is_an_error(workspace: Path) -> None:
    (workspace / SPEC).unlink()
    cluster = workspace / "overlays/lab/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("teams:\n  nlp: {queue: training}\n", ""))
    outcome = gangplan("validate", "-C", workspace)
    assert outcome.code == Exit.INPUT
    assert outcome.err.startswith("fatal: nothing was checked: there is no spec under specs/")


def test_a_broken_team_without_a_spec_is_reported(workspace: Path) -> None:
    """The team's error is reported, not that there is no spec."""
    (workspace / SPEC).unlink()
    (workspace / "specs/nlp/team.yaml").write_text("apiVersion: gangplan.dev/v1\nkind: Team\nclusters: lab\n")
    for command in ("validate", "render"):
        outcome = gangplan(command, "-C", workspace)
        assert outcome.code == Exit.INPUT
        assert outcome.errors() == [("specs/nlp/team.yaml:3:11", "spec-type")]


def test_a_platform_without_a_spec_is_rendered(workspace: Path) -> None:
    """Namespaces and queues must exist before anybody can write a spec for them."""
    (workspace / SPEC).unlink()
    outcome = gangplan("render", "-C", workspace)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "0 runs of 0 specs" in outcome.out
    assert (workspace / "rendered/lab/tenants/nlp/tenant.yaml").exists()
    assert not (workspace / "rendered/lab/runs").exists()
    assert gangplan("validate", "-C", workspace, "--team", "nlp").code == Exit.CLEAN
    assert gangplan("validate", "-C", workspace, "specs/nlp").code == Exit.INPUT


@pytest.mark.parametrize("part", ["specs", "overlays"])
def test_a_folder_without_specs_or_overlays_is_not_a_workspace(part: str, workspace: Path) -> None:
    shutil.rmtree(workspace / part)
    outcome = gangplan("render", "-C", workspace)
    assert outcome.code == Exit.INPUT
    assert "this is not a gangplan workspace" in outcome.err


_LONG_VALUES = [
    value
    for long in ("9" * 20, "9" * 5000)
    for value in (long, f'"{long}"', f'"gpu:{long}"', f'"{long}-{long}"', f'"on-failure:{long}"')
]


@pytest.mark.parametrize("kind", NEW_FILE_FORMATS)
def test_very_long_numbers_are_reported_in_every_field(kind: str) -> None:
    """Python refuses to parse more than 4300 digits, but every field is still checked."""
    for field in fields_of(kind):
        path = ("images", "new", *field.path) if kind == "image" else field.path
        for value in _LONG_VALUES:
            blocks = "".join(f"{'  ' * depth}{name}:\n" for depth, name in enumerate(path))
            text = f"apiVersion: gangplan.dev/v1\nkind: {NEW_FILE_KINDS[kind]}\n{blocks[:-1]} {value}\n"
            document, findings = load_document(text.encode(), "a.yaml")
            if document is not None:
                _, findings = parse_spec_document(list_format_models()[NEW_FILE_FORMATS[kind]], document)
            assert all(one.message and len(str(one.where)) < 50 for one in findings)
            whole = [one.help for one in findings if one.message.endswith("; expected a whole number")]
            assert f"{path[-1]}: {'9' * 18}" not in "".join(whole), "it would not be one either"


@pytest.mark.parametrize("digits", [20, 5000])
def test_a_very_long_number_is_not_cut(digits: int) -> None:
    """Without its last digits, it would be another number."""
    assert convert_value("restart", "retries", f"on-failure:1{'0' * digits}") == 1
    assert convert_value("nodes", "workers", long := f"1-1{'0' * digits}") == long


DEEP = "[" * 100_000


def test_json_inside_other_texts_is_never_too_deep() -> None:
    assert parse_containerfile(f"FROM scratch\nRUN {DEEP}\n")[1].words == ()
    assert _parse_multus_networks(DEEP) == []
    assert decode_hyperparameter(DEEP) == DEEP
    assert _parse_extra_gke_pod_networks(DEEP) == [DEEP]
    assert list(_check_topology_layers("here", {LAYERS: DEEP}, 1, look_up_kueue_line("0.19")))
