"""`gangplan import` as a command: what it writes and when, its reports, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from gangplan.commands.import_app import KINDS as COMMANDS
from gangplan.errors import Exit
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.reference.schemas import build_editor_schema_of_format
from tests.imports.sources import MPIJOB
from tests.workspaces import STOCK, WIDE_CLUSTER, gangplan, tree, write

TARGET = "specs/nlp/migrated-heat.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "sources", {"heat.yaml": MPIJOB, "other.yaml": "kind: ConfigMap\n", "notes.txt": "no"})
    return write(tmp_path / "workspace", {**STOCK, "overlays/lab/cluster.yaml": WIDE_CLUSTER})


def test_there_is_a_command_for_each_kind() -> None:
    assert list(COMMANDS) == list(SOURCE_KINDS)


def test_only_the_spec_is_written(root: Path) -> None:
    before = tree(root)
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    after = tree(root)
    assert set(after) - set(before) == {TARGET}
    assert {name: after[name] for name in before} == before
    assert "the workspace must gain (--apply writes it):" in outcome.out
    assert outcome.out.endswith("next: add what the workspace must gain, then gangplan render\n")


def test_apply_writes_what_the_workspace_needs_so_that_the_run_renders(root: Path) -> None:
    digest = "registry.example.com/physics/heat:1.4=sha256:" + "ab" * 32
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "--apply", "--digest", digest)
    assert outcome.code == Exit.CLEAN, outcome.err
    done = gangplan("render", "-C", root)
    assert done.code == Exit.CLEAN, done.err
    again = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "-n")
    assert "must gain" not in again.out


def test_importing_again_adds_nothing(root: Path) -> None:
    """Two sources of one name keep their two specs."""
    write(root.parent, {"sources/another/heat.yaml": MPIJOB.replace('"1000"', '"2000"')})
    arguments = ("import", "mpijob", root.parent / "sources", "-C", root, "--apply")
    first = gangplan(*arguments)
    assert first.code == Exit.CLEAN, first.err
    assert "wrote 2 specs into specs/nlp/\n" in first.out
    assert "2 sources: 2 imported, 2 with questions, 0 refused, lowest match 100% (specs/nlp/" in first.out
    before = tree(root)
    second = gangplan(*arguments)
    assert second.code == Exit.CLEAN, second.err
    assert tree(root) == before
    assert "wrote 0 specs into specs/nlp/; 2 specs of an earlier import stayed\n" in second.out
    assert "is different now" not in second.err


def test_what_is_asked_about_many_sources_is_shown_at_three_of_them(root: Path) -> None:
    for index in range(5):
        write(
            root.parent,
            {f"sources/more/heat-{index}.yaml": MPIJOB.replace("name: heat", f"name: heat-{index}")},
        )
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "-n")
    about = [line for line in outcome.err.splitlines() if "how many nodes may mount the claim" in line]
    assert len(about) == 3
    assert [line.endswith("is assumed (and so at 3 other places)") for line in about] == [False, False, True]


def test_an_imported_spec_that_was_changed_stays(root: Path) -> None:
    arguments = ("import", "mpijob", root.parent / "sources", "-C", root, "--apply")
    assert gangplan(*arguments).code == Exit.CLEAN
    changed = (root / TARGET).read_text(encoding="utf-8").replace("workers: 4", "workers: 2")
    (root / TARGET).write_text(changed, encoding="utf-8")
    again = gangplan(*arguments)
    assert again.code == Exit.CLEAN
    assert f"{TARGET} was imported from here before and is different now, so it stays as it is" in again.err
    assert (root / TARGET).read_text(encoding="utf-8") == changed


def test_a_dry_run_writes_nothing(root: Path) -> None:
    before = tree(root)
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "--apply", "-n", "-q")
    assert outcome.code == Exit.CLEAN
    assert tree(root) == before
    assert f"# {TARGET}\n" in outcome.out


def test_nothing_is_written_when_one_source_is_wrong(root: Path) -> None:
    write(root.parent / "sources", {"bad.yaml": MPIJOB.replace("Launcher", "Leader")})
    before = tree(root)
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "--apply")
    assert outcome.code == Exit.INPUT
    assert tree(root) == before
    assert "nothing was written: 1 error" in outcome.err
    kept = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "--apply", "--keep-going")
    assert kept.code == Exit.INPUT
    assert TARGET in tree(root)


def test_a_dry_run_prints_specs_with_errors_so_that_they_can_be_corrected(root: Path) -> None:
    assert "replicas: 4" in MPIJOB
    write(root.parent / "sources", {"heat.yaml": MPIJOB.replace("replicas: 4", "replicas: 400")})
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root)
    assert outcome.code == Exit.INPUT
    assert "; -n prints the specs\n" in outcome.err
    shown = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "-n")
    assert shown.code == Exit.INPUT
    assert f"# {TARGET}\n" in shown.out
    assert "workers: 400" in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.yaml"], "there is no such file"),
        (["heat.yaml", "--team", "nobody"], "there is no team 'nobody'"),
        (["heat.yaml", "--image", "nothing"], "is not in images/catalog.yaml"),
        (["heat.yaml", "--digest", "heat"], "the value is missing"),
        (["heat.yaml", "--digest", "heat=1"], "is not a digest"),
        (["heat.yaml", "--format", "pdf"], "there is no format 'pdf'"),
        (["other.yaml"], "there is no MPIJob in it"),
    ],
)
def test_wrong_arguments_are_refused(
    root: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent / "sources")
    outcome = gangplan("import", "mpijob", *arguments, "-C", root)
    assert outcome.code == Exit.INPUT
    assert message in outcome.err


def test_reports_in_several_formats_agree(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    outcome = gangplan(
        "import",
        "mpijob",
        root.parent / "sources",
        "-C",
        root,
        "-n",
        "-q",
        "--format",
        "json",
        "--format",
        f"markdown={file}",
    )
    document = json.loads(outcome.out)
    jsonschema.validate(document, build_editor_schema_of_format("import"))
    (one,) = document["imported"]
    assert one["runs"]["lab"]["percent"] == 100
    assert {entry["state"] for entry in one["account"]} == {"mapped", "defaulted", "dropped"}
    assert "| MPIJob heat |" in file.read_text()
    assert "100 % the same" in file.read_text()


@pytest.mark.parametrize("flags", [(), ("-n",)], ids=["written", "dry"])
def test_json_stands_alone_on_standard_output(root: Path, flags: tuple[str, ...]) -> None:
    before = tree(root)
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "--format", "json", *flags)
    (one,) = json.loads(outcome.out)["imported"]
    assert (one["spec"], one["text"].count("kind: TrainingJob")) == (TARGET, 1)
    assert (tree(root) == before) == bool(flags)
    assert ("wrote 1 spec into specs/nlp/\n" in outcome.err) != bool(flags)


def test_the_account_lists_every_field_at_its_line(root: Path) -> None:
    outcome = gangplan("import", "mpijob", root.parent / "sources", "-C", root, "-n", "--account")
    assert "heat.yaml:8:19: mapped: spec.slotsPerWorker: 2: slots" in outcome.out
    assert "dropped from the command: --allow-run-as-root: ranks never run as root" in outcome.out
