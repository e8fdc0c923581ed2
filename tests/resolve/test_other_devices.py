"""Disk, huge pages and devices that are neither GPUs nor RDMA devices: from the spec to pods and quotas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import plain, workspaces
from tests.workspaces import gangplan, stock, write

SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"
OURS = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
POOL = f"{OURS}, disk: 1600Gi, hugePages: {{2Mi: 64Gi}}, devices: {{example.com/fpga: 4}}"
ALL = "disk: 200Gi\nhugePages: {2Mi: 4Gi}\ndevices: {example.com/fpga: 2}\n"


def workspace(root: Path, asked: str = ALL, pool: str = POOL) -> Path:
    """Create the stock workspace with this pool, and a spec that requests these things."""
    cluster = workspaces.CLUSTER.replace(OURS, pool, 1)
    return write(stock(root), {SPEC: workspaces.SPEC + asked, CLUSTER: cluster})


def bodies(root: Path) -> list[dict]:  # type: ignore[type-arg]
    """Return all rendered objects."""
    return [body for body in plain.load_all(workspaces.render(root, "-o", "-").out) if body]


def test_a_worker_requests_devices_but_its_launcher_does_not(tmp_path: Path) -> None:
    runtime = next(one for one in bodies(workspace(tmp_path)) if one["kind"] == "TrainingRuntime")
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pods = {one["name"]: one["template"]["spec"]["template"]["spec"]["containers"][0] for one in jobs}
    wanted = {"ephemeral-storage": "200Gi", "hugepages-2Mi": "4Gi", "example.com/fpga": "2"}
    for amounts in (pods["node"]["resources"]["requests"], pods["node"]["resources"]["limits"]):
        assert {name: amounts.get(name) for name in wanted} == wanted
    assert not {*wanted} & {*pods["launcher"]["resources"]["limits"]}


def test_quotas_count_disk_huge_pages_and_devices(tmp_path: Path) -> None:
    found = bodies(workspace(tmp_path))
    queue = next(one for one in found if one["kind"] == "ClusterQueue")
    (group,) = queue["spec"]["resourceGroups"]
    assert group["coveredResources"][2:] == [
        *("ephemeral-storage", "example.com/fpga", "hugepages-2Mi", "nvidia.com/gpu"),
    ]
    nominal = {
        flavor["name"]: {one["name"]: one["nominalQuota"] for one in flavor["resources"]}
        for flavor in group["flavors"]
    }
    assert {name: nominal["a100"][name] for name in group["coveredResources"][2:5]} == {
        "ephemeral-storage": "6400Gi",
        "example.com/fpga": "16",
        "hugepages-2Mi": "256Gi",
    }
    assert nominal["cpu"]["ephemeral-storage"] == "0"
    hard = next(
        one for one in found if one["metadata"]["name"] == "training" and one["kind"] == "ResourceQuota"
    )
    assert hard["spec"]["hard"]["requests.ephemeral-storage"] == "6400Gi"


def test_the_plan_counts_disk_and_devices(tmp_path: Path) -> None:
    outcome = gangplan("plan", "-C", str(workspace(tmp_path)), "--format", "json")
    (run,) = json.loads(outcome.out)["runs"]
    assert run["worker"]["ephemeral-storage"] == "200Gi"
    assert run["totals"]["example.com/fpga"] == "8"
    assert "800 GiB of scratch disk" in gangplan("plan", "-C", str(tmp_path)).out


def codes(root: Path) -> list[tuple[str, str]]:
    """Return place and rule of every finding."""
    outcome = gangplan("validate", "-C", str(root), "--format", "json")
    return [(f"{one['file']}:{one['line']}", one["rule"]) for one in json.loads(outcome.out)["findings"]]


SMALL = POOL.replace("hugePages: {2Mi: 64Gi}, ", "")


@pytest.mark.parametrize(
    ("asked", "pool", "rule"),
    [
        (ALL, POOL, ""),
        ("disk: 1600Gi\n", POOL, ""),
        ("disk: 1601Gi\n", POOL, "pool-no-fit"),
        ("disk: 1Gi\n", OURS, "pool-no-fit"),
        ("hugePages: {2Mi: 64Gi}\n", POOL, ""),
        ("hugePages: {2Mi: 4097Ki}\n", POOL, "huge-pages-uneven"),
        ("hugePages: {2Mi: 66Gi}\n", POOL, "pool-no-fit"),
        ("hugePages: {1Gi: 4Gi}\n", POOL, "pool-no-fit"),
        ("devices: {example.com/fpga: 4}\n", POOL, ""),
        ("devices: {example.com/fpga: 5}\n", POOL, "pool-no-fit"),
        ("devices: {nvidia.com/gpu: 2}\n", POOL, "device-has-field"),
        ("devices: {rdma/ib: 2}\n", f"{POOL}, rdma: {{resource: rdma/ib, count: 8}}", "device-has-field"),
        ("", POOL.replace("example.com/fpga", "nvidia.com/gpu"), "pool-device-twice"),
        ("", POOL.replace("2Mi: 64Gi", "2Mi: 3Mi"), "huge-pages-uneven"),
    ],
)
def test_requests_that_do_not_fit_a_pool_are_refused(
    tmp_path: Path, asked: str, pool: str, rule: str
) -> None:
    found = codes(workspace(tmp_path, asked, pool))
    assert {one for _, one in found} == ({rule} if rule else set()), found
    if rule:
        line = 9 if asked else 8
        assert found[0][0] == f"{SPEC if asked else CLUSTER}:{line}"


def test_more_than_the_quota_is_never_admitted(tmp_path: Path) -> None:
    # Each node could take one worker, but the team may use only half of the pool's disk.
    root = workspace(tmp_path, "disk: 1000Gi\n")
    cluster = (root / CLUSTER).read_text()
    limited = cluster.replace(
        "{queue: training", "{queue: training, quota: {a100: {gpus: 16}, cpu: {cpu: 100}}, borrow: {}", 1
    )
    assert limited != cluster
    (root / CLUSTER).write_text(limited)
    outcome = gangplan("validate", "-C", str(root))
    assert outcome.code == 1, outcome.err
    assert "requires 4000 GiB of ephemeral-storage, but project quota is 3200 GiB" in outcome.err
    assert "at most 3 workers" in outcome.err


@pytest.mark.parametrize("field", ["disk", "hugePages", "devices"])
def test_why_leads_to_the_field(tmp_path: Path, field: str) -> None:
    root = workspace(tmp_path)
    assert workspaces.render(root).code == 0
    resource = {"disk": "ephemeral-storage: 200Gi", "hugePages": "hugepages-2Mi: 4Gi", "devices": 'fpga: "2"'}
    for path in (root / "rendered").rglob("*.yaml"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.strip().replace("'", '"').endswith(resource[field]) and "runs" in str(path):
                outcome = gangplan("why", f"{path.relative_to(root)}:{number}", "-C", str(root))
                assert f"{SPEC}:" in outcome.out
                assert field in outcome.out
                return
    raise AssertionError("not rendered")
