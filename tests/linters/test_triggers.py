"""Tekton Triggers: its listener, run on webhooks, creates the right PipelineRun or nothing."""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.gitops.test_ci import made
from tests.lab import programs as lab
from tests.linters import programs
from tests.linters.test_tekton import said

Object = dict[str, Any]
SECRET, SHA, ZEROS = "s3cret", "da1560886d4f094c3e6c9ef40349f7d38b5d27d7", "0" * 40
HOSTILE = "\"; $(params.token-secret) $(tt.params.url) $(uid) $(touch x) '"
URL = "https://git.example.com/acme/jobs.git"
VARIANTS = {
    "github": (),
    "gitlab": ("--forge", "gitlab"),
    "argocd": ("--wait", "argocd", "--namespace", "tools"),
}
# Bodies as the forges send them, without the fields that are not read.
# gangplan/gitops/tekton.py names their source.
REPOSITORY = {"id": 1, "full_name": "acme/jobs", "clone_url": URL}
PROJECT = {"id": 14, "path_with_namespace": "acme/jobs", "git_http_url": URL}
BODIES: dict[tuple[str, str], Object] = {
    ("github", "pull_request"): {
        "action": "opened",
        "number": 7,
        "pull_request": {
            "number": 7,
            "title": HOSTILE,
            "head": {"ref": HOSTILE, "sha": SHA, "repo": {"id": 1}},
            "base": {"ref": "main", "repo": {"id": 1}},
        },
        "repository": REPOSITORY,
    },
    ("github", "push"): {"ref": "refs/heads/main", "after": SHA, "deleted": False, "repository": REPOSITORY},
    ("gitlab", "Merge Request Hook"): {
        "project": PROJECT,
        "object_attributes": {
            "action": "open",
            "iid": 7,
            "title": HOSTILE,
            "source_branch": HOSTILE,
            "target_branch": "main",
            "source_project_id": 14,
            "target_project_id": 14,
            "last_commit": {"id": SHA, "message": HOSTILE},
        },
        "changes": {},
    },
    ("gitlab", "Push Hook"): {"ref": "refs/heads/main", "after": SHA, "project": PROJECT},
}
PULLS = {"github": "pull_request", "gitlab": "Merge Request Hook"}
PUSHES = {"github": "push", "gitlab": "Push Hook"}
GITHUB_ACTION, GITLAB_ACTION = "action", "object_attributes.action"
# The forge, what is changed in a body, and whether that starts a run.
PULL_CASES: dict[str, tuple[str, Mapping[str, Any], bool]] = {
    "opened": ("github", {}, True),
    "more commits": ("github", {GITHUB_ACTION: "synchronize"}, True),
    "opened again": ("github", {GITHUB_ACTION: "reopened"}, True),
    "another target": (
        "github",
        {GITHUB_ACTION: "edited", "changes": {"base": {"ref": {"from": "b"}}}},
        True,
    ),
    "another title": ("github", {GITHUB_ACTION: "edited", "changes": {"title": {"from": "b"}}}, False),
    "closed": ("github", {GITHUB_ACTION: "closed"}, False),
    "labelled": ("github", {GITHUB_ACTION: "labeled"}, False),
    "of a fork": ("github", {"pull_request.head.repo": {"id": 2}}, False),
    "of a fork that is gone": ("github", {"pull_request.head.repo": None}, False),
    "to another branch": ("github", {"pull_request.base.ref": "next"}, False),
    "to a branch like it": ("github", {"pull_request.base.ref": "main2"}, False),
    "GitLab: opened": ("gitlab", {}, True),
    "GitLab: more commits": ("gitlab", {GITLAB_ACTION: "update", "object_attributes.oldrev": SHA}, True),
    "GitLab: opened again": ("gitlab", {GITLAB_ACTION: "reopen"}, True),
    "GitLab: another target": (
        "gitlab",
        {GITLAB_ACTION: "update", "changes": {"target_branch": {"previous": "b", "current": "main"}}},
        True,
    ),
    "GitLab: another title": ("gitlab", {GITLAB_ACTION: "update"}, False),
    "GitLab: closed": ("gitlab", {GITLAB_ACTION: "close"}, False),
    "GitLab: merged": ("gitlab", {GITLAB_ACTION: "merge"}, False),
    "GitLab: of a fork": ("gitlab", {"object_attributes.source_project_id": 15}, False),
    "GitLab: to another branch": ("gitlab", {"object_attributes.target_branch": "next"}, False),
}
PUSH_CASES: dict[str, tuple[Mapping[str, Any], bool]] = {
    "to the branch": ({}, True),
    "to another branch": ({"ref": "refs/heads/next"}, False),
    "of a tag of its name": ({"ref": "refs/tags/main"}, False),
    "that removes it": ({"after": ZEROS, "deleted": True}, False),
}


def objects(folder: Path, *flags: str) -> list[Object]:
    """Return all objects that are written with these flags."""
    texts = made("tekton", folder, "--start", "triggers", *flags).values()
    return [body for text in texts for body in plain.load_all(text)]


def changed(body: Object, changes: Mapping[str, Any]) -> Object:
    """Return a body with other values in some of its fields."""
    found = copy.deepcopy(body)
    for path, value in changes.items():
        *way, last = path.split(".")
        here = found
        for part in way:
            here = here[part]
        here[last] = value
    return found


