"""A run with several rails on a real control plane: kept as rendered, admitted with all resources, placed."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/rdma-rails"
RAILS = [f"rdma/rail_{number}" for number in range(4)]
NETWORKS = "k8s.v1.cni.cncf.io/networks"


def test_a_run_with_four_rails_is_admitted_and_placed() -> None:
    """Kueue admits pods only where the queue covers each resource that they ask for."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLE / "input").clusters["lab"].spec
    tree = EXAMPLE / "expected/lab"
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
        assert {name: node["resourceUsage"][name] for name in RAILS} == dict.fromkeys(RAILS, "4")
        assert {name: node["flavors"][name] for name in RAILS} == dict.fromkeys(RAILS, "h100")

        def workers() -> list[dict[str, Any]]:
            return [
                pod
                for pod in lab.client.list("Pod", "research")
                if pod["metadata"]["labels"].get("gangplan.dev/role") == "worker"
                and pod["spec"].get("nodeName")
            ]

        poll(lambda: len(workers()) == 4, 60, lambda: f"{len(workers())} of 4 workers have a node")
        assert len({pod["spec"]["nodeName"] for pod in workers()}) == 4
        for pod in workers():
            assert pod["metadata"]["annotations"][NETWORKS] == ",".join(f"fabric/rail-{n}" for n in range(4))
