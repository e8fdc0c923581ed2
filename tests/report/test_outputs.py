"""`--format` on the command line: several reports at once, complete files, a clean standard output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import pytest

from gangplan.commands.reports import FORMATS
from gangplan.errors import Exit
from gangplan.reference.schemas import build_editor_schema_of_format
from tests import workspaces
from tests.report import readers
from tests.workspaces import gangplan, write

BAD = {"specs/nlp/filings.yaml": workspaces.SPEC + "slots: 4\n"}  # a warning
WRONG = {"specs/nlp/filings.yaml": workspaces.SPEC.replace("32Gi", "32GB")}


def test_several_reports_are_written_at_once(root: Path, tmp_path: Path) -> None:
    write(root, WRONG)
    out = tmp_path / "out.sarif"
    outcome = gangplan(
        "validate",
        "-C",
        root,
        "--format",
        f"sarif={out}",
        "--format",
        f"junit={tmp_path}/j.xml",
        "--format",
        "text",
    )
    assert outcome.code == Exit.INPUT
    assert [one.rule for one in outcome.findings] == ["spec-value"]
    assert outcome.out.startswith("checked 1 spec, ")
    assert [one["ruleId"] for one in readers.sarif(out.read_text())["results"]] == ["spec-value"]
    assert sum(case.is_failure for case in readers.junit((tmp_path / "j.xml").read_text())) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j.xml", "out.sarif", "workspace"]


def test_standard_output_has_only_the_report_for_programs(root: Path) -> None:
    write(root, WRONG)
    outcome = gangplan("validate", "-C", root, "--format", "sarif", "--format", "text")
    assert readers.sarif(outcome.out)["results"]
    assert "error[spec-value]" in outcome.err
    assert outcome.err.endswith(": 1 error, 1 fixable with --fix\n") or outcome.err.endswith(": 1 error\n")
    assert gangplan("validate", "-C", root, "--format", "gitlab").err == ""


def test_the_summary_is_printed_when_reports_go_to_files(root: Path, tmp_path: Path) -> None:
    outcome = gangplan("validate", "-C", root, "--format", f"json={tmp_path}/a.json")
    assert (outcome.code, outcome.out) == (Exit.CLEAN, "")
    assert outcome.err.startswith("checked 1 spec, 1 run, ")
    jsonschema.validate(
        json.loads((tmp_path / "a.json").read_text()), build_editor_schema_of_format("findings")
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_equals_standard_output(format: str, root: Path, tmp_path: Path) -> None:
    write(root, BAD)
    file = tmp_path / "report"
    file.write_text("older")
    assert gangplan("validate", "-C", root, "--format", f"{format}={file}").code == Exit.CLEAN
    shown = gangplan("validate", "-C", root, "--format", format)
    whole = shown.err + shown.out if format == "text" else shown.out
    assert file.read_text() == whole


@pytest.mark.parametrize(
    ("formats", "says"),
    [
        (["xml"], "there is no format 'xml'"),
        (["sariff=x"], "there is no format 'sariff'"),
        (["json="], "--format json= names no file"),
        (["json", "sarif"], "json and sarif cannot both go to standard output"),
        (["json=a", "sarif=a"], "two reports would go to a"),
        (["sarif=to-a", "junit=a"], "two reports would go to to-a"),
        (["sarif=a", "junit=specs/../a"], "two reports would go to a"),
        (["sarif=loop"], "cannot be written to loop: Too many levels of symbolic links"),
        (["sarif=" + "a" * 300], "a: File name too long"),
        (["json=nowhere/a"], "there is no folder nowhere"),
        (["json=."], ". is a folder"),
        (["json=specs/nlp/team.yaml"], "specs/ holds what is checked"),
        (["json=rendered-by-link/x"], "rendered/ holds what is checked"),
    ],
)
def test_a_bad_output_is_refused_before_any_work(
    formats: list[str], says: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "rendered").mkdir()
    (root / "rendered-by-link").symlink_to(root / "rendered")
    (root / "to-a").symlink_to("a")
    (root / "loop").symlink_to("loop")
    monkeypatch.chdir(root)
    monkeypatch.setattr(
        "gangplan.pipeline.render.load_workspace", lambda *given: 1 / 0
    )  # nothing may be read
    before = workspaces.tree(root)
    outcome = gangplan("validate", *(word for one in formats for word in ("--format", one)))
    assert outcome.code == Exit.INPUT
    assert outcome.err.startswith("fatal: ")
    assert says in outcome.err
    assert "\n  help: " in outcome.err
    assert workspaces.tree(root) == before


def test_a_misspelt_format_gets_a_suggestion(root: Path) -> None:
    assert "Did you mean 'sarif'?" in gangplan("validate", "-C", root, "--format", "sariff").err


def test_a_device_and_a_link_are_written_through(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    formats = ["--format", "json=/dev/null", "--format", f"gitlab={tmp_path}/link"]
    assert gangplan("validate", "-C", root, *formats).code == Exit.CLEAN
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "[]\n"
    assert not Path("/dev/null").is_file()


def test_a_file_in_shared_memory_is_replaced(root: Path) -> None:
    """It used to be appended to, as a device is: the second report made it invalid JSON."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("there is no /dev/shm to write to")
    with tempfile.TemporaryDirectory(dir=memory) as name:
        report = Path(name) / "report.json"
        for _ in range(2):
            assert gangplan("validate", "-C", root, "--format", f"gitlab={report}").code == Exit.CLEAN
            assert report.read_text() == "[]\n"


