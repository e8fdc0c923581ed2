"""GitHub: actionlint with ShellCheck, the published schemas, GitHub's own parser and evaluator."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.gitops.scripts import git
from tests.gitops.test_ci import ACTION, WORKFLOW, made
from tests.lab import programs as lab
from tests.linters import programs
from tests.workspaces import REPOSITORY

Object = dict[str, Any]
VARIANTS = {
    "plain": (),
    "a folder of a bigger repository": ("--prefix", "ml/jobs", "--branch", "release/1.0"),
    "schedules": ("--schedules", "*/15 * * * *"),
    "other pins": ("--python", "3.11", "--pin", f"actions/cache={'1' * 40}"),
}


@pytest.fixture(scope="module", params=VARIANTS)
def repository(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of one variant."""
    folder = tmp_path_factory.mktemp("github")
    made("github", folder, *VARIANTS[request.param])
    git(folder / "out", "init", "-q")
    return folder / "out"


def actionlint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run actionlint on a repository."""
    shell = programs.system("shellcheck")
    command = [programs.go(lab.ACTIONLINT), "-no-color", "-shellcheck", shell]
    return subprocess.run(
        command, cwd=root, env=programs.environment(), capture_output=True, text=True, check=False
    )


def asked(**questions: Any) -> Object:
    """Return the answers of GitHub's own code."""
    text = json.dumps({"folder": str(programs.NPM.home), **questions})
    command = [programs.node(), programs.HERE / "evaluate.mjs"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    answers: Object = json.loads(done.stdout)
    return answers


def test_actionlint_finds_nothing_in_the_recipe(repository: Path) -> None:
    done = actionlint(repository)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("          task: plan", "          tsk: plan", 'input "tsk" is not defined in action "gangplan"'),
        ("github.base_ref", "github.base_reff", 'property "base_reff" is not defined'),
        ("permissions: {}", "permissions: {contents: wrote}", '"wrote" is invalid'),
    ],
)
def test_actionlint_finds_mistakes_in_the_recipe(old: str, new: str, said: str, tmp_path: Path) -> None:
    made("github", tmp_path)
    git(tmp_path / "out", "init", "-q")
    file = tmp_path / "out" / WORKFLOW
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert said in actionlint(tmp_path / "out").stdout


