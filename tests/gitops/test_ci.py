"""CI recipes: their form, and their scripts, run on a real repository as the runner of each forge would."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.gitops.ci import ACTIONS
from tests import plain
from tests.gitops import scripts
from tests.workspaces import REPOSITORY, gangplan

Object = dict[str, Any]
WORKFLOW, ACTION = ".github/workflows/gangplan.yaml", ".github/actions/gangplan/action.yaml"
SCHEDULES = ".github/workflows/gangplan-schedules.yaml"


def made(name: str, folder: Path, *flags: str) -> dict[str, str]:
    """Write the files of a command, check that each records it, and return their texts by path."""
    root = folder / "workspace"
    scripts.workspaces.stock(root)
    outcome = gangplan("gitops", name, "-C", root, "-o", folder / "out", *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    files = sorted(path for path in (folder / "out").rglob("*") if path.is_file())
    texts = {path.relative_to(folder / "out").as_posix(): path.read_text() for path in files}
    assert all(re.match(rf"(#|//) Made by `gangplan gitops {name}", text) for text in texts.values())
    assert not any(re.search(r"[ \t]$", text, re.MULTILINE) for text in texts.values())
    return texts


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a repository on a branch that changes a spec; origin/main is where the branch began."""
    root = tmp_path_factory.mktemp("clone") / "repository"
    base, _ = scripts.repository(root)
    scripts.git(root, "update-ref", "refs/remotes/origin/main", base)
    return root


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with gangplan as a program."""
    return scripts.program(tmp_path_factory.mktemp("tools"))


# GitHub


@pytest.fixture
def github(tmp_path: Path) -> tuple[Object, Object]:
    """Return the workflow and the action."""
    files = made("github", tmp_path)
    return plain.load(files[WORKFLOW]), plain.load(files[ACTION])


def test_actions_are_pinned_by_commit(tmp_path: Path) -> None:
    text = "".join(made("github", tmp_path).values())
    used = re.findall(r"uses: (\S+?)(?:@(\S+) # (v[\d.]+))?$", text, re.MULTILINE)
    assert {one for one in used if one[0] != "./.github/actions/gangplan"} == {
        (name, *pin) for name, pin in ACTIONS.items()
    }
    other = "1" * 40
    text = made("github", tmp_path / "b", "--pin", f"actions/cache={other}")[ACTION]
    assert f"uses: actions/cache@{other}\n" in text


@pytest.mark.parametrize("pin", ["actions/cache=v5", "actions/cache", "acme/other=" + "1" * 40])
def test_pins_must_be_commits_of_known_actions(pin: str, root: Path) -> None:
    outcome = gangplan("gitops", "github", "-C", root, "--pin", pin)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    said = "help: Write --pin ACTION=COMMIT with 40 hexadecimal digits; actions: actions/checkout,"
    assert (said if "=" in pin else "--pin actions/cache: not of the form actions/cache=") in outcome.err


def test_no_untrusted_text_is_run_on_github(github: tuple[Object, Object]) -> None:
    workflow, action = github
    assert workflow["permissions"] == {}
    assert "pull_request_target" not in workflow[True]  # `on` is a truth value in YAML 1.1
    assert {event for event in workflow[True] if "workflow_run" in event} == set()
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]] + action["runs"]["steps"]
    assert not any("${{" in step.get("run", "") for step in steps)
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    tokens = [step["name"] for step in steps if "token" in str(step.get("env", "")).lower()]
    assert tokens == ["Comment on the pull request"]


def test_jobs_have_only_the_permissions_that_they_need(github: tuple[Object, Object]) -> None:
    rights = {name: job["permissions"] for name, job in github[0]["jobs"].items()}
    assert rights == {
        "check": {"contents": "read"},
        "plan": {"contents": "read"},
        "alerts": {"contents": "read", "security-events": "write"},
        "comment": {"contents": "read", "pull-requests": "write"},
    }
    assert all(job["timeout-minutes"] for job in github[0]["jobs"].values())


def test_pull_request_code_never_runs_with_a_token_that_may_write(github: tuple[Object, Object]) -> None:
    """A pull request may change requirements.txt, the action, and the caches of its branch."""
    writing = {name: job for name, job in github[0]["jobs"].items() if "write" in job["permissions"].values()}
    assert set(writing) == {"alerts", "comment"}
    for name, job in writing.items():
        assert "head.repo.full_name == github.repository" in job["if"]
        assert "dependabot[bot]" in job["if"]
        (checkout,) = (step for step in job["steps"] if "checkout@" in step.get("uses", ""))
        runs = [step for step in job["steps"] if "run" in step]
        # A job that runs something takes it from the target branch.
        assert (checkout["with"].get("ref") == "${{ github.event.pull_request.base.sha }}") == bool(runs), (
            name
        )
        assert not any(step.get("uses", "").startswith("./") for step in job["steps"])
        assert not any("cache" in step.get("uses", "") + str(step.get("with", "")) for step in job["steps"])


def test_jobs_take_the_artifacts_of_earlier_jobs(github: tuple[Object, Object]) -> None:
    workflow, action = github
    kept = {
        step["with"]["name"]: step["with"]["path"]
        for step in action["runs"]["steps"]
        if "upload-artifact@" in step.get("uses", "")
    }
    assert {name: path.rpartition("/")[2] for name, path in kept.items()} == {
        "gangplan-check": "gangplan.sarif",
        "gangplan-plan": "plan.md",
    }
    for job in ("alerts", "comment"):
        steps = workflow["jobs"][job]["steps"]
        (taken,) = (step["with"] for step in steps if "download-artifact@" in step.get("uses", ""))
        assert taken["name"] == f"gangplan-{workflow['jobs'][job]['needs']}"
        file = kept[taken["name"]].rpartition("/")[2]
        read = taken["path"].replace("${{ runner.temp }}", "$RUNNER_TEMP") + f"/{file}"
        assert read in str(steps[-1]).replace("${{ runner.temp }}", "$RUNNER_TEMP")


@pytest.mark.parametrize("link", [False, True])
def test_a_plan_that_is_a_link_is_not_commented(
    link: bool, github: tuple[Object, Object], tools: Path, tmp_path: Path
) -> None:
    text = github[0]["jobs"]["comment"]["steps"][-1]["run"]
    (tmp_path / "gangplan").mkdir()
    (tmp_path / "environ").write_text("of the job\n")
    plan = tmp_path / "gangplan/plan.md"
    if link:
        plan.symlink_to(tmp_path / "environ")
    else:
        plan.write_text("plan\n")
    done = scripts.run(text, tmp_path, {"RUNNER_TEMP": str(tmp_path)}, "bash", tools)
    # Then gangplan itself runs, which lacks a repository here.
    assert (done.returncode, "the repository is missing" in done.stderr) == (
        (1, False) if link else (2, True)
    )


def test_the_action_declares_the_inputs_that_it_reads(github: tuple[Object, Object]) -> None:
    workflow, action = github
    declared = action["inputs"]
    assert set(re.findall(r"inputs\.([\w-]+)", str(action["runs"]))) == set(declared)
    for job in ("check", "plan"):
        given = workflow["jobs"][job]["steps"][-1]["with"]
        assert given.keys() <= declared.keys()
        assert {name for name, one in declared.items() if one.get("required")} <= given.keys()
    for step in action["runs"]["steps"]:
        assert step.keys() <= {"name", "if", "uses", "with", "run", "shell", "env", "working-directory"}
        assert ("run" in step) == ("shell" in step) == ("uses" not in step)


def script(action: Object, name: str) -> str:
    """Return what a step of the action runs."""
    (found,) = (step["run"] for step in action["runs"]["steps"] if step.get("name") == name)
    return str(found)


def test_the_action_validates(
    github: tuple[Object, Object], clone: Path, tools: Path, tmp_path: Path
) -> None:
    variables = {
        "WORKSPACE": ".",
        "BASE": "origin/main",
        "GANGPLAN_CACHE_KEY": "",
        "RUNNER_TEMP": str(tmp_path),
    }
    done = scripts.run(script(github[1], "Validate"), clone, variables, "bash", tools)
    assert done.returncode == Exit.CLEAN, done.stderr
    assert "run-replaced" in done.stdout
    assert '"version": "2.1.0"' in (tmp_path / "gangplan.sarif").read_text()
    for name in ("rendered/ is fresh", "CI and sync manifests are fresh"):
        done = scripts.run(script(github[1], name), clone, variables, "bash", tools)
        assert done.returncode == Exit.CLEAN, done.stdout + done.stderr


def test_the_action_plans(github: tuple[Object, Object], clone: Path, tools: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    variables = {"WORKSPACE": ".", "BASE": "origin/main", "RUNNER_TEMP": str(tmp_path)}
    variables["GITHUB_STEP_SUMMARY"] = str(summary)
    done = scripts.run(script(github[1], "Plan"), clone, variables, "bash", tools)
    assert done.returncode == Exit.CLEAN, done.stderr
    assert "filings" in summary.read_text()


def test_schedules_are_a_workflow_of_their_own_that_may_push(tmp_path: Path) -> None:
    assert SCHEDULES not in made("github", tmp_path)
    files = made("github", tmp_path / "b", "--schedules", "7,37 * * * MON-FRI", "--branch", "release/1.0")
    workflow = plain.load(files[SCHEDULES])
    assert workflow[True] == {"schedule": [{"cron": "7,37 * * * MON-FRI"}], "workflow_dispatch": None}
    assert workflow["permissions"] == {}
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "write"}
    assert not any("${{" in step.get("run", "") for step in job["steps"])
    assert job["steps"][0]["with"] == {"ref": "release/1.0", "fetch-depth": 0}
    assert job["steps"][-1]["env"] == {"BRANCH": "release/1.0"}


DUE = """\
#!/bin/sh
# At a time when the job is due.
[ "$1" != repeat ] || set -- "$@" --at 2026-01-11T04:00Z
exec {real} "$@"
"""


@pytest.fixture
def scheduled(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Create a clone with a job that is due, next to its remote, and a folder with gangplan at that time."""
    root = tmp_path / "clone"
    cluster = scripts.workspaces.CLUSTER + "schedules: {backend: commit}\n"
    spec = scripts.workspaces.SPEC + 'timeout: 6h\nschedule: {cron: "0 4 * * *", startingDeadline: 2h}\n'
    scripts.workspaces.stock(root)
    scripts.workspaces.write(root, {"overlays/lab/cluster.yaml": cluster, "specs/nlp/filings.yaml": spec})
    scripts.workspaces.render(root)
    scripts.git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text(".gangplan/\n")
    scripts.git(root, "add", ".")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-10T12:00:00Z")
    scripts.git(root, "commit", "-q", "-m", "Begin")
    scripts.git(root, "clone", "-q", "--bare", ".", "../remote.git")
    scripts.git(root, "remote", "add", "origin", "../remote.git")
    due = tmp_path / "due"
    due.mkdir()
    (due / "gangplan").write_text(DUE.format(real=tools / "gangplan"))
    (due / "gangplan").chmod(0o755)
    return root, due


