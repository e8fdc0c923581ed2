"""RDMA of a pool with several rails: a worker's devices of each, its networks, and the resulting totals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import plain, workspaces
from tests.workspaces import gangplan, write

SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"
OURS = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
WHOLE = workspaces.SPEC.replace("gpus: 2", "gpus: 8")


def rails(count: int = 1, shared: str = "", number: int = 4) -> str:
    """Return so many rails, each with its own resource and network."""
    entries = [
        f"{{resource: rdma/rail-{at}, count: {count}{shared}, network: fabric/rail-{at}}}"
        for at in range(number)
    ]
    return f"[{', '.join(entries)}]"


def workspace(root: Path, rdma: str, asked: str = "required", spec: str = WHOLE) -> Path:
    """Create the stock workspace with this RDMA on its pool, and one spec that requests it."""
    cluster = workspaces.CLUSTER.replace(OURS, f"{OURS}, rdma: {rdma}", 1)
    return write(root, {SPEC: f"{spec}network: {{rdma: {asked}}}\n", CLUSTER: cluster})


def worker(root: Path) -> tuple[dict[str, int], list[str]]:
    """Return the RDMA devices of a worker, and the networks that it is attached to."""
    for body in plain.load_all(workspaces.render(root, "-o", "-", SPEC).out):
        if body and body["kind"] == "TrainingRuntime":
            pod = body["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
            limits = pod["spec"]["containers"][0]["resources"]["limits"]
            devices = {name: int(count) for name, count in limits.items() if name.startswith("rdma/")}
            return devices, [
                one for one in pod["metadata"]["annotations"].get(NETWORKS, "").split(",") if one
            ]
    raise AssertionError("no runtime")


EACH = {f"rdma/rail-{at}": 1 for at in range(4)}
FOUR = [f"fabric/rail-{at}" for at in range(4)]


@pytest.mark.parametrize(
    ("asked", "gpus", "count", "devices"),
    [
        ("required", 8, 1, EACH),
        ("required", 4, 1, EACH),  # it is unknown which GPUs it gets, so it takes part in every rail
        ("required", 8, 2, dict.fromkeys(EACH, 2)),
        ("required", 4, 2, EACH),
        ("all", 4, 2, dict.fromkeys(EACH, 2)),
        ("2", 8, 1, {"rdma/rail-0": 1, "rdma/rail-1": 1}),
        ("5", 8, 2, {**EACH, "rdma/rail-0": 2}),
        ("per-gpu", 3, 1, {"rdma/rail-0": 1, "rdma/rail-1": 1, "rdma/rail-2": 1}),
        ("per-gpu", 8, 2, dict.fromkeys(EACH, 2)),
    ],
)
def test_a_worker_gets_devices_of_each_rail(
    asked: str, gpus: int, count: int, devices: dict[str, int], root: Path
) -> None:
    spec = workspaces.SPEC.replace("gpus: 2", f"gpus: {gpus}")
    found, networks = worker(workspace(root, rails(count), asked, spec))
    assert found == devices
    # One network for each device: SR-IOV assigns devices to networks one by one.
    assert networks == [
        f"fabric/{name.partition('/')[2]}" for name, number in devices.items() for _ in range(number)
    ]


@pytest.mark.parametrize("asked", ["required", "all", "auto"])
def test_a_worker_takes_one_device_of_a_shared_rail(asked: str, root: Path) -> None:
    assert worker(workspace(root, rails(63, ", shared: true"), asked)) == (EACH, FOUR)


@pytest.mark.parametrize(
    ("rdma", "networks"),
    [
        ("{resource: rdma/ib, count: 2, network: fabric/ib}", ["fabric/ib"] * 2),
        ("{resource: rdma/ib, count: 4, network: [a/one, a/two]}", ["a/one", "a/two", "a/one", "a/two"]),
        ("{resource: rdma/ib, count: 63, shared: true, network: [a/one, a/two]}", ["a/one", "a/two"]),
        ("{resource: vpc.amazonaws.com/efa, count: 32}", []),
    ],
)
def test_a_worker_is_attached_once_for_each_device(rdma: str, networks: list[str], root: Path) -> None:
    assert worker(workspace(root, rdma))[1] == networks


@pytest.mark.parametrize(
    ("rdma", "asked", "gpus", "words"),
    [
        (rails(), "5", 8, "5 RDMA devices per worker, but a node of pool 'a100' has 4"),
        (rails(), "per-gpu", 8, "8 RDMA devices per worker, but a node of pool 'a100' has 4"),
        (rails(63, ", shared: true"), "5", 8, "has 4 that a worker can use"),
        (rails(), "per-gpu", 0, "rdma is per-gpu, but a worker has no GPUs"),
    ],
)
def test_more_devices_than_a_node_has_are_refused(
    rdma: str, asked: str, gpus: int, words: str, root: Path
) -> None:
    spec = workspaces.SPEC.replace("gpus: 2", f"gpus: {gpus}") + "placement: {nodePool: a100}\n"
    outcome = gangplan("validate", "-C", workspace(root, rdma, asked, spec))
    (one,) = [one for one in outcome.findings if one.severity == "error"]
    assert (one.place, one.rule) == (f"{SPEC}:10:17", "rdma-devices")
    assert words in one.message


def test_one_device_of_a_rail_keeps_a_second_worker_off_the_node(root: Path) -> None:
    """Eight workers need half of a node's GPUs each, but each node has one device of every rail."""
    spec = workspaces.SPEC.replace("workers: 4", "workers: 8").replace("gpus: 2", "gpus: 4")
    outcome = gangplan("validate", "-C", workspace(root, rails(), spec=spec))
    found = [one for one in outcome.findings if one.severity == "error"]
    assert {"rdma/rail-0" in one.message for one in found} == {True}, outcome.err
    assert gangplan("validate", "-C", workspace(root, rails(2), spec=spec)).errors() == []


