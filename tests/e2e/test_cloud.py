"""Identities and buckets of a cloud, as rendered, reach a real server and the pods of a run."""

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


@pytest.mark.parametrize("example", ["cloud-identity", "bucket-folder"])
def test_cloud_examples_reach_the_server_and_the_pods_unchanged(example: str) -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the examples are for the versions of profile new")
    folder = story.ROOT / "tests/examples" / example
    spec = load_workspace(folder / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for kind in ("platform", "tenants", "runs"):
            for body in bodies(folder, kind):
                answer = lab.client.apply_patiently(body)
                assert [*answer.warnings, *drift(body, answer.object)] == []

        def pods() -> list[dict[str, Any]]:
            return lab.client.list("Pod", TEAM)

        poll(lambda: len(pods()) == 3, 90, lambda: f"{len(pods())} of 3 pods")
        account = lab.client.get("ServiceAccount", "training", TEAM)
        notes = set(account["metadata"]["annotations"])
        for pod in pods():
            assert pod["spec"]["serviceAccountName"] == "training"
            volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
            assert not any(name.startswith("kube-api-access") for name in volumes)
            if example == "cloud-identity":
                assert "azure.workload.identity/client-id" in notes
                assert pod["metadata"]["labels"]["azure.workload.identity/use"] == "true"
            else:
                assert "iam.gke.io/gcp-service-account" in notes
                assert pod["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
                assert volumes["bucket-spectra"]["csi"]["driver"] == "gcsfuse.csi.storage.gke.io"
                assert volumes["bucket-models"]["csi"]["volumeAttributes"]["bucketName"] == "example-models"
