"""Files next to a spec, on a real control plane: stored as rendered, immutable, mounted by the pods."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import ApiError, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/files-beside-the-spec"
TEAM = "research"


def test_pods_mount_the_files_of_their_run() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLE / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        applied: list[dict[str, Any]] = []
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((render_example(EXAMPLE.name) / "lab" / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = lab.client.apply_patiently(body)
                    assert [*answer.warnings, *drift(body, answer.object)] == []
                    applied.append(body)

        (made,) = (one for one in applied if "ds.json" in one.get("data", ()))
        kept = lab.client.get("ConfigMap", made["metadata"]["name"], TEAM)
        inputs = EXAMPLE / "input/specs/research"
        for name in ("ds.json", "files/run.yaml"):
            assert kept["data"][name.rpartition("/")[2]].encode() == (inputs / name).read_bytes()
        bytes_there = base64.b64decode(kept["binaryData"]["start.bin"])
        assert bytes_there == (inputs / "files/start.bin").read_bytes()
        with pytest.raises(ApiError, match="immutable"):
            lab.client.apply({**made, "data": {**made["data"], "ds.json": "{}"}})

        def pods() -> list[dict[str, Any]]:
            return list(lab.client.list("Pod", TEAM))

        poll(lambda: len(pods()) == 3, 60, lambda: f"{len(pods())} of 3 pods")
        for pod in pods():
            (box,) = pod["spec"]["containers"]
            mounted = {
                one["mountPath"]: one["subPath"] for one in box["volumeMounts"] if one["name"] == "files"
            }
            assert mounted == {f"/etc/tune/{key}": key for key in ("ds.json", "run.yaml", "start.bin")}
            (volume,) = (one for one in pod["spec"]["volumes"] if one["name"] == "files")
            assert volume["configMap"]["name"] == made["metadata"]["name"]
