"""Merges of real branches: conflicts are found and explained, and `gangplan render` resolves rendered/."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.review.repository import Repository, begin
from tests.workspaces import CLUSTER, SPEC, gangplan

SMALL = SPEC.replace("workers: 4", "workers: 2")
TENANT = "rendered/lab/tenants/nlp/tenant.yaml"
PLATFORM = "rendered/lab/platform/queues.yaml"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Render and commit the small workspace on main, and check out a branch."""
    return begin(tmp_path / "repo")


def both(repo: Repository, ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Write, render and commit files on two branches: other and topic, which stays checked out."""
    for branch, files in (("other", theirs), ("topic", ours)):
        repo.git("checkout", "-q", "-B", branch, "main")
        workspaces.write(repo.root, files)
        repo.render()
        repo.commit(branch)


def found(repo: Repository, rule: str) -> list[tuple[str, str]]:
    """Return the places and messages of a rule in the plan."""
    return [(one.place, one.message) for one in repo.plan().findings if one.rule == rule]


def test_conflict_markers_in_a_spec_are_an_input_error(repo: Repository) -> None:
    both(
        repo,
        {"specs/nlp/filings.yaml": SMALL},
        {"specs/nlp/filings.yaml": SPEC.replace("workers: 4", "workers: 3")},
    )
    repo.git("merge", "-q", "other", fails=True)
    outcome = repo.plan()
    of_spec = [one for one in outcome.findings if one.place.startswith("specs/")]
    assert [(one.place, one.rule) for one in of_spec] == [("specs/nlp/filings.yaml:5:1", "yaml-syntax")]
    assert "unresolved merge conflict" in of_spec[0].message
    assert outcome.code == Exit.INPUT


def test_conflicts_in_rendered_are_found_once_and_resolved_by_render(repo: Repository) -> None:
    """Both branches give the team another queue: one field of the cluster, two renders."""
    ours = CLUSTER.replace("{queue: training}", "{queue: ours}")
    theirs = CLUSTER.replace("{queue: training}", "{queue: theirs}")
    both(repo, {"overlays/lab/cluster.yaml": ours}, {"overlays/lab/cluster.yaml": theirs})
    repo.git("merge", "-q", "other", fails=True)
    conflicted = set(repo.git("diff", "--name-only", "--diff-filter=U").splitlines())
    assert {"overlays/lab/cluster.yaml", TENANT} <= conflicted
    workspaces.write(repo.root, {"overlays/lab/cluster.yaml": ours})
    places = [place for place, _ in found(repo, "merge-conflict")]
    files = [place.split(":")[0] for place in places]
    assert len(files) == len(set(files))
    assert {one for one in conflicted if one.startswith("rendered/")} <= set(files)
    line = next(
        number
        for number, text in enumerate((repo.root / TENANT).read_text().splitlines(), 1)
        if "<<<" in text
    )
    assert f"{TENANT}:{line}:1" in places
    for command in ("validate", "render --check"):
        name, *flags = command.split()
        told = [
            one for one in gangplan(name, "-C", repo.root, *flags).findings if one.rule == "merge-conflict"
        ]
        assert f"{TENANT}:{line}:1" in [one.place for one in told], command
    repo.render()
    repo.git("add", "-A")
    assert found(repo, "merge-conflict") == []
    assert gangplan("render", "-C", repo.root, "--check").code == Exit.CLEAN


def test_a_conflict_in_the_first_line_is_resolved_too(repo: Repository) -> None:
    """The mark of gangplan is no longer in the first line."""
    (path,) = (repo.root / "rendered/lab/runs/nlp").glob("filings-*.yaml")
    text = path.read_text()
    path.write_text(
        f"<<<<<<< HEAD\n{text}=======\n{text.replace('filings.yaml', 'other.yaml', 1)}>>>>>>> other\n"
    )
    name = path.relative_to(repo.root).as_posix()
    assert [place for place, _ in found(repo, "merge-conflict")] == [f"{name}:1:1"]
    repo.render()
    assert path.read_text() == text


def test_a_spec_renamed_on_both_branches_is_reported(repo: Repository) -> None:
    """Git stops with three names of the file in the index; once both are committed, one job is two jobs."""
    for branch, name in (("other", "theirs"), ("topic", "ours")):
        repo.git("checkout", "-q", "-B", branch, "main")
        repo.git("mv", "specs/nlp/filings.yaml", f"specs/nlp/{name}.yaml")
        repo.render()
        repo.commit(branch)
    repo.git("merge", "-q", "other", fails=True)
    told = dict(found(repo, "merge-conflict"))
    assert "another name" in told["specs/nlp/filings.yaml:1:1"]
    assert "this branch gave" in told["specs/nlp/ours.yaml:1:1"]
    assert "the other branch gave" in told["specs/nlp/theirs.yaml:1:1"]
    repo.commit("both")
    repo.render()
    assert found(repo, "merge-conflict") == []
    ((place, words),) = found(repo, "spec-split")
    assert place == "specs/nlp/theirs.yaml:1:1"
    assert "specs/nlp/filings.yaml became specs/nlp/ours.yaml and specs/nlp/theirs.yaml" in words


def test_a_spec_deleted_here_and_changed_there_is_reported(repo: Repository) -> None:
    repo.git("checkout", "-q", "-B", "other", "main")
    repo.write(filings=SMALL)
    repo.render()
    repo.commit()
    repo.git("checkout", "-q", "-B", "topic", "main")
    repo.write(
        second="apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: pytorch\ncommand: [torchrun, x.py]\n"
    )
    repo.git("rm", "-q", "specs/nlp/filings.yaml")
    repo.render()
    repo.commit()
    repo.git("merge", "-q", "other", fails=True)
    told = dict(found(repo, "merge-conflict"))
    assert "this branch deleted the file" in told["specs/nlp/filings.yaml:1:1"]


def test_a_clean_merge_of_two_renders_is_reported_as_stale(repo: Repository) -> None:
    """Each branch changes another line of a rendered file; together they are not the render of anything."""
    both(
        repo,
        {
            "overlays/lab/cluster.yaml": CLUSTER.replace(
                "nlp: {queue: training}", "nlp: {queue: training, weight: 2}"
            )
        },
        {"specs/nlp/second.yaml": SMALL},
    )
    repo.git("merge", "-q", "-m", "merge", "other")
    assert found(repo, "rendered-stale") == []  # this one is right
    path = repo.root / TENANT
    first, second, rest = path.read_text().split("\n", 2)
    for branch, text in (("a", f"{first}\n{second}\n# a\n{rest}"), ("b", f"{first}\n{second}\n{rest}# b\n")):
        repo.git("checkout", "-q", "-B", branch, "topic")
        path.write_text(text)
        repo.commit(branch)
    repo.git("merge", "-q", "-m", "merge", "a")
    ((place, words),) = found(repo, "rendered-stale")
    assert place == f"{TENANT}:1:1"
    assert "a merge joined lines of two renders" in words
    assert gangplan("render", "-C", repo.root, "--check").code == Exit.FINDINGS
    repo.render()
    assert found(repo, "rendered-stale") == []


def test_a_merge_without_a_render_is_reported_as_stale(repo: Repository) -> None:
    """One branch adds a spec and renders it with the catalog from before the other branch."""
    catalog = workspaces.CATALOG.replace("332211ffee", "332211ffef")
    both(repo, {"specs/nlp/second.yaml": SMALL}, {"images/catalog.yaml": catalog})
    repo.git("merge", "-q", "-m", "merge", "other")
    ((_, words),) = found(repo, "rendered-stale")
    assert "1 missing" in words
    assert "1 no longer rendered" in words
    assert "not rendered again after the merge" in words


@pytest.mark.parametrize("format", ["text", "json", "sarif", "junit", "github", "gitlab", "markdown"])
def test_a_stale_tree_is_in_every_report(repo: Repository, format: str) -> None:
    repo.write(second=SMALL)
    for command in ("validate", "render --check"):
        name, *flags = command.split()
        outcome = gangplan(name, "-C", repo.root, *flags, "--format", format)
        assert "rendered-stale" in outcome.out + outcome.err, command
    if format in ("text", "json", "markdown"):
        for name in ("plan", "diff"):
            outcome = gangplan(name, "-C", repo.root, "--base", "main", "--format", format)
            assert "stale" in outcome.out + outcome.err, name


def test_a_workspace_that_commits_no_tree_is_never_stale(tmp_path: Path) -> None:
    repo = begin(tmp_path / "repo", is_rendered=False)
    repo.write(second=SMALL)
    assert found(repo, "rendered-stale") == []
    assert repo.edits() == [("new", "second")]
    changed = {one["kind"] for one in repo.review()["objects"]}
    assert "TrainJob" in changed


def test_gitattributes_of_a_new_workspace_stop_git_from_joining_lines(repo: Repository) -> None:
    """Both branches change other lines of one rendered file: Git keeps ours and stops; render resolves it."""
    gangplan("init", repo.top.parent / "new", "--team", "nlp", "--cluster", "lab")
    attributes = (repo.top.parent / "new/.gitattributes").read_text()
    assert "rendered/** -merge" in attributes
    repo.git("checkout", "-q", "main")
    (repo.root / ".gitattributes").write_text(attributes)
    repo.commit("attributes")
    path = repo.root / TENANT
    lines = path.read_text().split("\n")
    for branch, text in (("a", [*lines[:2], "# a", *lines[2:]]), ("b", [*lines[:-1], "# b", ""])):
        repo.git("checkout", "-q", "-B", branch, "main")
        path.write_text("\n".join(text))
        repo.commit(branch)
    ours = path.read_text()
    repo.git("merge", "-q", "a", fails=True)
    assert path.read_text() == ours
    assert "both branches changed" in dict(found(repo, "merge-conflict"))[f"{TENANT}:1:1"]
    repo.render()
    repo.git("add", "rendered")
    repo.git("commit", "-q", "-m", "merge")
    assert repo.plan(base="HEAD^1").findings == []