def check_started_once(root: Path, script: str, variables: Mapping[str, str], shell: str, path: Path) -> None:
    """Check that a script pushes one commit with the new run and all of its files, and then none."""
    remote = root.parent / "remote.git"
    for _ in range(2):
        given = {**variables, "GIT_COMMITTER_DATE": "2026-01-11T04:00:30Z"}
        done = scripts.run(script, root, given, shell, path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert scripts.git(remote, "log", "--format=%s", "main") == "Start runs that are due\nBegin"
    assert scripts.git(root, "status", "--porcelain", "specs", "rendered") == ""
    assert "run: 2" in scripts.git(remote, "show", "main:specs/nlp/filings.yaml")
    assert gangplan("render", "--check", "-C", root).code == Exit.CLEAN


def test_the_workflow_of_schedules_pushes_runs_that_are_due(
    scheduled: tuple[Path, Path], tmp_path: Path
) -> None:
    root, due = scheduled
    files = made("github", tmp_path / "recipe", "--schedules", "*/15 * * * *")
    (job,) = plain.load(files[SCHEDULES])["jobs"].values()
    step = job["steps"][-1]
    check_started_once(root, step["run"], step["env"], "bash", due)


# GitLab


@pytest.fixture
def gitlab(tmp_path: Path) -> tuple[Object, str]:
    """Return the inputs of the component, and its jobs as text."""
    head, body = re.split(r"^---\n", made("gitlab", tmp_path)[".gitlab/gangplan.yml"], flags=re.MULTILINE)
    return plain.load(head)["spec"]["inputs"], body


def jobs_of(gitlab: tuple[Object, str], **given: str) -> Object:
    """Return the jobs with their inputs filled in, merged with what they extend."""
    inputs, body = gitlab
    values = {name: str(one["default"]).replace("False", "false") for name, one in inputs.items()} | given
    jobs = plain.load(re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda match: values[match[1]], body))
    whole = {name: (jobs.get(job.get("extends"), {}), job) for name, job in jobs.items() if name[0] != "."}
    return {
        name: {**base, **job, "variables": {**base.get("variables", {}), **job.get("variables", {})}}
        for name, (base, job) in whole.items()
    }


