"""Tekton: Tasks, Pipeline and PipelineRuns fit together, and their scripts do what they should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests import plain
from tests.gitops import scripts
from tests.gitops.test_ci import clone, made, tools
from tests.workspaces import gangplan

__all__ = ["clone", "tools"]

Object = dict[str, Any]
# Fields of tekton.dev/v1 (pkg/apis/pipeline/v1: task_types.go, container_types.go, pipeline_types.go).
TASK = {"description", "params", "workspaces", "results", "stepTemplate", "steps", "volumes", "sidecars"}
STEP = {"name", "image", "env", "script", "securityContext", "volumeMounts", "timeout", "onError"}
PIPELINE = {"description", "params", "workspaces", "tasks", "finally", "results"}
PIPELINE_TASK = {"name", "taskRef", "params", "workspaces", "runAfter", "when", "retries", "timeout"}
RUN = {"pipelineRef", "params", "timeouts", "workspaces", "taskRunTemplate", "taskRunSpecs"}


def objects(folder: Path, *flags: str) -> dict[str, Object]:
    """Return what a command writes, by kind and name."""
    found = [body for text in made("tekton", folder, *flags).values() for body in plain.load_all(text)]
    return {
        f"{body['kind']}/{body['metadata'].get('name') or body['metadata']['generateName']}": body
        for body in found
    }


FORMS = {
    "plain": (),
    "argocd": ("--wait", "argocd"),
    "flux": ("--wait", "flux"),
    "in-cluster": ("--sync", "in-cluster", "--cluster", "lab"),
    "kubeconfig": ("--sync", "kubeconfig"),
}


@pytest.fixture(params=FORMS.values(), ids=FORMS.keys())
def made_by_flags(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Object]:
    """Return the objects of each form."""
    return objects(tmp_path, *request.param)


def texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def test_tasks_declare_what_they_read(made_by_flags: dict[str, Object]) -> None:
    for name, body in made_by_flags.items():
        if not name.startswith("Task/"):
            continue
        spec = body["spec"]
        assert (body["apiVersion"], spec.keys() <= TASK) == ("tekton.dev/v1", True)
        assert all(step.keys() <= STEP for step in spec["steps"])
        read = {match for text in texts(spec) for match in re.findall(r"\$\(([\w.-]+)\)", text)}
        declared = {f"params.{one['name']}" for one in spec["params"]}
        declared |= {f"results.{one['name']}.path" for one in spec.get("results", ())}
        for one in spec.get("workspaces", ()):
            declared |= {f"workspaces.{one['name']}.{part}" for part in ("path", "bound")}
        assert read <= declared
        assert {one for one in declared if one.startswith("params.")} <= read
        for step in spec["steps"]:
            # Nothing is filled into scripts: a branch may be called $(reboot).
            assert not re.search(r"\$\((params|workspaces|results)\.", step["script"])
            assert step["image"] == "$(params.image)"
            # Git's settings come in variables: a file of them may belong to someone else.
            assert "git config" not in step["script"]
            settings = step.get("securityContext") or spec["stepTemplate"]["securityContext"]
            assert settings["allowPrivilegeEscalation"] is False


def test_the_pipeline_fits_its_tasks(made_by_flags: dict[str, Object]) -> None:
    pipeline = made_by_flags["Pipeline/gangplan"]["spec"]
    assert pipeline.keys() <= PIPELINE
    tasks = pipeline["tasks"] + pipeline["finally"]
    names = {one["name"] for one in pipeline["tasks"]}
    for one in tasks:
        assert one.keys() <= PIPELINE_TASK
        task = made_by_flags[f"Task/{one['taskRef']['name']}"]["spec"]
        declared = {param["name"]: "default" in param for param in task["params"]}
        given = {param["name"] for param in one["params"]}
        assert {name for name, has_default in declared.items() if not has_default} <= given <= set(declared)
        spaces = {space["name"]: space.get("optional", False) for space in task.get("workspaces", ())}
        bound = {space["name"] for space in one.get("workspaces", ())}
        assert {name for name, is_optional in spaces.items() if not is_optional} <= bound <= set(spaces)
        assert set(one.get("runAfter", ())) <= names
    read = {match for text in texts(tasks) for match in re.findall(r"\$\(([\w.-]+)\)", text)}
    declared = {f"params.{one['name']}" for one in pipeline["params"]}
    assert declared <= read
    assert {one for one in read - declared if not re.fullmatch(r"tasks\.[\w-]+\.status", one)} == set()
    assert {one.split(".")[1] for one in read - declared} <= names
    # The report also runs after a task that failed.
    assert [one["name"] for one in pipeline["finally"]] == ["report"]


def test_pipelines_as_code_starts_the_pipeline(made_by_flags: dict[str, Object]) -> None:
    pipeline = made_by_flags["Pipeline/gangplan"]["spec"]
    runs = {name: body for name, body in made_by_flags.items() if name.startswith("PipelineRun/")}
    assert sorted(runs) == ["PipelineRun/gangplan-pull-request-", "PipelineRun/gangplan-push-"]
    prefix = "pipelinesascode.tekton.dev/"
    for name, body in runs.items():
        assert body["spec"].keys() <= RUN
        marks = body["metadata"]["annotations"]
        assert marks[f"{prefix}on-target-branch"] == "[main]"
        assert marks[f"{prefix}on-event"] == ("[pull_request]" if "pull" in name else "[push]")
        given = {param["name"] for param in body["spec"]["params"]}
        required = {one["name"] for one in pipeline["params"] if "default" not in one}
        assert required <= given <= {one["name"] for one in pipeline["params"]}
        bound = {one["name"] for one in body["spec"]["workspaces"]}
        known = {one["name"] for one in pipeline["workspaces"]}
        assert bound == known - ({"kubeconfig"} if "pull" in name else set())
    filled = set(re.findall(r"\{\{ (\w+) \}\}", str(runs)))
    assert filled == {
        *("repo_url", "revision", "git_auth_secret", "target_branch", "repo_owner", "repo_name"),
        "pull_request_number",
    }


def test_waiting_for_the_sync_needs_only_the_right_to_read_it(tmp_path: Path) -> None:
    found = objects(tmp_path, "--wait", "argocd", "--namespace", "pipelines")
    names = {one["name"]: one.get("default") for one in found["Task/gangplan-wait"]["spec"]["params"]}[
        "names"
    ]
    assert names == "lab-platform lab-runs-nlp lab-tenants"
    assert found["Role/gangplan-wait"]["rules"] == [
        {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["get"]}
    ]
    assert found["RoleBinding/gangplan-wait"]["subjects"][0]["namespace"] == "pipelines"
    assert "Task/gangplan-wait" not in objects(tmp_path / "b")


def step(body: Object, name: str, values: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the script of a step and its variables, filled in."""
    spec = scripts.filled(body["spec"], values)
    (found,) = (one for one in spec["steps"] if one["name"] == name)
    env = [*spec.get("stepTemplate", {}).get("env", ()), *found.get("env", ())]
    return found["script"], {one["name"]: one["value"] for one in env if "value" in one}


