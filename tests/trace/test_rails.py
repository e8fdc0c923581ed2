"""`gangplan why FILE:LINE` for what a pool's rails become (devices, networks and variables) leads to their
entries."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.test_examples import EXAMPLES
from tests.workspaces import gangplan

CLUSTER = "overlays/lab/cluster.yaml"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the example with four rails."""
    (example,) = (path for path in EXAMPLES if path.name == "rdma-rails")
    folder = tmp_path_factory.mktemp("rails") / "workspace"
    shutil.copytree(example / "input", folder)
    gangplan("render", "-C", folder)
    return folder


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('rdma/rail_2: "1"', "nodePools.h100.rdma[2].shared"),
        ("k8s.v1.cni.cncf.io/networks: ", "nodePools.h100.rdma[0].network"),
        ("value: =mlx5_0,mlx5_1,mlx5_4,mlx5_5", "nodePools.h100.rdma[0].hcas"),
        ("value: =net1,net2,net3,net4", "nodePools.h100.rdma[0].interface"),
    ],
)
def test_a_line_leads_to_the_entry_of_its_rail(line: str, field: str, root: Path) -> None:
    (run,) = (root / "rendered/lab/runs").rglob("*-*.yaml")
    lines = run.read_text().replace('"', "").splitlines()
    at = next(number for number, text in enumerate(lines, 1) if line.replace('"', "") in text)
    told = gangplan("why", "-C", root, f"{run.relative_to(root)}:{at}").out
    assert CLUSTER in told, told
    assert field in told, told


@pytest.fixture(scope="module")
def claimed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the example whose workers claim their cards."""
    (example,) = (path for path in EXAMPLES if path.name == "claimed-nics")
    folder = tmp_path_factory.mktemp("claims") / "workspace"
    shutil.copytree(example / "input", folder)
    gangplan("render", "-C", folder)
    return folder


@pytest.mark.parametrize(
    ("file", "line", "field"),
    [
        ("runs", "deviceClassName: mrdma.google.com", "nodePools.h200.rdma.deviceClass"),
        ("runs", "deviceClassName: mrdma.google.com", "nodePools.h200.rdma.count"),
        ("runs", "resourceClaims: [{name: rdma", "nodePools.h200.rdma.deviceClass"),
        ("runs", "claims: [{name: rdma}]", "nodePools.h200.rdma.deviceClass"),
        ("runs", "claims: [{name: rdma}]", "network.rdma"),
        ("tenants", "deviceclass.resource.k8s.io/devices", "nodePools.h200.rdma.deviceClass"),
        ("tenants", "deviceclass.resource.k8s.io/devices", "nodePools.h200.rdma.count"),
    ],
)
def test_a_line_of_a_claim_leads_to_its_entry(file: str, line: str, field: str, claimed: Path) -> None:
    found = (claimed / f"rendered/lab/{file}").rglob("*.yaml")
    (path,) = (one for one in found if "launch." not in one.name)
    at = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if line in text)
    told = gangplan("why", "-C", claimed, f"{path.relative_to(claimed)}:{at}").out
    assert field in told, told


def test_a_claim_that_today_has_none_is_explained(claimed: Path, tmp_path: Path) -> None:
    """The pool's devices have moved to a plugin, and the run's file is as it was rendered."""
    folder = shutil.copytree(claimed, tmp_path / "workspace")
    cluster = folder / CLUSTER
    cluster.write_text(cluster.read_text().replace(", deviceClass: mrdma.google.com", ""))
    (path,) = (one for one in (folder / "rendered/lab/runs").rglob("*.yaml") if "launch." not in one.name)
    lines = path.read_text().splitlines()
    at = next(number for number, text in enumerate(lines, 1) if "claims: [{name: rdma}]" in text)
    told = gangplan("why", "-C", folder, f"{path.relative_to(folder)}:{at}")
    assert told.code == 0, told.err
    assert "rendered/ is stale" in told.out