def test_an_open_stream_is_appended_to(root: Path, tmp_path: Path) -> None:
    """`--format sarif=/dev/stdout >> log` keeps what the log already has."""
    log = tmp_path / "log"
    log.write_text("earlier\n")
    with log.open("ab") as file:
        code = subprocess.run(
            [sys.executable, "-m", "gangplan", "validate", "-C", str(root), "--format", "gitlab=/dev/stdout"],
            stdout=file,
            check=False,
        ).returncode
    assert (code, log.read_text()) == (Exit.CLEAN, "earlier\n[]\n")


def test_a_full_device_is_reported_by_its_whole_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = gangplan("validate", "-C", root, "--format", "sarif=/dev/full")
    assert outcome.code == Exit.ENVIRONMENT
    assert "fatal: the report /dev/full was not written: No space left on device\n  help: " in outcome.err
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/dev/full")
    outcome = gangplan("validate", "-C", root, "--format", "github")
    assert outcome.code == Exit.ENVIRONMENT
    assert "summary /dev/full was not written: No space left on device\n  help: " in outcome.err


def test_a_full_disk_keeps_the_old_file(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")

    replace = os.replace

    def refused(source: Path, target: Path) -> None:
        if Path(target) == file:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("gangplan.commands.reports.os.replace", refused)
    outcome = gangplan("validate", "-C", root, "--format", f"json={file}")
    assert outcome.code == Exit.ENVIRONMENT
    assert f"the report {file} was not written: No space left on device\n  help: " in outcome.err
    assert (file.read_text(), sorted(os.listdir(tmp_path))) == ("old", ["a.json", "workspace"])


# Paths, summaries


def test_paths_start_at_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    root = write(workspaces.stock(tmp_path / "ml/jobs"), WRONG)
    run = readers.sarif(gangplan("validate", "-C", root, "--format", "sarif").out)
    assert [readers.sarif_file(one) for one in run["results"]] == ["ml/jobs/specs/nlp/filings.yaml"]
    document = json.loads(gangplan("validate", "-C", root, "--format", "json").out)
    assert (document["folder"], document["findings"][0]["file"]) == ("ml/jobs", "specs/nlp/filings.yaml")


def test_the_summary_of_a_step_is_appended_to(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, WRONG)
    file = tmp_path / "summary.md"
    file.write_text("# Earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    outcome = gangplan("validate", "-C", root, "--format", "github")
    (shown,) = readers.annotations(outcome.out)
    assert (shown.name, shown.properties["file"], shown.properties["line"]) == (
        "error",
        "specs/nlp/filings.yaml",
        "8",
    )
    assert file.read_text().startswith("# Earlier\n<!-- gangplan -->\n### gangplan: not yet\n")
    gangplan("validate", "-C", root, "--format", "json")
    assert file.read_text().count("###") == 1


@pytest.mark.parametrize("value", ["auto", "required"])
def test_the_change_that_is_offered_causes_no_other_finding(value: str, root: Path) -> None:
    spec = workspaces.SPEC + f"network: {{rdma: {value}}}\n"
    write(root, {"specs/nlp/filings.yaml": spec, "specs/nlp/other.yaml": spec})
    flags = ("validate", "-C", root, "--format", "json")
    document = json.loads(gangplan(*flags).out)
    assert len(document["findings"]) == 2
    (change,) = document["changes"]
    (offered,) = re.findall(r'rdma: ("?\w+"?)', change["help"])
    for place in change["places"]:
        file = root / place["file"]
        file.write_text(file.read_text().replace(f"rdma: {value}", f"rdma: {offered}"))
    assert json.loads(gangplan(*flags).out)["findings"] == []


def test_a_failure_by_a_flag_is_explained(root: Path) -> None:
    write(root, BAD)
    outcome = gangplan("validate", "-C", root, "--fail-on", "warning")
    assert outcome.code == Exit.FINDINGS
    assert outcome.out.endswith(": 1 warning; failed by --fail-on warning\n")
    assert gangplan("validate", "-C", root).out.endswith(": 1 warning\n")


# Colour


def test_flag_and_environment_decide_on_colour(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, WRONG)

    def is_coloured(*flags: str) -> bool:
        return "\033[" in gangplan("validate", "-C", root, *flags).err

    assert not is_coloured()
    assert is_coloured("--color", "always")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert is_coloured()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_coloured()
    assert is_coloured("--color", "always")
    assert gangplan("validate", "-C", root, "--color", "sometimes").code == Exit.INPUT


def test_an_excerpt_never_shows_a_secret(root: Path) -> None:
    token = "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTy" + "Ui"
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + f"env: {{HF_TOKEN: {token}}}\nslots: 4\n"})
    outcome = gangplan("validate", "-C", root, "--color", "always")
    assert "secret-literal" in outcome.err
    assert token not in outcome.err
    for format in FORMATS:
        assert token not in gangplan("validate", "-C", root, "--format", format).out