@pytest.mark.parametrize("task", ["validate", "check", "plan"])
def test_the_fetched_revision_is_checked(task: str, clone: Path, tools: Path, tmp_path: Path) -> None:
    found = objects(tmp_path)
    source = tmp_path / "source"
    source.mkdir()
    values = fetched(found, clone, source)
    (source / "venv").mkdir()
    (source / "venv/bin").symlink_to(tools)
    values |= {"params.task": task, "results.summary.path": str(tmp_path / "summary")}
    done = scripts.run(*_at(step(found["Task/gangplan-run"], "run", values), source))
    assert done.returncode == Exit.CLEAN, done.stdout + done.stderr
    report = {"validate": "run-replaced", "check": "is fresh", "plan": "filings"}[task]
    assert report in done.stdout
    done, text = gathered(found, source, "validate Succeeded")
    assert (done.returncode, "validate Succeeded" in done.stdout) == (0, True), done.stderr
    assert text.startswith("<!-- gangplan -->\nvalidate Succeeded\n")
    assert ("filings" in text) == (task == "plan")


def fetched(found: dict[str, Object], clone: Path, source: Path) -> dict[str, str]:
    """Fetch a repository with the first Task, and return the values that the Tasks are given."""
    scripts.git(clone, "branch", "-f", "main", "origin/main")
    values = {
        "params.repo-url": str(clone),
        "params.revision": scripts.git(clone, "rev-parse", "HEAD"),
        "params.base-branch": "main",
        "params.workspace": ".",
        "workspaces.source.path": str(source),
        "workspaces.basic-auth.bound": "false",
        "workspaces.basic-auth.path": "",
    }
    done = scripts.run(*_at(step(found["Task/gangplan-fetch"], "fetch", values), source))
    assert done.returncode == 0, done.stderr
    return values


