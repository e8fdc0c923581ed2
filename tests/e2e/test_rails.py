"""Runs with rails, disk, huge pages and devices: stored as rendered, admitted with all of it, placed."""

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
EXAMPLES = story.ROOT / "tests/examples"
# Example -> its pool, and what the queue counts for four workers.
ASKED = {
    "rdma-rails": ("h100", {f"rdma/rail_{number}": "4" for number in range(4)}),
    "other-devices": (
        "fpga",
        {"ephemeral-storage": "3200Gi", "hugepages-1Gi": "64Gi", "example.com/fpga": "8"},
    ),
}
NETWORKS = "k8s.v1.cni.cncf.io/networks"


@pytest.mark.parametrize("example", ASKED)
def test_runs_with_rails_and_devices_are_admitted_and_placed(example: str) -> None:
    """Kueue admits pods only if the queue covers each resource that they request."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLES / example / "input").clusters["lab"].spec
    tree = render_example(example) / "lab"
    pool, amounts = ASKED[example]
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((tree / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = lab.client.apply_patiently(body)
                    assert [*answer.warnings, *drift(body, answer.object)] == []

        def workload() -> dict[str, Any]:
            found = lab.client.list("Workload", "research")
            return found[0] if found else {}

        poll(lambda: condition(workload(), "Admitted") == "True", 60, lambda: f"{workload().get('status')}")
        sets = workload()["status"]["admission"]["podSetAssignments"]
        (node,) = (one for one in sets if one["name"] == "node")
        assert {name: node["resourceUsage"][name] for name in amounts} == amounts
        assert {name: node["flavors"][name] for name in amounts} == dict.fromkeys(amounts, pool)

        def workers() -> list[dict[str, Any]]:
            return [
                pod
                for pod in lab.client.list("Pod", "research")
                if pod["metadata"]["labels"].get("gangplan.dev/role") == "worker"
                and pod["spec"].get("nodeName")
            ]

        poll(lambda: len(workers()) == 4, 60, lambda: f"{len(workers())} of 4 workers have a node")
        assert len({pod["spec"]["nodeName"] for pod in workers()}) == 4
        rails = ",".join(f"fabric/rail-{n}" for n in range(4)) if example == "rdma-rails" else None
        assert [(pod["metadata"].get("annotations") or {}).get(NETWORKS) for pod in workers()] == [rails] * 4
