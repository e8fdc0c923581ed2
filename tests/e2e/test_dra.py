"""GPUs and network cards by dynamic resource allocation: a real scheduler allocates what pods request as an
extended resource, and what they claim.

Kubernetes has the gate DRAExtendedResource on by default from 1.36; the lab turns it on in 1.34.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.model.version import parse_version
from gangplan.report.kueue_config import render_kueue_config
from gangplan.spec.cluster import Cluster
from gangplan.workspace import load_workspace
from tests import plain
from tests.e2e import story, world
from tests.e2e.test_queues import bodies
from tests.lab import fixtures
from tests.lab.client import ApiError, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.validate.test_claim_templates import ACCEPTED, REFUSED

pytestmark = pytest.mark.e2e
TEAM, GPUS, DRIVER = "research", "nvidia.com/gpu", "gpu.nvidia.com"


@pytest.mark.parametrize("gates", [("DRAExtendedResource",), ()], ids=["on", "off"])
def test_a_run_gets_its_gpus_from_a_driver(gates: tuple[str, ...]) -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    folder = story.ROOT / "tests/examples/dra-gpus"
    spec = load_workspace(folder / "input").clusters["lab"].spec
    with Lab(profile, gates=gates) as lab:
        nodes = world.nodes(spec)
        for node in nodes:  # no device plugin reports what they have
            node["allocatable"].pop(GPUS, None)
        lab.add_nodes(nodes)
        for body in offered(spec, nodes):
            lab.client.create(body)
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for kind in ("platform", "tenants", "runs"):
            for body in bodies(folder, kind):
                lab.client.apply_patiently(body)

        def workers() -> list[dict[str, Any]]:
            pods = lab.client.list("Pod", TEAM)
            return [
                one for one in pods if "-node-" in one["metadata"]["name"] and one["spec"].get("nodeName")
            ]

        if not gates:  # what rule device-class-version reports
            poll(lambda: len(refused(lab)) == 2, 120, lambda: f"{refused(lab)}")
            assert all(f"Insufficient {GPUS}" in message for message in refused(lab))
            assert workers() == []
            return
        poll(lambda: len(workers()) == 2, 120, lambda: lab.problems())
        assert len({one["spec"]["nodeName"] for one in workers()}) == 2
        claims = lab.client.list("ResourceClaim", TEAM)
        results = [one["status"]["allocation"]["devices"]["results"] for one in claims]
        assert [len(one) for one in results] == [8, 8]
        assert {one["driver"] for result in results for one in result} == {DRIVER}
        (workload,) = lab.client.list("Workload", TEAM)
        usage = workload["status"]["admission"]["podSetAssignments"]
        assert {one["resourceUsage"].get(GPUS) for one in usage} == {"16", None}

        def used() -> str:
            quota = lab.client.get("ResourceQuota", "training", TEAM)
            return str(((quota.get("status") or {}).get("used") or {}).get(f"requests.{GPUS}"))

        poll(lambda: used() == "16", 60, used)


def refused(lab: Lab) -> list[str]:
    """Return the scheduler's messages about workers that it finds no node for."""
    pods = [one for one in lab.client.list("Pod", TEAM) if "-node-" in one["metadata"]["name"]]
    conditions = [one for pod in pods for one in (pod.get("status") or {}).get("conditions") or ()]
    return [str(one.get("message")) for one in conditions if one.get("reason") == "Unschedulable"]