def test_the_component_declares_the_inputs_that_it_reads(gitlab: tuple[Object, str], tmp_path: Path) -> None:
    inputs, body = gitlab
    assert set(re.findall(r"inputs\.([\w-]+)", body)) == set(inputs)
    assert all("default" in one and one["description"] for one in inputs.values())
    files = made("gitlab", tmp_path / "b", "--image", "registry.example.com/ci:1")
    (include,) = plain.load(files[".gitlab-ci.yml"])["include"]
    assert include["inputs"].keys() <= inputs.keys()
    assert include["inputs"]["image"] == "registry.example.com/ci:1"
    known = {"stage", "image", "timeout", "interruptible", "variables", "cache", "before_script", "extends"}
    known |= {"script", "artifacts", "rules", "allow_failure", "needs", "environment", "resource_group"}
    assert all(job.keys() <= known for job in jobs_of(gitlab).values())


def test_the_component_validates(gitlab: tuple[Object, str], clone: Path, tools: Path) -> None:
    job = jobs_of(gitlab, prefix="ml")["ml"]
    variables = {
        **job["variables"],
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": scripts.git(clone, "rev-parse", "origin/main"),
    }
    done = scripts.run("\n".join(job["script"]), clone, variables, "sh", tools)
    assert done.returncode == Exit.CLEAN, done.stderr
    for file in job["artifacts"]["reports"].values():
        assert (clone / file).read_text()
        (clone / file).unlink()
    assert job["artifacts"]["when"] == "always"