def test_totals_and_quota_cover_every_resource(root: Path) -> None:
    """Totals count the devices of each rail by worker; queues and namespace caps cover all of them."""
    workspace(root, rails(8, ", shared: true"))
    (run,) = json.loads(gangplan("plan", "-C", root, "--format", "json").out)["runs"]
    assert {name: run["totals"][name] for name in EACH} == dict.fromkeys(EACH, "4")
    assert run["fabric"] == {"resources": list(EACH), "networks": FOUR, "interfaces": [], "hcas": []}
    assert run["admission"]["outcome"] != "never"
    bodies = [one for one in plain.load_all(workspaces.render(root, "-o", "-").out) if one]
    (queue,) = [one for one in bodies if one["kind"] == "ClusterQueue"]
    (group,) = queue["spec"]["resourceGroups"]
    assert set(EACH) < set(group["coveredResources"])
    fast = next(one for one in group["flavors"] if one["name"] == "a100")
    nominal = {one["name"]: one["nominalQuota"] for one in fast["resources"]}
    assert {name: nominal[name] for name in EACH} == dict.fromkeys(EACH, "32")
    hard = [one["spec"]["hard"] for one in bodies if one["kind"] == "ResourceQuota"]
    (cap,) = [one for one in hard if "requests.nvidia.com/gpu" in one]
    assert {cap[f"requests.{name}"] for name in EACH} == {"32"}


def test_the_plan_shows_networks_interfaces_and_cards(root: Path) -> None:
    one = "{resource: rdma/ib, count: 2, network: fabric/ib, interface: net1, hcas: [mlx5_0, mlx5_1]}"
    text = gangplan("plan", "-C", workspace(root, one)).out
    assert "  fabric    network fabric/ib (2 times); interface net1; cards mlx5_0, mlx5_1\n" in text


def test_the_warning_names_every_network_and_device(root: Path) -> None:
    left = "{resource: example.com/left, count: 1, network: fabric/left}"
    rdma = f"[{left}, {{resource: example.com/right, count: 1}}]"
    (one,) = gangplan("validate", "-C", workspace(root, rdma)).findings
    assert one.rule == "rdma-bypasses-policy"
    for name in ("network fabric/left", "device example.com/left", "device example.com/right"):
        assert name in one.message


def test_a_patch_that_removes_networks_is_an_error(root: Path, builder: str) -> None:
    place = "/spec/template/spec/replicatedJobs/0/template/spec/template/metadata/annotations/"
    value = "fabric/rail-0, fabric/rail-3, site/storage"
    patch = f"{{op: replace, path: {place}k8s.v1.cni.cncf.io~1networks, value: '{value}'}}"
    text = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    text += f"- target: {{kind: TrainingRuntime}}\n  patch: |-\n    - {patch}\n"
    workspace(root, rails())
    outcome = gangplan("validate", "-C", write(root, {"overlays/lab/kustomization.yaml": text}))
    (one,) = [one for one in outcome.findings if one.severity == "error"]
    assert "not be on the networks 'fabric/rail-1', 'fabric/rail-2' that their pool has" in one.message


@pytest.mark.parametrize("network", ["fabric/rail-0", "rail.0", "fabric/rail-0@net1"])
def test_names_that_multus_reads_are_right(network: str, root: Path) -> None:
    workspace(root, f"{{resource: rdma/b, count: 8, network: {network}}}")
    outcome = gangplan("validate", "-C", root)
    assert not outcome.errors(), outcome.err


@pytest.mark.parametrize(
    ("rdma", "rule", "words"),
    [
        ("[{resource: rdma/a, count: 1}, {resource: rdma/a, count: 1}]", "pool-rail-twice", "another rail"),
        ("{resource: nvidia.com/gpu, count: 1}", "pool-rail-twice", "its GPUs"),
        ("{resource: rdma/a, count: 1000}", "pool-rdma-shared", "no node has 1000 ports"),
        ("[{resource: rdma/a, count: 1}, {resource: rdma/b}]", "spec-missing-field", "rdma[1].count"),
        ("{resource: rdma/b, count: 1, netwrok: a/b}", "spec-unknown-field", "did you mean 'network'"),
        ("[{resource: rdma/b, count: 1, netwrok: a/b}]", "spec-unknown-field", "did you mean 'network'"),
        ("{resource: rdma/b, count: many}", "spec-type", "count"),
        ("[{resource: rdma/b, count: 1, network: [a/b, 3]}]", "spec-type", "network"),
        ("{resource: rdma/b, count: 1, interface: 'net1,net2'}", "spec-value", "interface"),
        ("{resource: rdma/b, count: 1, hcas: ['=mlx5_0']}", "spec-value", "hcas"),
        ("{resource: rdma/b, count: 1, network: 'a/IB fabric!'}", "spec-value", "NAMESPACE/NAME"),
        ("{resource: rdma/b, count: 1, network: [a/b, 'a/b/c']}", "spec-value", "NAMESPACE/NAME"),
        ("{resource: rdma/b, count: 1, network: 'a/b,a/c'}", "spec-value", "NAMESPACE/NAME"),
        ("[]", "spec-value", "rdma"),
        ("true", "spec-type", "rdma"),
    ],
)
def test_mistakes_in_the_rdma_of_a_pool_are_refused(rdma: str, rule: str, words: str, root: Path) -> None:
    outcome = gangplan("validate", "-C", workspace(root, rdma))
    (one,) = [one for one in outcome.findings if one.severity == "error"]
    assert one.rule == rule, outcome.err
    assert words in one.message, outcome.err
    assert one.place.startswith(f"{CLUSTER}:8:"), outcome.err
