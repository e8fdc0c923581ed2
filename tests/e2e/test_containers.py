"""Setup and sidecars on a real control plane: admitted and counted as planned; no run waits for them to
end."""

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
EXAMPLE = story.ROOT / "tests/examples/setup-and-sidecars"
TEAM = "research"


def test_setup_and_sidecars_reach_the_pods_and_are_counted() -> None:
    """Check a worker of 4 CPU and 4 GiB with sidecars of 750m and 768 MiB, and a step that requests 6 GiB."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLE / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.FINISH, after=15, namespace=None, run=None))
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
        assert sets["node"]["resourceUsage"]["cpu"] == "9500m"
        assert sets["node"]["resourceUsage"]["memory"] == "12Gi"

        def workers() -> list[dict[str, Any]]:
            every = lab.client.list("Pod", TEAM)
            return [one for one in every if one["metadata"]["labels"].get("gangplan.dev/role") == "worker"]

        poll(lambda: len(workers()) == 2, 60, lambda: f"{len(workers())} of 2 workers")
        for pod in workers():
            found = [(one["name"], one.get("restartPolicy")) for one in pod["spec"]["initContainers"]]
            wanted = [("fetch", None), ("setup-2", None), ("metrics", "Always"), ("sync", "Always")]
            assert found == wanted

        def complete() -> bool:
            runs = lab.client.list("TrainJob", TEAM)
            return bool(runs) and all(condition(one, "Complete") == "True" for one in runs)

        poll(complete, 90, lambda: "the run is not complete")