def test_the_component_checks_everything_before_it_fails(
    gitlab: tuple[Object, str], tools: Path, tmp_path: Path
) -> None:
    root = tmp_path / "broken"
    scripts.repository(root)
    (root / "specs/nlp/filings.yaml").write_text(scripts.workspaces.SPEC.replace("32Gi", "32GB"))
    job = jobs_of(gitlab)["gangplan"]
    done = scripts.run("\n".join(job["script"]), root, job["variables"], "sh", tools)
    assert done.returncode == Exit.INPUT
    assert done.stderr.count("spec-value") == 2  # validate and render --check
    assert "32GB" in (root / "gangplan.xml").read_text()


def test_the_component_plans(gitlab: tuple[Object, str], clone: Path, tools: Path) -> None:
    job = jobs_of(gitlab)["gangplan-plan"]
    variables = {
        **job["variables"],
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": scripts.git(clone, "rev-parse", "origin/main"),
    }
    done = scripts.run("\n".join(job["script"]), clone, variables, "sh", tools)
    assert done.returncode == Exit.CLEAN, done.stderr
    assert "filings" in (clone / "plan.md").read_text()
    (clone / "plan.md").unlink()


def test_merge_request_code_never_runs_with_the_token(gitlab: tuple[Object, str]) -> None:
    """GitLab gives a variable of an environment only to the jobs that name the environment."""
    jobs = jobs_of(gitlab)
    (name,) = (name for name, job in jobs.items() if "GITLAB_TOKEN" in str(job))
    job = jobs[name]
    others = [other for other, one in jobs.items() if other != name and "environment" in one]
    assert (name, others) == ("gangplan-comment", ["gangplan-schedules"])
    assert job["environment"] == {"name": "gangplan-comment", "action": "access"}
    assert job["variables"]["GIT_STRATEGY"] == "none"
    assert not {"before_script", "cache", "extends"} & job.keys()
    assert job["needs"] == ["gangplan-plan"]


@pytest.mark.parametrize(
    ("plan", "token", "code", "said"),
    [
        ("file", "secret", 2, "the repository is missing"),  # from gangplan itself: no repository
        ("link", "secret", 1, ""),
        ("none", "secret", 1, ""),
        ("file", "", 0, "no comment: the variable GITLAB_TOKEN does not reach this job"),
    ],
)
def test_the_component_comments_only_on_a_plan_that_is_a_file(
    plan: str, token: str, code: int, said: str, gitlab: tuple[Object, str], tools: Path, tmp_path: Path
) -> None:
    root = tmp_path / "job"
    root.mkdir()
    (tmp_path / "environ").write_text("of the job\n")
    if plan == "link":
        (root / "plan.md").symlink_to(tmp_path / "environ")
    elif plan == "file":
        (root / "plan.md").write_text("plan\n")
    given = {"GITLAB_CI": "true", "GITLAB_TOKEN": token, "CI_API_V4_URL": "http://127.0.0.1:9"}
    script = "\n".join(jobs_of(gitlab)["gangplan-comment"]["script"])
    done = scripts.run(script, root, given, "sh", tools)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stderr
    assert bool(said) or done.stdout + done.stderr == ""