def offered(spec: Cluster, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the driver and its class publish: a ResourceSlice for each node of the pool."""
    gpu = spec.node_pools["h100"].gpu
    assert gpu is not None
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    found: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": gpu.device_class},
            "spec": {"selectors": [selector], "extendedResourceName": gpu.resource},
        }
    ]
    for node in nodes:
        name = node["name"]
        if name.startswith("pool-h100-"):
            devices = [{"name": f"gpu-{number}"} for number in range(gpu.count)]
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            found.append(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": f"{name}-gpus"},
                    "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices},
                }
            )
    return found


NICS, CLASS, CARDS = "example.com/mrdma", "mrdma.google.com", "mrdma.example.com"
CLAIMED = "mrdma.google.com.deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize("is_mapped", [True, False], ids=["mapped", "unmapped"])
def test_a_run_claims_its_cards(is_mapped: bool) -> None:
    """Kueue counts the claims as gangplan does, with the mapping that `cluster kueue-config` prints."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name not in ("new", "middle"):  # middle has Kueue 0.18, the first that counts claims
        pytest.skip("Kueue counts no claims")
    folder = story.ROOT / "tests/examples/claimed-nics"
    cluster = load_workspace(folder / "input").clusters["lab"]
    printed = plain.load(render_kueue_config(cluster, parse_version(profile.kueue)))
    settings = {"kueue": {"resources": printed["resources"]}} if is_mapped else {}
    with Lab(profile, settings=settings) as lab:
        nodes = world.nodes(cluster.spec)
        for node in nodes:  # no device plugin reports the cards
            node["allocatable"].pop(NICS, None)
        lab.add_nodes(nodes)
        for body in offered_cards(nodes):
            lab.client.create(body)
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for kind in ("platform", "tenants", "runs"):
            for body in bodies(folder, kind):
                lab.client.apply_patiently(body)

        def message() -> str:
            found = [one for one in lab.client.list("Workload", TEAM) if one.get("status")]
            conditions = [one for workload in found for one in workload["status"].get("conditions") or ()]
            return "\n".join(str(one.get("message")) for one in conditions)

        if not is_mapped:  # what the proof of admission says about a class without a resource
            words = f"DeviceClass {CLASS} is not mapped in DRA configuration"
            poll(lambda: words in message(), 120, message)
            return

        def workers() -> list[dict[str, Any]]:
            pods = lab.client.list("Pod", TEAM)
            return [
                one for one in pods if "-node-" in one["metadata"]["name"] and one["spec"].get("nodeName")
            ]

        poll(lambda: len(workers()) == 4, 180, lambda: f"{message()}\n{lab.problems()}")
        assert len({one["spec"]["nodeName"] for one in workers()}) == 4
        claims = lab.client.list("ResourceClaim", TEAM)
        results = [one["status"]["allocation"]["devices"]["results"] for one in claims]
        assert [len(one) for one in results] == [8] * 4
        assert {one["driver"] for result in results for one in result} == {CARDS}
        (workload,) = lab.client.list("Workload", TEAM)
        usage = workload["status"]["admission"]["podSetAssignments"]
        assert {one["name"]: one["resourceUsage"].get(NICS) for one in usage} == {
            "node": "32",
            "launcher": None,
        }

        def used() -> str:
            quota = lab.client.get("ResourceQuota", "training", TEAM)
            return str(((quota.get("status") or {}).get("used") or {}).get(CLAIMED))

        poll(lambda: used() == "32", 60, used)


def test_the_api_server_says_the_same_of_templates() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name == "old":
        pytest.skip("Kubernetes 1.33 has no resource.k8s.io/v1")
    answers: dict[str, int] = {}
    with Lab(profile) as lab:
        for name, body in (ACCEPTED | {name: body for name, (body, _) in REFUSED.items()}).items():
            metadata = {**body["metadata"], "namespace": "default"}
            try:
                lab.client.create({**body, "metadata": metadata}, dry_run=True)
                answers[name] = 201
            except ApiError as refusal:
                answers[name] = refusal.status
    assert answers == dict.fromkeys(ACCEPTED, 201) | dict.fromkeys(REFUSED, 422)


def offered_cards(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the class of the cards, and a ResourceSlice for each node that has some."""
    selector = {"cel": {"expression": f"device.driver == '{CARDS}'"}}
    found: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": CLASS},
            "spec": {"selectors": [selector]},
        }
    ]
    for node in nodes:
        name = node["name"]
        if name.startswith("pool-h200-"):
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            devices = [{"name": f"card-{number}"} for number in range(8)]
            found.append(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": f"{name}-cards"},
                    "spec": {"driver": CARDS, "nodeName": name, "pool": pool, "devices": devices},
                }
            )
    return found