def event(forge: str, kind: str, changes: Mapping[str, Any], secret: str = SECRET) -> Object:
    """Return a webhook, signed as its forge does."""
    text = json.dumps(changed(BODIES[forge, kind], changes))
    digest = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    headers = {
        "github": {"X-GitHub-Event": kind, "X-Hub-Signature-256": f"sha256={digest}"},
        "gitlab": {"X-Gitlab-Event": kind, "X-Gitlab-Token": secret},
    }[forge]
    return {"headers": {"Content-Type": "application/json", **headers}, "body": text}


def created(written: list[Object], *events: Object) -> list[list[Object]]:
    """Return what the listener creates for each event."""
    program = programs.go(lab.TEKTON_CHECK)
    (place,) = (body["metadata"]["namespace"] for body in written if body["kind"] == "EventListener")
    listening = [body for body in written if body["apiVersion"].startswith("triggers.tekton.dev/")]
    given = {
        "objects": listening,
        "secrets": {f"{place}/gangplan-webhook/secret": SECRET},
        "events": events,
    }
    done = subprocess.run(
        [program, "events"], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: list[list[Object]] = json.loads(done.stdout)
    return answers


def params(run: Object) -> dict[str, str]:
    """Return the parameters of a run."""
    return {one["name"]: one["value"] for one in run["spec"]["params"]}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_webhook_accepts_the_listener(name: str, tmp_path: Path) -> None:
    written = objects(tmp_path, *VARIANTS[name])
    own = [body for body in written if "tekton.dev/" in body["apiVersion"]]
    kinds = {"Task", "Pipeline", "TriggerBinding", "TriggerTemplate", "EventListener"}
    assert {body["kind"] for body in own} == kinds
    assert said(own) == [""] * len(own)


@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        ("EventListener", '"interceptors"', '"interceptorz"', 'unknown field "interceptorz"'),
        ("EventListener", '"securityContext"', '"command"', "command"),
        ("TriggerTemplate", "$(tt.params.revision)", "$(tt.params.revison)", "undeclared param"),
    ],
)
def test_the_webhook_refuses_mistakes_in_the_listener(
    kind: str, old: str, new: str, words: str, tmp_path: Path
) -> None:
    texts = [json.dumps(body) for body in objects(tmp_path) if body["kind"] == kind]
    assert all(old in text for text in texts)
    assert all(words in answer for answer in said([json.loads(text.replace(old, new)) for text in texts]))


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_only_relevant_pull_requests_start_a_run(forge: str, tmp_path: Path) -> None:
    cases = {name: case for name, case in PULL_CASES.items() if case[0] == forge}
    written = objects(tmp_path, "--forge", forge)
    answers = created(written, *(event(forge, PULLS[forge], changes) for _, changes, _ in cases.values()))
    started = dict(zip(cases, answers, strict=True))
    assert {name for name, runs in started.items() if runs} == {
        name for name, case in cases.items() if case[2]
    }
    for runs in started.values():
        for run in runs:
            assert len(runs) == 1
            assert run["metadata"]["generateName"] == "gangplan-pull-request-"
            assert run["spec"]["pipelineRef"] == {"name": "gangplan"}
            # Nothing of its branch, title or message is anywhere in the run, and no other text of its author.
            assert params(run) == {
                "repo-url": URL,
                "revision": SHA,
                "token-secret": "gangplan-forge",
                "base-branch": "main",
                "repository": "acme/jobs",
                "number": "7",
            }
            assert "touch" not in json.dumps(run)
            assert said([run]) == [""]


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_only_pushes_to_the_branch_start_a_run(forge: str, tmp_path: Path) -> None:
    written = objects(tmp_path, "--forge", forge, "--wait", "flux")
    events = [event(forge, PUSHES[forge], changes) for changes, _ in PUSH_CASES.values()]
    started = dict(zip(PUSH_CASES, created(written, *events), strict=True))
    assert {name for name, runs in started.items() if runs} == {"to the branch"}
    (run,) = started["to the branch"]
    assert run["metadata"]["generateName"] == "gangplan-push-"
    assert params(run) == {
        "repo-url": URL,
        "revision": SHA,
        "token-secret": "gangplan-forge",
        "wait": "true",
    }
    assert said([run]) == [""]


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_unsigned_forged_and_other_events_start_no_run(forge: str, tmp_path: Path) -> None:
    """The senders do not know the secret, or the events are of other kinds."""
    written = objects(tmp_path, "--forge", forge)
    pull = event(forge, PULLS[forge], {})
    unsigned = {
        **pull,
        "headers": {k: v for k, v in pull["headers"].items() if "Hub" not in k and "Token" not in k},
    }
    other = json.loads(json.dumps(pull).replace(f'"{PULLS[forge]}"', '"issues"'))
    assert other != pull
    forged = event(forge, PULLS[forge], {}, secret="guess")
    assert created(written, unsigned, forged, other) == [[], [], []]


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_a_hostile_value_stays_a_value(forge: str, tmp_path: Path) -> None:
    """This holds in a field that a forge fills, too: no quote ends its text, and Tekton substitutes nothing
    in it."""
    written = objects(tmp_path, "--forge", forge)
    ((run,),) = created(written, event(forge, PUSHES[forge], {"after": HOSTILE}))
    given = params(run)
    text = given.pop("revision")
    assert given == {"repo-url": URL, "token-secret": "gangplan-forge"}
    assert text.startswith('"; $$(params.token-secret) ')
    assert text.endswith(" $$(touch x) '")
    ((plain_run,),) = created(written, event(forge, PUSHES[forge], {}))
    assert json.dumps(run["spec"]).replace(json.dumps(text), json.dumps(SHA)) == json.dumps(plain_run["spec"])
    assert said([run]) == [""]
