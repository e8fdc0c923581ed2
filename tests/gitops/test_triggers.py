"""Tekton Triggers: the listener starts what Pipelines as Code would start, and may do no more than that."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.gitops.tekton import EVENTS, FILLED
from tests.gitops.test_ci import made
from tests.gitops.test_tekton import objects, texts
from tests.workspaces import gangplan

Object = dict[str, Any]
FLAGS = {
    "github": (),
    "gitlab": ("--forge", "gitlab", "--branch", "release/1.0"),
    "argocd": ("--wait", "argocd", "--namespace", "tools"),
}
NAMES = {"pull-request", "push"}


@pytest.fixture(params=FLAGS)
def flags(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the flags of each form, without those that choose what starts it."""
    return FLAGS[request.param]


@pytest.fixture
def found(flags: tuple[str, ...], tmp_path: Path) -> dict[str, Object]:
    """Return the objects of each form."""
    return objects(tmp_path, "--start", "triggers", *flags)


def run_of(found: dict[str, Object], name: str) -> Object:
    """Return the PipelineRun that an event creates."""
    (run,) = found[f"TriggerTemplate/gangplan-{name}"]["spec"]["resourcetemplates"]
    assert isinstance(run, dict)
    return run


def test_runs_equal_those_of_pipelines_as_code(
    flags: tuple[str, ...], found: dict[str, Object], tmp_path: Path
) -> None:
    """No run starts twice: the PipelineRuns of Pipelines as Code are not written."""
    others = objects(tmp_path / "pac", *flags)
    branch = flags[-1] if "--branch" in flags else "main"
    for name in NAMES:
        text = json.dumps(others[f"PipelineRun/gangplan-{name}-"]["spec"])
        for field, filled in FILLED.items():
            own = {"secret": "gangplan-forge", "base": branch}.get(field, f"$(tt.params.{field})")
            text = text.replace(filled, own)
        run = run_of(found, name)
        assert run["spec"] == json.loads(text)
        assert run["metadata"] == {"generateName": f"gangplan-{name}-"}
    assert not any(name.startswith("PipelineRun/") for name in found)


def test_an_event_only_sets_parameters(found: dict[str, Object]) -> None:
    """Anyone may have written a body: no part of it becomes a name, a script or a Pipeline."""
    bindings = {f"TriggerBinding/gangplan-{name}" for name in NAMES}
    assert {
        name for name, body in found.items() if any("$(body." in text for text in texts(body))
    } == bindings
    for name in NAMES:
        bound = {
            one["name"]: one["value"] for one in found[f"TriggerBinding/gangplan-{name}"]["spec"]["params"]
        }
        declared = {one["name"] for one in found[f"TriggerTemplate/gangplan-{name}"]["spec"]["params"]}
        run = run_of(found, name)
        filled = [text for text in texts(run) if "$(" in text]
        assert set(bound) == declared == {text.removeprefix("$(tt.params.")[:-1] for text in filled}
        assert sorted(filled) == sorted(one["value"] for one in run["spec"]["params"] if "$(" in one["value"])
        # The author of a pull request chooses the name of its branch, its title and its labels.
        assert not any(re.search(r"head\.ref|source_branch|title|label", value) for value in bound.values())


def test_each_event_is_signed_and_filtered(flags: tuple[str, ...], found: dict[str, Object]) -> None:
    spec = found["EventListener/gangplan"]["spec"]
    forge = "gitlab" if "gitlab" in flags else "github"
    assert {one["name"] for one in spec["triggers"]} == {f"gangplan-{name}" for name in NAMES}
    for one in spec["triggers"]:
        signed, filtered = one["interceptors"]
        assert signed["ref"] == {"kind": "ClusterInterceptor", "name": forge}
        told = EVENTS[forge][one["name"].removeprefix("gangplan-")]
        assert {param["name"]: param["value"] for param in signed["params"]} == {
            "secretRef": {"secretName": "gangplan-webhook", "secretKey": "secret"},
            "eventTypes": [told["kind"]],
        }
        assert filtered["ref"] == {"kind": "ClusterInterceptor", "name": "cel"}
        assert (flags[-1] if "--branch" in flags else "main") in filtered["params"][0]["value"]
        assert one["template"] == {"ref": one["name"]}
        assert one["bindings"] == [{"kind": "TriggerBinding", "ref": one["name"]}]


def test_the_listener_may_create_runs_and_read_no_secret(
    flags: tuple[str, ...], found: dict[str, Object]
) -> None:
    """Tekton's own ClusterRoles for listeners read the Secrets of all namespaces and impersonate."""
    namespace = "tools" if "tools" in flags else "ci"
    account = found["EventListener/gangplan"]["spec"]["serviceAccountName"]
    listens = {name: body for name, body in found.items() if name.endswith("/gangplan-listener")}
    rules = [rule for body in listens.values() for rule in body.get("rules", ())]
    rights = {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
    assert {kind for kind, verb in rights if verb not in ("get", "list", "watch")} == {"pipelineruns"}
    assert {verb for kind, verb in rights if kind == "pipelineruns"} == {"create"}
    assert {group for rule in rules for group in rule["apiGroups"]} == {"tekton.dev", "triggers.tekton.dev"}
    bound = [body for name, body in found.items() if "RoleBinding/gangplan-listener" in name]
    assert len(bound) == 2
    for body in bound:
        assert f"{body['roleRef']['kind']}/{body['roleRef']['name']}" in found
        (subject,) = body["subjects"]
        assert (subject["name"], subject["namespace"]) == (account, namespace)
    own = [body for name, body in found.items() if "gangplan-wait" not in name and "Cluster" not in name]
    places = {body["metadata"].get("namespace") for body in own}
    assert places == {namespace, None}  # the Tasks and the Pipeline go where they are applied


def test_triggers_need_a_forge_that_sends_events(root: Path, tmp_path: Path) -> None:
    outcome = gangplan(
        "gitops", "tekton", "-C", root, "--start", "triggers", "--forge", "none", "-o", tmp_path / "out"
    )
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert "no forge that sends events" in outcome.err
    assert not (tmp_path / "out").exists()


def test_triggers_are_written_to_one_file(tmp_path: Path) -> None:
    tekton = {".tekton/gangplan-pipeline.yaml", ".tekton/gangplan-tasks.yaml"}
    assert set(made("tekton", tmp_path, "--start", "triggers")) == tekton | {"tekton/gangplan-triggers.yaml"}
