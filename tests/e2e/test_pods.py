"""What a spec says about pods reaches real pods: working directory, variables, files, scratch, exit codes."""

from __future__ import annotations

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
EXAMPLE = story.ROOT / "tests/examples/pods"
TEAM = "research"


def test_pods_have_what_their_spec_says() -> None:
    """The API server stores it as rendered, Kueue counts it as planned, and JobSet's pods have it."""
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

        def workload() -> dict[str, Any]:
            found = lab.client.list("Workload", TEAM)
            return found[0] if found else {}

        poll(lambda: condition(workload(), "Admitted") == "True", 60, lambda: f"{workload().get('status')}")
        sets = {one["name"]: one for one in workload()["status"]["admission"]["podSetAssignments"]}
        assert sets["node"]["resourceUsage"]["ephemeral-storage"] == "400Gi"
        assert sets["launcher"]["resourceUsage"].get("ephemeral-storage", "0") == "0"

        def pods(role: str) -> list[dict[str, Any]]:
            every = lab.client.list("Pod", TEAM)
            return [one for one in every if one["metadata"]["labels"].get("gangplan.dev/role") == role]

        poll(lambda: len(pods("worker")) == 2, 60, lambda: f"{len(pods('worker'))} of 2 workers")
        poll(lambda: len(pods("launcher")) == 1, 60, lambda: "no launcher")
        for pod in pods("worker"):
            (box,) = pod["spec"]["containers"]
            assert box["resources"]["requests"]["ephemeral-storage"] == "200Gi"
            assert volumes(pod)["scratch"]["emptyDir"] == {"sizeLimit": "200Gi"}
        assert "scratch" not in volumes(pods("launcher")[0])
        for pod in (*pods("worker"), *pods("launcher")):
            (box,) = pod["spec"]["containers"]
            assert box["workingDir"] == "/workspace"
            env = {one["name"]: one.get("valueFrom", one.get("value")) for one in box["env"]}
            assert env["NODE"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}
            assert env["ROOM"] == {"resourceFieldRef": {"resource": "limits.memory", "divisor": "0"}}
            assert env["ALGO"] == {"configMapKeyRef": {"name": "tuning", "key": "algo"}}
            assert (env["SEED"], env["SCRATCH_DIR"]) == ("7", "/scratch")
            assert volumes(pod)["files-tuning"]["configMap"]["name"] == "tuning"
        (launcher,) = (one for one in lab.client.list("Job", TEAM) if "launcher" in one["metadata"]["name"])
        (codes,) = (
            one["onExitCodes"]
            for one in launcher["spec"]["podFailurePolicy"]["rules"]
            if "onExitCodes" in one
        )
        assert codes == {"containerName": "node", "operator": "In", "values": [42, 193, 196, 197]}


def volumes(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the volumes of a pod by name."""
    return {one["name"]: one for one in pod["spec"]["volumes"]}