def gathered(
    found: dict[str, Object], source: Path, statuses: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the report; return its outcome and the comment that it leaves for its next step."""
    values = {"params.statuses": statuses, "workspaces.source.path": str(source)}
    script, variables = step(found["Task/gangplan-report"], "gather", values)
    file = source.parent / "comment.md"
    done = scripts.run(script, source, {**variables, "COMMENT": str(file)})
    return done, file.read_text()


def test_a_failure_is_reported(tmp_path: Path) -> None:
    """`finally` runs it after a task that failed, and also after nothing was fetched."""
    found = objects(tmp_path)
    source = tmp_path / "source"
    (source / "reports").mkdir(parents=True)
    (source / "reports/validate.txt").write_text("1 error\n")
    done, text = gathered(found, source, "validate Failed")
    assert (done.returncode, done.stdout) == (0, "validate Failed\n\n1 error\n")
    assert text == "<!-- gangplan -->\nvalidate Failed\n"


# Contents of pull requests, and tokens


def test_pull_request_code_never_runs_with_a_token(made_by_flags: dict[str, Object]) -> None:
    """A pull request may change requirements.txt, and so every program of the environment installed from
    it."""
    tasks = {name: body["spec"] for name, body in made_by_flags.items() if name.startswith("Task/")}
    runs = {name for name, spec in tasks.items() if "venv/bin/" in str(spec["steps"])}
    # The sync handles what was merged, and only the run of a push has that task (tests/sync/test_tekton.py).
    runs -= {"Task/gangplan-sync"}
    assert runs == {"Task/gangplan-install", "Task/gangplan-run"}
    for name in runs:
        assert [one["name"] for one in tasks[name]["workspaces"]] == ["source"]
        assert "secret" not in str(tasks[name]).lower()
        assert "volumes" not in tasks[name]
    (report,) = (one for one in tasks["Task/gangplan-report"]["steps"] if "secret" in str(one).lower())
    assert report["name"] == "comment"
    assert "workspaces" not in str(report)
    assert not any("source" in str(spec["steps"]) for name, spec in tasks.items() if "wait" in name)
    for name, body in made_by_flags.items():
        if name.startswith("PipelineRun/"):
            assert body["spec"]["taskRunTemplate"]["podTemplate"] == {"automountServiceAccountToken": False}
            more = [one["pipelineTaskName"] for one in body["spec"].get("taskRunSpecs", ())]
            last = ["wait"] if "Task/gangplan-wait" in tasks else []
            if "ServiceAccount/gangplan-sync" in made_by_flags:
                last = ["sync-lab"]
            assert more == (last if "push" in name else [])


@pytest.mark.parametrize("link", ["reports/plan.md", "reports/validate.txt", "reports"])
def test_the_report_follows_no_link_of_a_pull_request(link: str, tmp_path: Path) -> None:
    found = objects(tmp_path)
    (tmp_path / "secrets").mkdir()
    for name in ("plan.md", "validate.txt"):
        (tmp_path / "secrets" / name).write_text("of the pod\n")
    source = tmp_path / "source"
    source.mkdir()
    if link != "reports":
        (source / "reports").mkdir()
    (source / link).symlink_to(tmp_path / "secrets" / link.removeprefix("reports").strip("/"))
    done, text = gathered(found, source, "plan Succeeded")
    assert (done.returncode, done.stdout) == (0, "plan Succeeded\n"), done.stderr
    assert text == "<!-- gangplan -->\nplan Succeeded\n"


def test_hooks_of_an_earlier_run_on_the_volume_are_not_started(clone: Path, tmp_path: Path) -> None:
    """Git starts programs that the configuration of a repository names, here with credentials within
    reach."""
    found = objects(tmp_path)
    source = tmp_path / "source"
    hook = source / "repository/.git/hooks/post-checkout"
    (source / "repository").mkdir(parents=True)
    scripts.git(source / "repository", "init", "-q")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\ntouch "{tmp_path}/started"\n')
    hook.chmod(0o755)
    fetched(found, clone, source)
    assert (source / "repository/specs").is_dir()
    assert not (tmp_path / "started").exists()


def test_the_comment_is_written_by_the_gangplan_of_the_image(
    forge: tuple[type[Forge], str], tools: Path, tmp_path: Path
) -> None:
    kind, address = forge
    found = objects(tmp_path)
    theirs = tmp_path / "source/venv/bin/gangplan"
    theirs.parent.mkdir(parents=True)
    theirs.write_text(f'#!/bin/sh\necho "$GANGPLAN_FORGE_TOKEN" > "{tmp_path}/stolen"\n')
    theirs.chmod(0o755)
    (tmp_path / "comment.md").write_text("<!-- gangplan -->\nplan Succeeded\n")
    values = {f"params.{name}": "" for name in ("api", "repository", "number")}
    values |= {"params.forge": "github", "params.api": address, "workspaces.source.path": str(tmp_path)}
    values |= {"params.repository": "acme/jobs", "params.number": "7"}
    script, variables = step(found["Task/gangplan-report"], "comment", values)
    given = {**variables, "COMMENT": str(tmp_path / "comment.md"), "GANGPLAN_FORGE_TOKEN": "secret"}
    done = scripts.run(script, tmp_path, given, path=tools)
    assert (done.returncode, done.stdout) == (0, "wrote the comment on acme/jobs 7\n"), done.stderr
    assert [one["body"] for one in kind.comments] == ["<!-- gangplan -->\nplan Succeeded\n"]
    # An image without gangplan writes no comment, rather than with the program of the pull request.
    places = {one: tmp_path / "bin" / one for one in ("sh", "mktemp")}
    (tmp_path / "bin").mkdir()
    for one, place in places.items():
        place.symlink_to(str(shutil.which(one)))
    done = scripts.run(script, tmp_path, {**given, "PATH": str(tmp_path / "bin")})
    assert (done.returncode, done.stdout.startswith("no comment: ")) == (0, True), done.stderr
    assert (len(kind.comments), (tmp_path / "stolen").exists()) == (1, False)


# Waiting for the sync


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """Create a repository; return it with its commits, by their relation to the one called `own`."""
    root = tmp_path_factory.mktemp("history") / "repository"
    root.mkdir()
    scripts.git(root, "init", "-q", "-b", "main")
    scripts.git(root, "config", "uploadpack.allowFilter", "true")  # as on forges

    def commit(name: str, *words: str) -> str:
        scripts.git(root, *(words or ("commit", "-q", "--allow-empty", "-m", name)))
        return scripts.git(root, "rev-parse", "HEAD")

    found = {"earlier": commit("earlier"), "own": commit("own"), "next": commit("next")}
    scripts.git(root, "checkout", "-q", "-b", "side", found["earlier"])
    found["beside"] = commit("beside")
    found["merge"] = commit("merge", "merge", "-q", "--no-ff", "-m", "merge", "main")
    found |= {"gone": "0" * 40, "none": ""}
    return root.as_uri(), found


WAITED = {
    "own": True,
    "next": True,
    "merge": True,
    "earlier": False,
    "beside": False,
    "gone": False,
    "none": False,
}


@pytest.mark.parametrize("engine", ["argocd", "flux"])
@pytest.mark.parametrize("name", WAITED)
def test_the_wait_ends_once_the_merged_commit_is_synced(
    name: str,
    engine: str,
    history: tuple[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It also ends when a later push that contains the commit is synced, and only then."""
    url, commits = history
    commit = commits[name]
    synced = {
        "argocd": {"sync": {"status": "Synced", "revision": commit}},
        "flux": {"conditions": READY, "lastAppliedRevision": f"main@sha1:{commit}"},
    }[engine]
    code = waited(engine, url, commits["own"], synced, monkeypatch)
    assert code == (0 if WAITED[name] else "not synced in time: a")
    assert (f"a: synced at {commit}" in capsys.readouterr().out) == (code == 0)


READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("engine", "form", "code"),
    [
        ("argocd", {"sync": {"status": "OutOfSync", "revision": "OWN"}}, "not synced in time: a"),
        ("argocd", {}, "not synced in time: a"),
        (
            "flux",
            {"conditions": [{"type": "Ready", "status": "False"}], "lastAppliedRevision": "main@sha1:OWN"},
            "not synced in time: a",
        ),
        ("flux", {}, "not synced in time: a"),
        (
            "flux",
            {
                "conditions": READY,
                "lastAppliedRevision": "main@sha256:" + "1" * 64,
                "lastAppliedOriginRevision": "main@sha1:OWN",
            },
            0,
        ),
    ],
    ids=["out of sync", "new", "not ready", "new to flux", "OCI artifact"],
)
def test_the_status_decides_whether_it_is_synced(
    engine: str,
    form: Object,
    code: object,
    history: tuple[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, commits = history
    status = json.loads(json.dumps(form).replace("OWN", commits["own"]))
    assert waited(engine, url, commits["own"], status, monkeypatch) == code


def waited(engine: str, url: str, revision: str, status: Object, monkeypatch: pytest.MonkeyPatch) -> object:
    """Run the script with no time to wait and this status from the API server, and return how it ends."""
    text = _wait_script(engine)
    given = {"REVISION": revision, "REPO_URL": url, "NAMES": "a", "MINUTES": "0", "AUTH_BOUND": "false"}
    for key, value in given.items():
        monkeypatch.setenv(key, value)
    head, rest = text.split('if os.environ["AUTH_BOUND"]')
    names: Object = {}
    exec(head, names)
    names["status"] = lambda _: status
    try:
        exec(f'if os.environ["AUTH_BOUND"]{rest}', names)
    except SystemExit as end:
        return end.code
    finally:
        shutil.rmtree(names["home"])
    return 0


def _wait_script(engine: str) -> str:
    from gangplan.gitops.ci import CiOptions
    from gangplan.gitops.tekton import Push, render_tekton_files

    text = render_tekton_files(CiOptions(), "github", Push(engine, ("a",)))[".tekton/gangplan-tasks.yaml"]
    (task,) = (body for body in plain.load_all(text) if body["metadata"]["name"] == "gangplan-wait")
    return str(task["spec"]["steps"][0]["script"])


def _at(found: tuple[str, dict[str, str]], folder: Path) -> tuple[str, Path, dict[str, str]]:
    script, variables = found
    return script, folder, variables


# The comment


class Forge(BaseHTTPRequestHandler):
    """A forge with one discussion: its comments, and the requests that it got."""

    comments: list[Object]
    asked: list[tuple[str, str, str | None]]
    locked: set[int]

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _body(self) -> Object:
        found: Object = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN")
        type(self).asked.append((self.command, self.path, token))
        return found

    def _answer(self, code: int, body: object) -> None:
        self.send_response(code)
        if code == 302:
            self.send_header("Location", "http://127.0.0.1:9/")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_GET(self) -> None:
        """Return a page of comments."""
        self._body()
        page = int(re.search(r"&page=(\d+)", self.path)[1])  # type: ignore[index]
        self._answer(200, self.comments[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        """Add a comment."""
        self.comments.append({"id": len(self.comments) + 1, **self._body()})
        self._answer(201, self.comments[-1])

    def do_PATCH(self) -> None:
        """Change a comment."""
        body, id = self._body(), int(self.path.rsplit("/", 1)[1])
        if id in self.locked:
            self._answer(403, {})
            return
        self.comments[id - 1] |= body
        self._answer(200, self.comments[id - 1])

    do_PUT = do_PATCH  # noqa: N815


@pytest.fixture
def forge() -> Iterator[tuple[type[Forge], str]]:
    """Run a forge on this machine, and yield it with its address."""
    kind = type("OneForge", (Forge,), {"comments": [], "asked": [], "locked": set()})
    server = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield kind, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables of the CI that runs these tests."""
    for name in ("GITHUB_ACTIONS", "GITHUB_REF", "GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_API_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GITLAB_CI", "CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID", "GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GANGPLAN_FORGE_TOKEN", raising=False)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_a_comment_is_kept_up_to_date(
    name: str, forge: tuple[type[Forge], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, address = forge
    kind.comments += [{"id": number + 1, "body": "a person's"} for number in range(120)]
    variables = {
        "github": {
            "GITHUB_API_URL": address,
            "GITHUB_REPOSITORY": "acme/jobs",
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_TOKEN": "secret",
        },
        "gitlab": {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": address,
            "CI_PROJECT_ID": "acme/jobs",
            "CI_MERGE_REQUEST_IID": "7",
            "GITLAB_TOKEN": "secret",
        },
    }[name]
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    file = tmp_path / "plan.md"
    for number, said in enumerate(("wrote", "changed")):
        file.write_text(f"<!-- gangplan-plan -->\nplan {number}\n")
        outcome = gangplan("report", "comment", file)
        assert (outcome.code, outcome.out) == (0, f"{said} the comment on acme/jobs 7\n"), outcome.err
    bodies = [one["body"] for one in kind.comments]
    assert bodies == ["a person's"] * 120 + ["<!-- gangplan-plan -->\nplan 1\n"]
    paths = {
        "github": {"/repos/acme/jobs/issues/7/comments", "/repos/acme/jobs/issues/comments/121"},
        "gitlab": {
            "/projects/acme%2Fjobs/merge_requests/7/notes",
            "/projects/acme%2Fjobs/merge_requests/7/notes/121",
        },
    }[name]
    assert {path.split("?")[0] for _, path, _ in kind.asked} == paths
    assert {token for *_, token in kind.asked} == {"Bearer secret" if name == "github" else "secret"}
    assert "secret" not in outcome.out + outcome.err


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("forge_name", "most"), [("github", 65_536), ("gitlab", 1_000_000)])
def test_a_long_comment_is_shortened_to_the_limit_of_the_forge(
    forge_name: str,
    most: int,
    forge: tuple[type[Forge], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, address = forge
    monkeypatch.setenv("GANGPLAN_FORGE_TOKEN", "secret")
    flags = ("--forge", forge_name, "--repository", "a/b", "--number", "7", "--api", address)
    for more in (0, 1):
        text = "<!-- gangplan plan -->\n".ljust(most + more, "x")
        (tmp_path / "a.md").write_text(text)
        assert gangplan("report", "comment", tmp_path / "a.md", *flags).code == Exit.CLEAN
        (written,) = (one["body"] for one in kind.comments)
        assert len(written) == most
        assert (written == text) == (more == 0)
        assert written.endswith("(shortened: the report of the job has all of it)\n") == (more == 1)


@pytest.mark.usefixtures("alone")
def test_a_comment_of_someone_else_is_left_alone(
    forge: tuple[type[Forge], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, address = forge
    kind.comments.append({"id": 1, "body": "<!-- gangplan -->\nspoofed"})
    kind.locked.add(1)
    monkeypatch.setenv("GANGPLAN_FORGE_TOKEN", "secret")
    (tmp_path / "a.md").write_text("plan\n")
    flags = ("--repository", "acme/jobs", "--number", "7", "--api", address)
    assert gangplan("report", "comment", tmp_path / "a.md", *flags).code == Exit.CLEAN
    assert [one["body"] for one in kind.comments] == [
        "<!-- gangplan -->\nspoofed",
        "<!-- gangplan -->\nplan\n",
    ]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("flags", "token", "code", "said"),
    [
        ((), "", Exit.INPUT, "the repository is missing\n  help: Write --repository acme/jobs."),
        (("--repository", "a/b"), "x", Exit.INPUT, "the number of the pull request is missing"),
        (
            ("--repository", "a/b", "--number", "7"),
            "",
            Exit.INPUT,
            "Set GITHUB_TOKEN, or GANGPLAN_FORGE_TOKEN.",
        ),
        (("--repository", "a/b", "--number", "x"), "x", Exit.INPUT, "--number x: not a number"),
        (("--forge", "x"), "x", Exit.INPUT, "there is no forge 'x'"),
        (
            ("--repository", "a/b", "--number", "7", "--api", "http://git.example.com"),
            "x",
            Exit.INPUT,
            "a token goes over https alone",
        ),
        (
            ("--repository", "a/b", "--number", "7", "--api", "http://127.0.0.1:9"),
            "x",
            Exit.ENVIRONMENT,
            "http://127.0.0.1:9 cannot be asked",
        ),
    ],
    ids=["repository", "number", "token", "digits", "forge", "http", "network"],
)
def test_a_comment_that_cannot_be_written_is_explained(
    flags: tuple[str, ...], token: str, code: Exit, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if token:
        monkeypatch.setenv("GANGPLAN_FORGE_TOKEN", token)
    (tmp_path / "a.md").write_text("plan\n")
    outcome = gangplan("report", "comment", tmp_path / "a.md", *flags)
    assert (outcome.code, outcome.out) == (code, "")
    assert said in outcome.err
