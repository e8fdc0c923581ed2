"""CODEOWNERS, read by two other programs: who owns each file of a new workspace."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.gitops.scripts import git
from tests.lab import programs as lab
from tests.linters import programs
from tests.workspaces import gangplan

PLATFORM = (
    *("overlays/", "images/", "argocd/", ".gitattributes", "gangplan.yaml", "requirements.txt"),
    *("CODEOWNERS", "Jenkinsfile", ".tekton/", ".github/", ".gitlab-ci.yml", ".gitlab/"),
)


def wanted(path: str, prefix: str) -> str:
    """Return the owner of a file."""
    here = path.removeprefix(prefix)
    if here.startswith("specs/nlp/"):
        return "@acme/nlp"
    return "@acme/platform" if here.startswith(PLATFORM) else ""


@pytest.mark.parametrize("prefix", ["", "ml/jobs/"])
@pytest.mark.parametrize("forge", ["github", "gitlab", "none"])
def test_two_parsers_find_the_same_owners(forge: str, prefix: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "git@git.example.com:acme/jobs.git")
    root = tmp_path / prefix
    words = ("--forge", forge, "--sync", "argocd", "--team", "nlp", "--cluster", "lab")
    assert gangplan("init", root, *words, *(("--keep",) if not prefix else ())).code == 0
    if prefix:
        recipe = ("gitops", forge, "-C", root, "-o", tmp_path)
        assert forge == "none" or gangplan(*recipe).code == 0
    for name in ("jenkins", "tekton"):
        assert gangplan("gitops", name, "-C", root, "-o", tmp_path).code == 0
    owners = ("gitops", "codeowners", "--organisation", "acme", "-C", root, "-o", tmp_path)
    assert gangplan(*owners).code == 0
    git(tmp_path, "add", "-A")
    paths = sorted(path for path in git(tmp_path, "ls-files").splitlines())
    told = {path: wanted(path, prefix) for path in paths}
    assert {"@acme/nlp", "@acme/platform", ""} == set(told.values())
    assert of_go(tmp_path, paths) == told
    found = of_node(tmp_path)  # it lists only what has an owner, and folders, too
    assert {path: found.get(path, "") for path in paths} == told


def of_go(top: Path, paths: list[str]) -> dict[str, str]:
    """Return the owners that github.com/hmarr/codeowners finds."""
    command = [programs.go(lab.CODEOWNERS), *paths]
    text = subprocess.run(command, cwd=top, capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {path: owner.replace("(unowned)", "") for path, owner in rows}


def of_node(top: Path) -> dict[str, str]:
    """Return the owners that npm's codeowners finds."""
    command = [str(programs.node()), programs.package("codeowners")[1], "audit"]
    text = subprocess.run(command, cwd=top, capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2 and row[1].startswith("@")}
