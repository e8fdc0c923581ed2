"""Files named on the command line, as pre-commit and CI name them: each selects what depends on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import plain, workspaces
from tests.workspaces import REPOSITORY, Outcome, gangplan, write

DOCS = (REPOSITORY / "docs/reports.md").read_text(encoding="utf-8")
OTHER_TEAM = workspaces.TEAM.replace("kind: Team", "kind: Team\nnamespace: team-vision")
NO_MATCH = workspaces.KUSTOMIZATION.replace("kind: Namespace", "kind: Namespace, name: nowhere")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Create two teams, each on its own cluster, with a spec and a mistake (a warning) in each."""
    warned = workspaces.SPEC + "slots: 4\n"
    vision = workspaces.CLUSTER.replace("  nlp: {queue: training}", "  vision: {queue: training}")
    files = {
        **workspaces.STOCK,
        "overlays/far/cluster.yaml": vision,
        "specs/nlp/filings.yaml": warned,
        "specs/vision/team.yaml": OTHER_TEAM.replace("[lab]", "[far]"),
        "specs/vision/first.yaml": warned,
    }
    return write(tmp_path / "two", files)


def judged(outcome: Outcome) -> set[str]:
    """Return the files with a finding."""
    return {shown.place.split(":")[0] for shown in outcome.findings}


BOTH = {"specs/nlp/filings.yaml", "specs/vision/first.yaml"}


@pytest.mark.parametrize(
    ("named", "wanted"),
    [
        (["specs/vision/team.yaml"], {"specs/vision/first.yaml"}),
        (["overlays/lab/cluster.yaml"], {"specs/nlp/filings.yaml"}),
        (["overlays/lab/cluster.yaml", "specs/vision/first.yaml"], BOTH),
        (["specs/nlp/team.yaml", "specs/vision/team.yaml"], BOTH),
        (["images/catalog.yaml"], BOTH),
        (["images/scans/README.md"], BOTH),
        (["policies/waivers/README.md"], BOTH),
        (["policies/ours/README.md", "specs/nlp/filings.yaml"], BOTH),
        (["schemas/README.md"], BOTH),
    ],
)
def test_validate_checks_what_depends_on_a_named_file(named: list[str], wanted: set[str], two: Path) -> None:
    write(two, {name: "" for name in named if name.endswith(".md")})
    outcome = gangplan("validate", "-C", two, *named)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert judged(outcome) == wanted


def test_a_rendered_file_is_refused_as_input(two: Path) -> None:
    workspaces.render(two)
    for name in ("rendered/lab/platform/queues.yaml", "rendered"):
        outcome = gangplan("validate", "-C", two, "specs/nlp/filings.yaml", name)
        assert outcome.code == Exit.INPUT
        assert f"{name} is what gangplan renders, not what it is rendered from" in outcome.err
        assert "gangplan render --check" in outcome.err


def test_a_patch_that_matches_nothing_is_reported_for_its_file(two: Path) -> None:
    write(two, {"overlays/far/kustomization.yaml": NO_MATCH})
    assert gangplan("validate", "-C", two, "specs/vision/team.yaml").code == Exit.CLEAN
    for more in ([], ["specs/nlp/filings.yaml"]):
        outcome = gangplan("validate", "-C", two, "overlays/far/kustomization.yaml", *more)
        assert [rule for _, rule in outcome.errors()] == ["overlay-no-match"]


def test_a_file_that_cannot_be_read_is_reported_by_its_name(two: Path) -> None:
    write(two, {"overlays/far/cluster.yaml": "kind: [", "specs/vision/team.yaml": "kind: ["})
    for name in ("overlays/far/cluster.yaml", "specs/vision/team.yaml"):
        outcome = gangplan("validate", "-C", two, name)
        assert outcome.code == Exit.INPUT
        assert judged(outcome) >= {name}, outcome.err


def test_an_unused_waiver_is_reported_for_its_file(two: Path) -> None:
    waiver = (
        "apiVersion: gangplan.dev/v1\nkind: Waiver\nrule: rdma-fallback\nscope: {team: nlp}\n"
        "reason: The switch is replaced in December.\napprover: platform@example.com\nexpires: 2026-12-31\n"
    )
    write(two, {"policies/waivers/a.yaml": waiver})
    flags = ("-C", two, "--today", "2026-11-22")
    unused = "note[waiver-unused]"
    assert unused in gangplan("validate", *flags).err
    assert unused in gangplan("validate", *flags, "policies/waivers/a.yaml").err
    assert unused not in gangplan("validate", *flags, "specs/nlp/team.yaml").err


def test_a_team_with_only_archived_runs_is_valid(two: Path) -> None:
    write(two, {"specs/nlp/filings.yaml": workspaces.SPEC + "state: archived\n"})
    assert gangplan("validate", "-C", two, "specs/nlp/filings.yaml").code == Exit.INPUT
    for name in ("specs/nlp/team.yaml", "overlays/lab/cluster.yaml"):
        assert gangplan("validate", "-C", two, name).code == Exit.CLEAN


def test_a_platform_without_a_spec_is_valid(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "new", "specs/nlp/filings.yaml")
    assert "there is no spec in specs/nlp" in gangplan("validate", "-C", root, "specs/nlp").err
    for name in ("specs/nlp/team.yaml", "overlays/lab/cluster.yaml", "images/catalog.yaml"):
        assert gangplan("validate", "-C", root, name).code == Exit.CLEAN


