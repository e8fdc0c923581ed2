"""What a change is compared with: revisions, repositories and names of every kind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.tools.run import _KEPT
from tests import workspaces
from tests.review.repository import ENVIRONMENT, Repository, begin
from tests.workspaces import SPEC, gangplan

SMALL = SPEC.replace("workers: 4", "workers: 2")


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Render and commit the small workspace on main, and check out a branch."""
    return begin(tmp_path / "repo")


def test_the_merge_base_is_compared_and_not_the_tip_of_the_base(repo: Repository) -> None:
    repo.write(mine=SMALL)
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.write(theirs=SMALL)
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "topic")
    assert repo.edits() == [("new", "mine")]
    outcome = repo.plan()
    assert "compared with the merge base of HEAD and main (" in outcome.out
    assert "main has moved on since" in outcome.out
    assert repo.edits(base="main..") == [("new", "mine"), ("removed", "theirs")]


@pytest.mark.parametrize("name", ["tag", "HEAD", "HEAD~1", "main@{0}", "a commit"])
def test_any_revision_can_be_the_base(repo: Repository, name: str) -> None:
    repo.git("tag", "tag")
    commit = repo.git("rev-parse", "HEAD")
    repo.write(mine=SMALL)
    repo.render()
    if name == "HEAD~1":
        repo.commit()
    assert repo.edits(base=commit if name == "a commit" else name) == [("new", "mine")]


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("nobody", "Git knows no revision 'nobody'"),
        ("", "--base names no revision"),
        ("..", "--base names no revision"),
        ("--help", "Git knows no revision '--help'"),
        ("main:specs", "Git knows no revision 'main:specs'"),
    ],
)
def test_an_unknown_revision_is_refused(repo: Repository, base: str, says: str) -> None:
    outcome = gangplan("plan", "-C", repo.root, f"--base={base}")
    assert outcome.code == Exit.INPUT
    assert says in outcome.err
    assert "help" in outcome.err


def test_a_branch_that_only_the_remote_has_is_suggested(repo: Repository, tmp_path: Path) -> None:
    """A fresh clone of a branch knows main as origin/main."""
    repo.git("checkout", "-q", "-b", "change")
    copy = tmp_path / "copy"
    repo.git("clone", "-q", repo.top, copy)
    outcome = gangplan("plan", "-C", copy / repo.workspace, "--base", "main")
    assert outcome.code == Exit.INPUT
    assert "Did you mean origin/main?" in outcome.err
    assert gangplan("plan", "-C", copy / repo.workspace, "--base", "origin/main").code == Exit.CLEAN


def test_a_workspace_without_a_repository_is_an_environment_error(tmp_path: Path) -> None:
    workspaces.stock(tmp_path / "alone")
    outcome = gangplan("plan", "-C", tmp_path / "alone", "--base", "main")
    assert outcome.code == Exit.ENVIRONMENT
    assert "fatal: this reads Git, but the workspace is in no repository\n" in outcome.err
    assert "git init" in outcome.err


def test_a_repository_of_another_owner_is_an_environment_error(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = "GIT_TEST_ASSUME_DIFFERENT_OWNER"  # of Git's own tests (setup.c)
    monkeypatch.setenv(switch, "1")
    monkeypatch.setattr("gangplan.tools.run._KEPT", (*_KEPT, switch))
    outcome = repo.plan()
    assert outcome.code == Exit.ENVIRONMENT
    assert outcome.err.startswith("fatal: this reads Git: detected dubious ownership")
    assert "safe.directory" in outcome.err


def test_a_repository_without_commits_is_refused(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "new")
    workspaces.stock(repo.root)
    repo.git("init", "-q", "-b", "main")
    assert repo.plan(base="HEAD").code == Exit.INPUT


def test_a_shallow_clone_is_refused_with_the_command_that_helps(repo: Repository, tmp_path: Path) -> None:
    for number in range(3):
        repo.write(mine=SMALL.replace("workers: 2", f"workers: {number + 2}"))
        repo.commit()
    repo.git("checkout", "-q", "main")
    repo.write(theirs=SMALL)
    repo.commit()
    clone = Repository(tmp_path / "clone")
    clone.top.mkdir()
    clone.git("init", "-q")
    clone.git(
        "fetch", "-q", "--depth=1", f"file://{repo.top}", "main:refs/heads/main", "topic:refs/heads/topic"
    )
    clone.git("checkout", "-q", "topic")
    outcome = clone.plan()
    assert outcome.code == Exit.INPUT
    assert "the clone is shallow" in outcome.err
    assert "git fetch --unshallow" in outcome.err
    assert clone.edits(base="main..") == [("new", "mine"), ("removed", "theirs")]


def test_histories_with_nothing_in_common_are_refused(repo: Repository) -> None:
    repo.git("checkout", "-q", "--orphan", "other")
    repo.commit()
    outcome = repo.plan()
    assert outcome.code == Exit.INPUT
    assert "nothing in common" in outcome.err
    assert repo.edits(base="main..") == []


def test_a_detached_head_and_a_merge_commit_can_be_compared(repo: Repository) -> None:
    repo.write(mine=SMALL)
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.write(theirs=SMALL)
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "--detach", "main")
    repo.git("merge", "-q", "-m", "merge", "topic")
    assert repo.edits() == [("new", "mine")]  # the way a forge checks out a pull request
    assert repo.edits(base="HEAD^2") == [("new", "theirs")]


