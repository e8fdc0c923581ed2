"""Volumes of a single pod: a real server accepts them as rendered, and creates the claims."""

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


def test_each_worker_gets_its_own_volumes() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    folder = story.ROOT / "tests/examples/volumes"
    spec = load_workspace(folder / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for kind in ("platform", "tenants", "runs"):
            for body in bodies(folder, kind):
                answer = lab.client.apply_patiently(body)
                assert [*answer.warnings, *drift(body, answer.object)] == []

        def claims() -> list[dict[str, Any]]:
            return lab.client.list("PersistentVolumeClaim", TEAM)

        # Nothing binds the claims here, so workers wait: each has its claim, which ends with it.
        poll(lambda: len(claims()) == 2, 90, lambda: f"{len(claims())} of 2 claims")
        for claim in claims():
            (owner,) = claim["metadata"]["ownerReferences"]
            assert (owner["kind"], claim["metadata"]["name"]) == ("Pod", f"{owner['name']}-volume-work")
            assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
            assert claim["spec"]["storageClassName"] == "fast"
        pods = [one for one in lab.client.list("Pod", TEAM) if "-node-" in one["metadata"]["name"]]
        assert len(pods) == 2
        for pod in pods:
            volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
            assert volumes["volume-vault"]["csi"]["driver"] == "secrets-store.csi.k8s.io"
            assert volumes["volume-certs"]["csi"]["volumeAttributes"] == {
                "csi.cert-manager.io/dns-names": "spectra.example.com",
                "csi.cert-manager.io/issuer-name": "ca",
            }
        key = "fast.storageclass.storage.k8s.io/requests.storage"

        def used() -> str:
            quota = lab.client.get("ResourceQuota", "training", TEAM)
            return str(((quota.get("status") or {}).get("used") or {}).get(key))

        poll(lambda: used() in ("1000Gi",), 60, used)
