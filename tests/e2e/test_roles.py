"""Roles on a real control plane: pods of each shape, counted by Kueue; the chief or the workers end the
run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/roles"
TEAM = "research"
PODS = {
    "recommend": {"worker": 2, "chief": 1, "ps": 2, "evaluator": 1},
    "stream": {"worker": 2, "loader": 3},
}
CPU = {"node": "8", "chief": "4", "ps": "4", "evaluator": "1", "loader": "1500m"}


def test_each_role_has_its_pods_and_its_run_completes() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLE / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((render_example(EXAMPLE.name) / "lab" / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = lab.client.apply_patiently(body)
                    assert [*answer.warnings, *drift(body, answer.object)] == []

        def pods() -> dict[str, dict[str, list[dict[str, Any]]]]:
            found: dict[str, dict[str, list[dict[str, Any]]]] = {}
            for pod in lab.client.list("Pod", TEAM):
                labels = pod["metadata"]["labels"]
                role = found.setdefault(labels["gangplan.dev/job"], {})
                role.setdefault(labels["gangplan.dev/role"], []).append(pod)
            return found

        def counts() -> dict[str, dict[str, int]]:
            return {job: {role: len(some) for role, some in roles.items()} for job, roles in pods().items()}

        poll(lambda: counts() == PODS, 90, lambda: f"{counts()}")
        for workload in lab.client.list("Workload", TEAM):
            assert condition(workload, "Admitted") == "True"
            for one in workload["status"]["admission"]["podSetAssignments"]:
                assert one["resourceUsage"]["cpu"] == CPU[one["name"]]

        (chief,) = pods()["recommend"]["chief"]
        env = {one["name"]: one.get("value") for one in chief["spec"]["containers"][0]["env"]}
        told = json.loads(str(env["TF_CONFIG"]).replace("$(NODE_RANK)", "0"))
        hosts = {pod["spec"]["hostname"] for pod in pods()["recommend"]["ps"]}
        assert {one.partition(".")[0] for one in told["cluster"]["ps"]} == hosts
        env = {
            one["name"]: one.get("value")
            for one in pods()["stream"]["worker"][0]["spec"]["containers"][0]["env"]
        }
        assert {one.partition(".")[0] for one in str(env["LOADER_HOSTS"]).split(",")} == {
            pod["spec"]["hostname"] for pod in pods()["stream"]["loader"]
        }

        for pod in (chief, *pods()["stream"]["worker"]):
            succeed(lab, pod)

        def complete() -> bool:
            runs = lab.client.list("TrainJob", TEAM)
            return len(runs) == 2 and all(condition(one, "Complete") == "True" for one in runs)

        poll(complete, 60, lambda: "not all runs are complete")


def succeed(lab: Lab, pod: dict[str, Any]) -> None:
    """Let a pod succeed, as the kubelet reports it."""
    pod = lab.client.get("Pod", pod["metadata"]["name"], TEAM)
    terminated = {"exitCode": 0, "reason": "Completed"}
    statuses = [
        {**one, "ready": False, "started": False, "state": {"terminated": terminated}}
        for one in pod["status"]["containerStatuses"]
    ]
    conditions = [one for one in pod["status"]["conditions"] if one["type"] != "Ready"]
    change = {"status": {"phase": "Succeeded", "containerStatuses": statuses, "conditions": conditions}}
    lab.client.patch("Pod", pod["metadata"]["name"], change, TEAM, "status")
