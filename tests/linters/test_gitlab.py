"""GitLab: its published schema, and gitlab-ci-local, which runs the pipeline of a new workspace."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import plain, wheels
from tests.gitops.scripts import IDENTITY, git
from tests.gitops.test_ci import made
from tests.linters import programs
from tests.workspaces import gangplan

SPEC = "specs/nlp/quickstart.yaml"
ORIGIN = "https://gitlab.example.com/acme/jobs.git"


@pytest.mark.parametrize("flags", [(), ("--image", "registry.example.com/ci:1", "--prefix", "ml/jobs")])
def test_the_published_schema_accepts_the_recipe(flags: tuple[str, ...], tmp_path: Path) -> None:
    files = made("gitlab", tmp_path, *flags)
    head, body = re.split(r"^---\n", files[".gitlab/gangplan.yml"], flags=re.MULTILINE)
    inputs = plain.load(head)["spec"]["inputs"]
    # As GitLab fills them in; the schema only knows a file of jobs.
    jobs = re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda one: str(inputs[one[1]]["default"]), body)
    texts = {"pipeline.yml": files[".gitlab-ci.yml"], "jobs.yml": jobs}
    texts["wrong.yml"] = jobs.replace("allow_failure: true", "allow_failure: []")
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        options = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")
        command = [*programs.python("check_jsonschema"), *options, str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == (1 if name == "wrong.yml" else 0), done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the programs of the jobs' image: Python with pip, and gangplan from its wheel."""
    folder = tmp_path_factory.mktemp("image")
    wheel = wheels.build(folder / "wheel")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    (site,) = folder.glob("venv/lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [folder / "venv/bin/python", "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel]
    subprocess.run(pip, check=True)
    return folder / "venv/bin"


@dataclass
class Project:
    """A GitLab repository with a workspace, on a branch that may be merged."""

    top: Path
    root: Path
    image: Path
    main: str

    def change(self, old: str, new: str, render: bool = True) -> None:
        """Commit an edit of the spec on a branch."""
        git(self.top, "checkout", "-qb", "change")
        file = self.root / SPEC
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        if render:
            gangplan("render", "-C", self.root)
        git(self.top, "add", "-A")
        git(self.top, "commit", "-qm", "Change")

    def pipeline(self, is_request: bool) -> subprocess.CompletedProcess[str]:
        """Run all jobs of a pipeline of the branch, or of its merge request."""
        given = {}
        if is_request:
            given = {
                "CI_PIPELINE_SOURCE": "merge_request_event",
                "CI_MERGE_REQUEST_IID": "7",
                "CI_MERGE_REQUEST_DIFF_BASE_SHA": self.main,
            }
        words = [word for name, value in given.items() for word in ("--variable", f"{name}={value}")]
        variables = dict(programs.environment(HOME=str(self.top.parent), **IDENTITY))
        variables["PATH"] = f"{self.image}:{variables['PATH']}"
        command = [*programs.package("gitlab-ci-local"), "--force-shell-executor", "--no-color", *words]
        programs.system("rsync")
        return subprocess.run(
            [str(programs.node()), *command[1:]],
            cwd=self.top,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )


@pytest.fixture(params=[".", "ml/jobs"], ids=["repository", "folder"])
def project(request: pytest.FixtureRequest, image: Path, tmp_path: Path) -> Project:
    """Create a workspace, at the top of its repository or below it, as its pages say."""
    top = tmp_path / "jobs"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "remote", "add", "origin", ORIGIN)
    git(top, "config", "user.name", "a")
    git(top, "config", "user.email", "a@example.com")
    root = top / request.param
    words = ("--forge", "gitlab", "--sync", "argocd", "--team", "nlp", "--cluster", "lab")
    outcome = gangplan("init", root, *words)
    assert outcome.code == 0, outcome.err
    assert gangplan("render", "-C", root).code == 0
    if request.param != ".":
        # As init says: what forges read belongs at the top of the repository.
        assert gangplan("gitops", "write", "-C", root).code == 0
    with (top / ".gitignore").open("a") as ignored:
        ignored.write(".gitlab-ci-local/\n.gangplan/\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "Begin")
    git(top, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(top, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    return Project(top, root, image, git(top, "rev-parse", "HEAD"))


def test_the_pipeline_of_a_good_branch_passes(project: Project) -> None:
    done = project.pipeline(is_request=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS  gangplan" in done.stdout
    assert "gangplan-plan" not in done.stdout
    assert json.loads((project.top / "gl-code-quality.json").read_text()) == []


def test_the_pipeline_of_a_good_merge_request_passes_with_a_plan(project: Project) -> None:
    project.change("workers: 2", "workers: 3")
    done = project.pipeline(is_request=True)
    assert done.returncode == 0, done.stdout + done.stderr
    plan = (project.top / "plan.md").read_text()
    assert "| changed | nlp/quickstart | lab |" in plan
    assert {line.split()[1] for line in done.stdout.splitlines() if line.startswith(" PASS")} == {
        "gangplan",
        "gangplan-plan",
    }


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [("memory: 8Gi", "memory: 8GB", "spec-value"), ("memory: 8Gi", "memory: 900Gi", "pool-no-fit")],
)
def test_a_bad_merge_request_fails_with_the_place(old: str, new: str, rule: str, project: Project) -> None:
    project.change(old, new, render=False)
    done = project.pipeline(is_request=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL  gangplan" in done.stdout
    path = (project.root / SPEC).relative_to(project.top).as_posix()
    report = json.loads((project.top / "gl-code-quality.json").read_text())
    (found,) = (one for one in report if one["check_name"] == rule)
    lines = (project.root / SPEC).read_text().splitlines()
    assert found["location"]["path"] == path
    assert new in lines[found["location"]["lines"]["begin"] - 1]
    # What GitLab reads of an entry (docs/ci/testing/code_quality).
    for one in report:
        assert {"description", "check_name", "fingerprint", "severity", "location"} <= one.keys()
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
    assert len({one["fingerprint"] for one in report}) == len(report)
    suites = ElementTree.parse(project.top / "gangplan.xml").getroot()
    assert [one.get("type") for one in suites.iter("failure")].count(rule) == 1
    assert path in {suite.get("name") for suite in suites.iter("testsuite")}


def test_the_pipeline_of_a_stale_tree_fails(project: Project) -> None:
    project.change("workers: 2", "workers: 3", render=False)
    done = project.pipeline(is_request=True)
    assert (done.returncode, "FAIL  gangplan" in done.stdout) == (1, True), done.stdout
    assert "rendered/" in done.stdout
