"""PersistentVolumes of a team: a real control plane binds each to its claim, and retains its data."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.e2e.test_queues import bodies
from tests.lab import fixtures
from tests.lab.client import poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
TEAM = "research"
NAMES = {"corpus", "models", "notes", "spectra"}


def test_volumes_are_bound_to_their_claims_and_retained() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    folder = story.ROOT / "tests/examples/static-volumes"
    spec = load_workspace(folder / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for kind in ("platform", "tenants", "runs"):
            for body in bodies(folder, kind):
                answer = lab.client.apply_patiently(body)
                assert [*answer.warnings, *drift(body, answer.object)] == []

        def bound() -> dict[str, Any]:
            claims = lab.client.list("PersistentVolumeClaim", TEAM)
            return {
                one["metadata"]["name"]: one["spec"]["volumeName"]
                for one in claims
                if (one.get("status") or {}).get("phase") == "Bound"
            }

        poll(lambda: set(bound()) == NAMES, 90, lambda: f"bound: {bound()}")
        assert bound() == {name: f"gangplan-{TEAM}.{name}" for name in NAMES}

        def workers() -> list[dict[str, Any]]:
            pods = lab.client.list("Pod", TEAM)
            return [
                one for one in pods if "-node-" in one["metadata"]["name"] and one["spec"].get("nodeName")
            ]

        poll(lambda: len(workers()) == 2, 90, lambda: f"{len(workers())} of 2 workers have a node")
        kept = {one["spec"]["persistentVolumeReclaimPolicy"] for one in lab.client.list("PersistentVolume")}
        assert kept == {"Retain"}