def test_the_published_schemas_accept_the_recipe(repository: Path) -> None:
    for schema, file in (
        ("vendor.github-workflows", WORKFLOW),
        ("custom.github-workflows-require-timeout", WORKFLOW),
        ("vendor.github-actions", ACTION),
    ):
        command = [*programs.python("check_jsonschema"), "--builtin-schema", schema, str(repository / file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_shellcheck_finds_nothing_in_the_steps_of_the_action(repository: Path) -> None:
    """actionlint only reads those of workflows. GitHub starts `bash --noprofile --norc -eo pipefail`."""
    for step in plain.load((repository / ACTION).read_text())["runs"]["steps"]:
        if "run" in step:
            command = [programs.system("shellcheck"), "--shell=bash", "--severity=style", "-"]
            text = "set -eo pipefail\n" + step["run"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
            assert done.stdout == "", step["name"]


def test_githubs_parser_accepts_the_workflow(repository: Path) -> None:
    text = (repository / WORKFLOW).read_text()
    files = [{"name": "a", "content": text}, {"name": "b", "content": text.replace("runs-on", "runs-in")}]
    good, bad = asked(workflows=files)["workflows"]
    assert good == []
    assert any("Unexpected value 'runs-in'" in one for one in bad)


# Which steps run for which event: the conditions of all steps, as GitHub evaluates them.

OWN, FORK = "acme/jobs", "stranger/jobs"
EVENTS = {
    "pull request": ("pull_request", "octocat", OWN),
    "pull request of a fork": ("pull_request", "stranger", FORK),
    "pull request of a fork that was deleted": ("pull_request", "stranger", ""),
    "pull request of Dependabot": ("pull_request", "dependabot[bot]", OWN),
    "push": ("push", "octocat", None),
    "merge queue": ("merge_group", "octocat", None),
    "schedule": ("schedule", "octocat", None),
}


def contexts(event: str, task: str) -> Object:
    """Return what expressions of the action read, for an event."""
    name, actor, head = EVENTS[event]
    payload: Object = {}
    if head is not None:
        payload = {"pull_request": {"head": {"repo": {"full_name": head} if head else None}}}
    return {
        "github": {
            "event_name": name,
            "actor": actor,
            "repository": OWN,
            "event": payload,
            "base_ref": "main" if head is not None else "",
            "ref": "refs/pull/7/merge",
            "workflow": "gangplan",
        },
        "inputs": {"task": task, "cache-key": "", "workspace": "."},
        "vars": {},
    }


def steps_that_run(action: Object, event: str, task: str, failed: bool = False) -> set[str]:
    """Return the steps with a condition that run; `failed` says whether an earlier step failed."""
    steps = [step for step in action["runs"]["steps"] if "if" in step]
    values = contexts(event, task)
    questions = [
        {"text": step["if"], "contexts": values, "cancelled": False, "failed": failed} for step in steps
    ]
    answers = asked(expressions=questions)["answers"]
    return {step["name"] for step, answer in zip(steps, answers, strict=True) if answer == "true"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Object, Object]:
    """Return the workflow and the action."""
    texts = made("github", tmp_path_factory.mktemp("files"))
    return plain.load(texts[WORKFLOW]), plain.load(texts[ACTION])


def jobs_that_run(workflow: Object, event: str, failed: bool = False, **variables: str) -> set[str]:
    """Return the jobs that run for an event; `failed` says whether earlier jobs failed."""
    jobs = {name: job["if"] for name, job in workflow["jobs"].items() if "if" in job}
    values = contexts(event, "") | {"vars": variables}
    questions = [
        {"text": text, "contexts": values, "cancelled": False, "failed": failed} for text in jobs.values()
    ]
    answers = asked(expressions=questions)["answers"]
    return {name for name, answer in zip(jobs, answers, strict=True) if answer == "true"}


CHECKED = {
    *("Validate", "rendered/ is fresh", "CI and sync manifests are fresh"),
    "Keep the findings for the alerts",
}


@pytest.mark.parametrize("event", EVENTS)
def test_jobs_that_write_run_only_where_they_may(event: str, files: tuple[Object, Object]) -> None:
    assert steps_that_run(files[1], event, "check") == CHECKED
    assert steps_that_run(files[1], event, "plan") == {"Plan", "Keep the plan for the comment"}
    is_ours = event in ("pull request", "push", "merge queue", "schedule")
    wanted = {"alerts"} if is_ours else set()
    wanted |= {"plan"} if EVENTS[event][0] == "pull_request" else set()
    wanted |= {"comment"} if event == "pull request" else set()
    assert jobs_that_run(files[0], event) == wanted
    assert jobs_that_run(files[0], event, GANGPLAN_SARIF="false") == wanted - {"alerts"}


def test_findings_are_uploaded_when_they_fail_the_job(files: tuple[Object, Object]) -> None:
    assert steps_that_run(files[1], "pull request", "check", failed=True) == CHECKED - {"Validate"}
    assert steps_that_run(files[1], "pull request", "plan", failed=True) == set()
    assert jobs_that_run(files[0], "pull request", failed=True) == {"alerts"}


@pytest.mark.parametrize(("event", "base"), [("pull request", "origin/main"), ("push", "")])
def test_the_base_is_that_of_the_pull_request(event: str, base: str, files: tuple[Object, Object]) -> None:
    given = files[0]["jobs"]["check"]["steps"][-1]["with"]["base"].removeprefix("${{").removesuffix("}}")
    question = {"text": given, "contexts": contexts(event, "check"), "cancelled": False, "failed": False}
    # The evaluator is asked for a value here, which has no status function.
    question["text"] = f"always() && ({given})"
    assert asked(expressions=[question])["answers"] == [base]


def test_actionlint_finds_nothing_in_our_own_workflow(tmp_path: Path) -> None:
    folder = tmp_path / ".github"
    shutil.copytree(REPOSITORY / ".github", folder)
    git(tmp_path, "init", "-q")
    done = actionlint(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