# Nothing checked


def test_checking_nothing_is_an_error(root: Path) -> None:
    write(root, {"specs/nlp/other.yaml": workspaces.SPEC + "clusters: [lab]\n"})
    write(
        root,
        {"overlays/far/cluster.yaml": workspaces.CLUSTER.replace("teams:\n  nlp: {queue: training}\n", "")},
    )
    commands = {
        "checked": ["validate"],
        "planned": ["plan"],
        "compared": ["render", "--check"],
        "explained": ["why"],
    }
    for done, command in commands.items():
        outcome = gangplan(*command, "-C", root, "--cluster", "far", "specs/nlp/other.yaml")
        assert (outcome.code, outcome.out) == (Exit.INPUT, "")
        assert f"nothing was {done}: the spec does not run on cluster far" in outcome.err


def test_a_run_that_left_its_cluster_is_compared(root: Path) -> None:
    write(root, {"overlays/two/cluster.yaml": workspaces.CLUSTER})
    for cluster in ("lab", "two"):
        write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + f"clusters: [{cluster}]\n"})
        if cluster == "lab":
            assert gangplan("render", "-C", root).code == Exit.CLEAN
    outcome = gangplan("render", "--check", "-C", root, "--cluster", "lab", root / "specs/nlp/filings.yaml")
    assert outcome.code == Exit.FINDINGS, outcome.err


@pytest.mark.parametrize("format", ["text", "json", "sarif", "gitlab"])
def test_checking_only_archived_specs_is_an_error(format: str, root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "state: archived\n"})
    outcome = gangplan("validate", "-C", root, "--format", format, root / "specs/nlp/filings.yaml")
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert gangplan("validate", "-C", root, "--format", format).code == Exit.CLEAN
    assert "nothing was checked that would run: the spec is stopped or archived" in outcome.err
    write(root, {"specs/nlp/active.yaml": workspaces.SPEC})
    assert gangplan("validate", "-C", root, "--format", format).code == Exit.CLEAN
    assert gangplan("render", "-C", root).code == Exit.CLEAN


# render and plan


def test_render_reports_what_it_did(root: Path) -> None:
    write(root, BAD)
    outcome = gangplan("render", "-C", root, "--format", "json")
    document = json.loads(outcome.out)
    jsonschema.validate(document, build_editor_schema_of_format("findings"))
    assert document["command"] == "render"
    assert [one["rule"] for one in document["findings"]] == ["slots-not-gpus"]
    assert sorted(document["files"]["new"]) == sorted(workspaces.rendered(root))
    assert outcome.err.startswith("1 run of 1 spec")
    again = json.loads(gangplan("render", "-C", root, "--check", "--format", "json").out)
    assert sorted(again["files"]["same"]) == sorted(workspaces.rendered(root))
    both = gangplan("render", "-C", root, "-o", "-", "--format", "json")
    assert (both.code, both.out) == (Exit.INPUT, "")


def test_plan_has_findings_in_its_document(root: Path) -> None:
    write(root, BAD)
    outcome = gangplan("plan", "-C", root, "--format", "json")
    document = json.loads(outcome.out)
    assert ([one["rule"] for one in document["findings"]], outcome.err) == (["slots-not-gpus"], "")
    checked = json.loads(gangplan("validate", "-C", root, "--format", "json").out)
    assert document["findings"] == checked["findings"]
    assert "warning[slots-not-gpus]" in gangplan("plan", "-C", root).err


def test_the_published_schema_is_valid() -> None:
    outcome = gangplan("schema", "print", "findings")
    jsonschema.Draft202012Validator.check_schema(json.loads(outcome.out))
