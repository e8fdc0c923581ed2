"""Jobs that must not share nodes, on a real scheduler: no node has pods of both."""

from __future__ import annotations

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/neighbours"
TEAM = "research"


def test_jobs_kept_apart_share_no_node() -> None:
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

        def nodes() -> dict[str, list[str]]:
            """Return the nodes of the workers, by job."""
            found: dict[str, list[str]] = {}
            for pod in lab.client.list("Pod", TEAM):
                labels = pod["metadata"]["labels"]
                if labels["gangplan.dev/role"] == "worker" and pod["spec"].get("nodeName"):
                    found.setdefault(labels["gangplan.dev/job"], []).append(pod["spec"]["nodeName"])
            return found

        counts = {"bench": 2, "train": 2, "watch": 1}
        poll(
            lambda: {job: len(some) for job, some in nodes().items()} == counts,
            90,
            lambda: f"{nodes()}",
        )
        assert not {*nodes()["bench"]} & {*nodes()["train"]}