def test_a_workspace_in_a_folder_can_be_compared(tmp_path: Path) -> None:
    repo = begin(tmp_path / "repo", "ml/training jobs")
    workspaces.write(repo.top, {"specs/nlp/not-ours.yaml": SPEC})
    repo.write(mine=SMALL)
    assert repo.edits() == [("new", "mine")]
    assert repo.edits(repo.root / "specs/nlp/mine.yaml") == [("new", "mine")]


def test_a_workspace_in_a_submodule_can_be_compared(tmp_path: Path) -> None:
    inner = begin(tmp_path / "inner")
    outer = Repository(tmp_path / "outer", "jobs")
    outer.top.mkdir()
    outer.git("init", "-q", "-b", "main")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", f"file://{inner.top}", "jobs")
    outer.commit()
    inside = Repository(outer.top / "jobs")
    inside.git("checkout", "-q", "-B", "topic", "origin/main")
    inside.write(mine=SMALL)
    assert inside.edits(base="origin/main") == [("new", "mine")]


def test_a_submodule_and_a_link_at_the_base_are_noted(repo: Repository, tmp_path: Path) -> None:
    commit = repo.git("rev-parse", "HEAD")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit},specs/cv")
    os.symlink("/etc/hostname", repo.root / "specs/nlp/link.yaml")
    repo.git("add", "specs/nlp/link.yaml")
    repo.git("commit", "-q", "-m", "odd")
    (repo.root / "specs/nlp/link.yaml").unlink()
    notes = repo.review(base="HEAD")["notes"]
    assert notes == ["links and submodules of the revision are not compared: specs/cv, specs/nlp/link.yaml"]


def test_everything_is_new_if_the_base_has_no_workspace(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    repo.top.mkdir()
    repo.git("init", "-q", "-b", "main")
    repo.commit("nothing")
    workspaces.stock(repo.root)
    repo.render()
    found = repo.review()
    assert [one["edit"] for one in found["runs"]] == ["new"]
    assert "everything is new" in found["notes"][0]


def test_hostile_file_names_at_the_base_are_harmless(repo: Repository) -> None:
    """Names are only data: nothing is written outside or run, and no name is taken for a flag."""
    names = ["$(touch x).yaml", "-rf.yaml", "a\nb.yaml", "\x1b[31m.yaml", ":(top).yaml", "ünïcode 😀.yaml"]
    for name in names:
        (repo.root / "specs/nlp" / name).write_text(SPEC)
    raw = os.fsencode(repo.root / "specs/nlp") + b"/\xff\xfe.yaml"
    Path(os.fsdecode(raw)).write_text(SPEC)
    repo.commit()
    for path in (repo.root / "specs/nlp").iterdir():
        if path.name not in ("filings.yaml", "team.yaml"):
            path.unlink()
    for format in ("text", "markdown", "json"):
        outcome = repo.plan("--format", format, base="HEAD")
        assert "\x1b" not in outcome.out + outcome.err
    assert not (repo.root / "x").exists()


def test_a_tree_with_parent_folders_writes_nothing_outside(repo: Repository, tmp_path: Path) -> None:
    """Git never makes such a tree, but a server may hold one."""
    blob = repo.git("hash-object", "-w", "specs/nlp/filings.yaml")

    def tree(*entries: tuple[str, str, str]) -> str:
        data = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(one) for mode, name, one in entries)
        done = subprocess.run(
            ["git", "hash-object", "-w", "-t", "tree", "--stdin", "--literally"],
            cwd=repo.top,
            input=data,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    evil = tree(("100644", "escaped.yaml", blob))
    specs = tree(("40000", "..", tree(("40000", "..", tree(("40000", "..", evil))))))
    top = tree(("40000", "specs", specs))
    commit = repo.git("commit-tree", "-m", "evil", top)
    repo.plan(base=f"{commit}..")
    assert not list(tmp_path.rglob("escaped.yaml"))
    assert not list(tmp_path.parent.glob("escaped.yaml"))


def test_a_missing_blob_of_a_partial_clone_is_an_environment_error(repo: Repository, tmp_path: Path) -> None:
    repo.write(filings=SMALL)
    repo.commit()
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    clone = Repository(tmp_path / "clone")
    subprocess.run(
        ["git", "clone", "-q", "--filter=blob:none", "-b", "topic", f"file://{repo.top}", clone.top],
        env={**os.environ, **ENVIRONMENT},
        check=True,
    )
    outcome = clone.plan(base="origin/main")
    assert outcome.code == Exit.ENVIRONMENT
    assert "help" in outcome.err


def test_the_fsmonitor_program_of_a_repository_is_not_run(repo: Repository) -> None:
    marker = repo.top / "was-run"
    repo.git("config", "core.fsmonitor", f"touch {marker}")
    repo.write(mine=SMALL)
    assert repo.edits() == [("new", "mine")]
    assert not marker.exists()


def test_a_repository_with_sha256_can_be_compared(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    workspaces.stock(repo.root)
    repo.render()
    repo.git("init", "-q", "-b", "main", "--object-format=sha256")
    repo.commit()
    assert repo.review()["objects"] == []
    repo.write(mine=SMALL)
    assert repo.edits() == [("new", "mine")]