def test_fix_changes_only_named_files(two: Path) -> None:
    for team in ("nlp", "vision"):
        file = two / f"specs/{team}/{'filings' if team == 'nlp' else 'first'}.yaml"
        file.write_text(file.read_text().replace("32Gi", "32GiB"))
    outcome = gangplan("validate", "-C", two, "--fix", "specs/vision/team.yaml")
    assert "fixed 1 place in 1 file" in outcome.out + outcome.err
    assert "32GiB" in (two / "specs/nlp/filings.yaml").read_text()
    assert "32GiB" not in (two / "specs/vision/first.yaml").read_text()


# Where the workspace is


def test_named_files_find_their_workspace(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(two.parent)
    outcome = gangplan("validate", "two/specs/nlp/filings.yaml", "two/overlays/lab/cluster.yaml")
    assert (outcome.code, judged(outcome)) == (Exit.CLEAN, {"specs/nlp/filings.yaml"})
    assert "not a gangplan workspace" in gangplan("validate", "three/specs/a.yaml").err
    workspaces.stock(two.parent / "three")
    outcome = gangplan("validate", "two/specs/nlp/filings.yaml", "three/specs/nlp/filings.yaml")
    assert "three/specs/nlp/filings.yaml is outside the workspace two/" in outcome.err


# why


@pytest.mark.parametrize(
    "name", ["specs/nlp/team.yaml", "overlays/lab/cluster.yaml", "rendered/lab/platform/queues.yaml"]
)
def test_why_without_a_line_asks_for_one(name: str, two: Path) -> None:
    workspaces.render(two)
    outcome = gangplan("why", "-C", two, name)
    assert outcome.code == Exit.INPUT
    assert outcome.err == f"fatal: {name} is not a spec\n  help: Name a line of it: gangplan why {name}:1.\n"


def test_why_suggests_no_folder(two: Path) -> None:
    workspaces.render(two)
    outcome = gangplan("why", "-C", two, "rendered/lad.yaml:3")
    assert "there is no file rendered/lad.yaml" in outcome.err
    assert "rendered/lab" not in outcome.err


# The examples of docs/reports.md


def example(marker: str) -> str:
    """Return the block of code that has a text."""
    (found,) = [block for block in re.findall(r"(?ms)^```\w+\n(.*?)^```$", DOCS) if marker in block]
    return str(found)


def test_the_hook_of_the_docs_works_for_every_file(tmp_path: Path) -> None:
    (repository,) = plain.load(example(".pre-commit-config.yaml"))["repos"]
    (hook,) = repository["hooks"]
    assert (repository["repo"], hook["language"], hook["require_serial"]) == ("local", "system", True)
    endings = tuple(f".{kind}" for kind in hook["types_or"])
    root = workspaces.sample(tmp_path / "sample", *workspaces.SAMPLE_PARTS, "policies")
    files = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    meant = sorted(one for one in files if re.search(hook["files"], one) and one.endswith(endings))
    assert {one.split("/")[0] for one in meant} == {"specs", "overlays", "images", "policies"}
    command, *arguments = hook["entry"].split()
    assert command == "gangplan"
    for name in meant[:: max(len(meant) // 8, 1)]:
        outcome = gangplan(*arguments, "-C", root, name)
        assert outcome.code == Exit.CLEAN, outcome.err
    outcome = gangplan(*arguments, "-C", root, *meant)
    assert outcome.code == Exit.CLEAN, outcome.err


def test_the_ci_step_of_the_docs_checks_only_changes(two: Path) -> None:
    def git(*words: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *names, *words], cwd=two, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", "-A")
    git("commit", "-m", "one")
    git("update-ref", "refs/remotes/origin/main", "main")
    (two / "specs/vision/first.yaml").unlink()
    write(two, {"specs/nlp/filings.yaml": workspaces.SPEC, "specs/nlp/README.md": "", "README.md": ""})
    git("add", "-A")
    git("commit", "-m", "two")
    folder = two.parent / "bin"
    folder.mkdir()
    program = folder / "gangplan"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gangplan "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-euc", example("git diff")], cwd=two, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"checked 1 spec, 1 run, ")


def test_the_file_of_a_team_that_no_cluster_lists_is_checked(two: Path) -> None:
    """The file may be committed alone, before the platform adds the team."""
    write(two, {"specs/later/team.yaml": workspaces.TEAM})
    outcome = gangplan("validate", "-C", two, "specs/later/team.yaml")
    assert (outcome.code, outcome.errors()) == (Exit.CLEAN, []), outcome.err
    write(two, {"specs/later/team.yaml": workspaces.TEAM + "budget: many\n"})
    outcome = gangplan("validate", "-C", two, "specs/later/team.yaml")
    assert outcome.code == Exit.INPUT
    assert [place.split(":")[0] for place, _ in outcome.errors()] == ["specs/later/team.yaml"]


READERS = {
    "verify": ("verify",),
    "retire": ("retire", "--finished"),
    "repeat": ("repeat", "--finished"),
    "quota": ("cluster", "quota", "--usage"),
    "validate": ("validate", "--snapshot"),
    "measured": ("cost", "--measured"),
    "comment": ("report", "comment"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_cannot_be_read_is_explained_in_words(name: str, root: Path, tmp_path: Path) -> None:
    """Not in those of Python, such as `[Errno 21]`; the help says which file is meant."""
    command: tuple[str | Path, ...] = READERS[name]
    flags = () if name == "comment" else ("-C", root)
    folder, text = tmp_path / "folder", tmp_path / "text"
    folder.mkdir()
    text.write_bytes(b"\xff\n")
    for path, says in ((folder, "is a folder"), (text, "is not UTF-8"), (tmp_path / "none", "No such file")):
        outcome = gangplan(*command, path, *flags)
        assert outcome.code == Exit.INPUT, outcome.err
        assert says in outcome.err
        assert str(path) in outcome.err
        assert "help: " in outcome.err
        assert not re.search(r"Errno|codec", outcome.err), outcome.err