def test_only_pipelines_of_the_schedule_get_the_token_that_pushes(gitlab: tuple[Object, str]) -> None:
    jobs = jobs_of(gitlab)
    (name,) = (name for name, job in jobs.items() if "GANGPLAN_PUSH_TOKEN" in str(job))
    assert jobs[name]["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule" && $GANGPLAN_REPEAT == "true"'}]
    assert jobs[name]["environment"] == {"name": "gangplan-schedules", "action": "access"}


def test_the_component_pushes_runs_that_are_due(
    gitlab: tuple[Object, str], scheduled: tuple[Path, Path]
) -> None:
    root, due = scheduled
    job = jobs_of(gitlab)["gangplan-schedules"]
    remote = "https://gangplan:secret@gitlab.example.com:443/ml/jobs.git"
    given = {
        **job["variables"],
        "GANGPLAN_PUSH_TOKEN": "secret",
        "CI_SERVER_HOST": "gitlab.example.com",
        "CI_SERVER_PORT": "443",
        "CI_PROJECT_PATH": "ml/jobs",
        "CI_COMMIT_BRANCH": "main",
        # What a push to that address reaches here.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{root.parent / 'remote.git'}.insteadOf",
        "GIT_CONFIG_VALUE_0": remote,
    }
    check_started_once(root, "\n".join(job["script"]), given, "sh", due)


# Jenkins


def test_the_pipeline_of_jenkins_is_well_formed(tmp_path: Path) -> None:
    text = made("jenkins", tmp_path, "--image", "registry.example.com/ci@sha256:" + "0" * 64)["Jenkinsfile"]
    bare = re.sub(r"'''.*?'''|'[^'\n]*'|//[^\n]*", "''", text, flags=re.DOTALL)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert (depth, bare.count("(")) == (0, bare.count(")"))
    assert re.findall(r"^\s*(\w+) \{", bare, re.MULTILINE)[:2] == ["pipeline", "agent"]
    assert re.findall(r"stage\('([^']+)'\)", text) == ["install", "validate", "render check", "plan"]
    assert "image 'registry.example.com/ci@sha256:" + "0" * 64 + "'" in text
    # Double quotes would fill in Groovy's variables, such as a branch, before the shell sees them.
    assert not re.search(r'sh\s+"', text)
    assert re.search(r"post \{\s+always \{\s+junit", bare)


def test_jenkins_validates_and_plans(clone: Path, tools: Path, tmp_path: Path) -> None:
    text = made("jenkins", tmp_path)["Jenkinsfile"]
    root = tmp_path / "clone"
    scripts.git(tmp_path, "clone", "-q", "-b", "change", str(clone), "clone")
    scripts.git(clone, "branch", "-f", "main", "origin/main")
    (root / ".venv").mkdir()
    (root / ".venv/bin").symlink_to(tools)
    (root / "reports").mkdir()
    steps = re.findall(r"sh '''(.*?)'''", text, re.DOTALL)
    variables = {"WORKSPACE_TMP": str(tmp_path), "CHANGE_TARGET": "main", "GANGPLAN_WORKSPACE": "."}
    for step in steps[1:]:
        done = scripts.run(step, root, variables, "sh")
        assert done.returncode == Exit.CLEAN, done.stderr
    written = {path.name for path in (root / "reports").iterdir()}
    assert written == {"base.txt", "gangplan.xml", "gangplan.sarif", "plan.md"}


# All recipes


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("github", "--branch", "-x"), "'-x' is not the name of a branch"),
        (("github", "--python", "3; rm"), "'3; rm' is not a version of Python\n  help: Write --python 3.13."),
        (("gitlab", "--image", "a'b"), "is not the name of an image"),
        (("jenkins", "--prefix", "../x"), "cannot be the folder of a workspace"),
        (("jenkins", "--prefix", "a b"), "cannot be the folder of a workspace"),
        (("tekton", "--forge", "gitbucket"), "there is no forge 'gitbucket'"),
        (("tekton", "--wait", "jenkins"), "there is no sync engine 'jenkins'"),
        (("github", "--check"), "--check compares files, and none are named\n  help: Name their folder: -o"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_flags_are_refused(flags: tuple[str, ...], said: str, root: Path) -> None:
    outcome = gangplan("gitops", *flags, "-C", root)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert said in outcome.err


def test_hooks_are_those_of_a_new_workspace(tmp_path: Path) -> None:
    """One set is for people who have gangplan, the other lets pre-commit install it: the commands are the
    same."""
    hooks = {hook["id"]: hook for hook in plain.load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())}
    gangplan("init", tmp_path, "--team", "nlp", "--cluster", "lab")
    (local,) = plain.load((tmp_path / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in local["hooks"]:
        entry, _, flags = hook["entry"].partition(" ")
        assert (entry, hooks[hook["id"]]["entry"]) == ("gangplan", f"gangplan {flags}")
    for hook in hooks.values():
        assert hook["language"] == "python"
        assert gangplan(*hook["entry"].split()[1:], "--help").code == Exit.CLEAN
        assert hook["files"] == next(
            (one["files"] for one in local["hooks"] if one["id"] == hook["id"]), hook["files"]
        )


def test_the_hook_of_recipes_runs_for_every_file_that_it_compares(root: Path, tmp_path: Path) -> None:
    """It also runs for the files that decide them, and not for others next to them. pre-commit searches as
    Python does."""
    hooks = {hook["id"]: hook for hook in plain.load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())}
    scripts.workspaces.render(root)
    url = ("--repo", "https://git.example.com/ml/jobs.git")
    made = {"argocd": url, "flux": url, "github": (), "gitlab": (), "tekton": ("--wait", "flux")}
    for name, flags in {**made, "jenkins": (), "codeowners": ()}.items():
        out = tmp_path / "out" / (name if name in ("argocd", "flux") else "")
        assert gangplan("gitops", name, "-C", root, "-o", out, *flags).code == Exit.CLEAN
    paths = {
        path.relative_to(tmp_path / "out").as_posix()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    read = {"gangplan.yaml", "specs/nlp/team.yaml", "overlays/lab/cluster.yaml", "policies/own/pack.yaml"}
    others = {
        *(
            ".github/workflows/web.yaml",
            ".gitlab/web.yml",
            ".tekton/web.yaml",
            "tekton/web.yaml",
            "README.md",
        ),
        *("specs/nlp/filings.yaml", "web/CODEOWNERS", "web/argocd/a.yaml", "web/specs/nlp/team.yaml"),
    }
    assert len(paths) > 10
    pattern = re.compile(hooks["gangplan-gitops"]["files"])
    assert {path for path in paths | read | others if pattern.search(path)} == paths | read


def test_hooks_of_a_workspace_inside_a_repository_work_from_its_top(tmp_path: Path) -> None:
    """pre-commit runs hooks at the top of the repository, with names of files from there."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    gangplan("init", tmp_path / "ml/jobs", "--team", "nlp", "--cluster", "lab")
    text = (tmp_path / "ml/jobs/.pre-commit-config.yaml").read_text()
    (local,) = plain.load(text)["repos"]
    validate, render = local["hooks"]
    assert (validate["entry"], render["entry"]) == (
        "gangplan validate -C ml/jobs",
        "gangplan render --check -C ml/jobs",
    )
    for hook in (validate, render):
        assert re.match(hook["files"], "ml/jobs/specs/nlp/quickstart.yaml")
        assert not re.match(hook["files"], "specs/nlp/quickstart.yaml")
    assert "pre-commit install --config ml/jobs/.pre-commit-config.yaml" in text


def test_every_command_of_the_page_works(root: Path, tmp_path: Path) -> None:
    """The commands of docs/gitops.md work, and the page names every subcommand."""
    page = (REPOSITORY / "docs/gitops.md").read_text()
    lines = [line for line in re.findall(r"^gangplan gitops [^#\n]+", page, re.MULTILINE) if " -o " in line]
    assert len(lines) >= 9
    scripts.workspaces.render(root)
    for number, line in enumerate(lines):
        filled = line.replace("DIGEST", "0" * 64).replace(" URL ", " https://git.example.com/ml/jobs.git ")
        words = shlex.split(filled)
        place = tmp_path / str(number)
        words[words.index("-o") + 1] = str(place)
        outcome = gangplan(*words[1:], "-C", root)
        assert (outcome.code, outcome.err) == (Exit.CLEAN, ""), line
        assert any(place.rglob("*"))
    named = set(re.findall(r"`(?:gangplan )?gitops ([a-z]+)", page))
    listed = set(re.findall(r"^  ([a-z]+)  ", gangplan("gitops", "--help").out, re.MULTILINE))
    assert named == listed
