"""pre-commit itself runs our hooks: it installs gangplan from a clone of this checkout, as it does for users.

Each case is one commit: its files, and the result of each hook.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests import wheels
from tests.gate import modules
from tests.gitops import scripts
from tests.linters import programs
from tests.workspaces import REPOSITORY, gangplan, write

CONFIG = ".pre-commit-config.yaml"
FOLDER = "infra/training"
SPEC, TEAM = "specs/nlp/quickstart.yaml", "specs/nlp/team.yaml"
# Hooks by their first letters: v(alidate), r(ender), g(itops).
NAMES = {"specs are valid": "v", "rendered/ is fresh": "r", "CI and sync manifests are fresh": "g"}
LINE = re.compile(r"^(.+?)\.{3,}(?:\(no files to check\))?(Passed|Failed|Skipped)$", re.MULTILINE)


def _job(root: Path) -> None:
    text = (root / SPEC).read_text()
    (root / SPEC).write_text(text.replace("workers: 2", "workers: 1"))
    assert (root / SPEC).read_text() != text
    assert gangplan("render", "-C", root).code == 0


def _team(root: Path) -> None:
    flags = ("--cluster", "lab", "--contact", "a@example.com", "--cost-centre", "1")
    assert gangplan("new", "team", "vision", *flags, "-C", root).code == 0
    path = root / "overlays/lab/cluster.yaml"
    text = path.read_text()
    path.write_text(text.replace("  nlp: {queue", "  vision: {queue: training}\n  nlp: {queue"))
    assert path.read_text() != text


# What a person does: a changed job, rendered again; a new team that its cluster admits.
STEPS: Mapping[str, Callable[[Path], None]] = {"a job": _job, "a team": _team}


class Commits:
    """A repository with a rendered workspace and all recipes, and pre-commit with a folder of its own."""

    def __init__(self, top: Path, folder: str, home: Path, config: str | None = None) -> None:
        self.top, self.root, self.home, self.prefix = top, top / folder, home, f"{folder}/" if folder else ""
        scripts.git(top, "init", "-q", "-b", "main")
        write(top, {"web/schemas/api.yaml": "a: 1\n", ".github/workflows/web.yaml": "on: push\n"})
        flags = ("--team", "nlp", "--cluster", "lab", "--forge", "none", "--sync", "none", "-q")
        assert gangplan("init", self.root, *flags).code == 0
        assert gangplan("render", "-C", self.root).code == 0
        url = ("--repo", "https://git.example.com/ml/jobs.git")
        made = {"argocd": url, "flux": url, "github": (), "gitlab": (), "tekton": ("--wait", "flux")}
        (self.root / "CODEOWNERS").unlink(missing_ok=True)
        for name, more in {**made, "jenkins": (), "codeowners": ()}.items():
            out = self.root / name if name in ("argocd", "flux") else top
            outcome = gangplan("gitops", name, *more, "-C", self.root, "-o", out)
            assert outcome.code == 0, outcome.err
        (top / CONFIG).write_text(config or (self.root / CONFIG).read_text())
        scripts.git(top, "add", "-A")
        scripts.git(top, "commit", "-qm", "Begin")

    def pre_commit(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of pre-commit; packages come from kept wheels, if there are any."""
        kept = modules.load("environment").wheels("all", REPOSITORY)
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(kept)} if kept.is_dir() else {}
        path = os.pathsep.join([str(self.home / "tools"), os.environ["PATH"]])
        more = {"PRE_COMMIT_HOME": str(self.home / "pre-commit"), "PATH": path, "PRE_COMMIT_COLOR": "never"}
        environment = {**os.environ, **scripts.IDENTITY, **offline, **more}
        command = [*programs.python("pre_commit"), *words]
        done = subprocess.run(
            command, cwd=self.top, env=environment, capture_output=True, text=True, check=False
        )
        if words[0] == "install-hooks" and done.returncode and not offline:
            pytest.skip(f"pre-commit cannot install gangplan here: {done.stdout[-500:]}")
        return done

    def outcome(self, files: Mapping[str, str]) -> tuple[dict[str, str], str]:
        """Return the result of each hook when these texts are added to files, and all that was printed."""
        for path, text in files.items():
            if path in STEPS:
                STEPS[path](self.root)
                continue
            target = self.top / path.replace("WS/", self.prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((target.read_text() if target.exists() else "") + text)
        scripts.git(self.top, "add", "-A")
        done = self.pre_commit("run")
        scripts.git(self.top, "reset", "-q", "--hard")
        return {NAMES[name]: how for name, how in LINE.findall(done.stdout)}, done.stdout + done.stderr


def hooks(source: Path, block: str) -> str:
    """Return a block of docs/gitops.md, with the address and commit of a source."""
    rev = scripts.git(source, "rev-parse", "HEAD")
    return block.replace("https://git.example.com/ml/gangplan", str(source)).replace("v0.1.0", rev)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy this checkout into a repository that pre-commit clones."""
    folder = tmp_path_factory.mktemp("source") / "gangplan"
    wheels.copied(folder)
    scripts.git(folder, "init", "-q", "-b", "main")
    scripts.git(folder, "add", "-A")
    scripts.git(folder, "commit", "-qm", "All")
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the folder that both repositories share, so that gangplan is installed once."""
    folder = tmp_path_factory.mktemp("home")
    scripts.program(folder / "tools")
    return folder


@pytest.fixture(scope="module", params=["top", FOLDER])
def commits(
    request: pytest.FixtureRequest, source: Path, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Commits:
    """A workspace at the top of its repository or in a folder, with the hooks as docs/gitops.md has them."""
    page = (REPOSITORY / "docs/gitops.md").read_text().split("\n## pre-commit\n")[1]
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    is_top = request.param == "top"
    found = Commits(
        tmp_path_factory.mktemp("jobs"), "" if is_top else FOLDER, home, hooks(source, blocks[not is_top])
    )
    done = found.pre_commit("install-hooks")
    assert done.returncode == 0, done.stdout
    return found


# By a commit's contents: its files, the hooks that pass and fail (others must not start), and the output.
CASES: dict[str, tuple[dict[str, str], str, str, str]] = {
    "a job, rendered again": ({"a job": ""}, "vr", "", ""),
    "a job, not rendered": ({f"WS/{SPEC}": "retries: 1\n"}, "v", "r", "stale"),
    "a job with an error": ({f"WS/{SPEC}": "workers: 1\n"}, "", "vr", "workers"),
    "a comment in a job": ({f"WS/{SPEC}": "# more\n"}, "vr", "", ""),
    "a comment in a team": ({f"WS/{TEAM}": "# more\n"}, "vrg", "", ""),
    "another team": ({"a team": ""}, "v", "rg", "CODEOWNERS is stale"),
    "a hand in rendered/": ({"WS/rendered/lab/tenants/nlp/tenant.yaml": "# mine\n"}, "", "r", "stale"),
    "a script next to a spec": ({"WS/specs/nlp/files/train.py": "pass\n"}, "r", "", ""),
    "schemas for editors": ({"WS/.vscode/schemas/spec.json": "\n", "WS/.vscode/a.json": "\n"}, "", "", ""),
    "schemas of others": ({"web/schemas/api.yaml": "b: 1\n", "web/specs/a.yaml": "b: 1\n"}, "", "", ""),
    "a page": ({"WS/README.md": "more\n"}, "", "", ""),
    **{
        f"a hand in {path}": ({path: "# more\n"}, "", "g", f"{path.replace('WS/', '')} is stale")
        for path in (
            *(".github/workflows/gangplan.yaml", ".github/actions/gangplan/action.yaml", ".gitlab-ci.yml"),
            *(".gitlab/gangplan.yml", ".tekton/gangplan-push.yaml", "tekton/gangplan-wait-rights.yaml"),
            *("Jenkinsfile", "CODEOWNERS", "WS/argocd/lab.yaml", "WS/argocd/settings/argocd-cm.yaml"),
            "WS/flux/lab.yaml",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_hooks_start_only_for_their_files(case: str, commits: Commits) -> None:
    files, passed, failed, said = CASES[case]
    wanted = {
        one: "Passed" if one in passed else "Failed" if one in failed else "Skipped" for one in NAMES.values()
    }
    if (
        commits.prefix
        and "g" not in failed
        and any(path.startswith("WS/") or path in STEPS for path in files)
    ):
        wanted["g"] = "Passed"  # its pattern covers the whole folder, which only costs a second
    found, text = commits.outcome(files)
    assert found == wanted, text
    assert said in text


@pytest.mark.parametrize("commits", [FOLDER], indirect=True)
def test_hooks_without_the_folders_name_are_skipped(source: Path, commits: Commits) -> None:
    """As the page says, the patterns are those of a workspace at the top."""
    names = "[{id: gangplan-validate}, {id: gangplan-render}, {id: gangplan-gitops}]"
    rev = scripts.git(source, "rev-parse", "HEAD")
    (commits.top / CONFIG).write_text(f"repos: [{{repo: {source}, rev: {rev}, hooks: {names}}}]\n")
    found, text = commits.outcome({f"WS/{SPEC}": "# more\n"})
    assert set(found.values()) == {"Skipped"}, text


@pytest.mark.parametrize("folder", ["", FOLDER])
def test_the_hooks_of_a_new_workspace_pass_and_fail_as_they_should(
    folder: str, home: Path, tmp_path: Path
) -> None:
    """`gangplan init` writes hooks for the installed gangplan."""
    made = Commits(tmp_path, folder, home)
    for files, how in (({"a job": ""}, "Passed"), ({f"WS/{SPEC}": "workers: 1\n"}, "Failed")):
        found, text = made.outcome(files)
        assert found == dict.fromkeys("vr", how), text
    for files in ({"WS/.vscode/schemas/spec.json": "\n"}, {"web/schemas/api.yaml": "b: 1\n"}):
        found, text = made.outcome(files)
        assert found == dict.fromkeys("vr", "Skipped"), text
