"""The most that a run can cost: from the prices of a cluster file to a row of the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan, write

GPU = ("gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}", "price: {perGpuHour: 1.5625}")
CPU = ("cpu: {count: 4, cpu: 60, memory: 240Gi", "price: {perCpuHour: 0.04}")


def plan(root: Path, spec: str, *priced: tuple[str, str], more: str = "currency: EUR\n") -> str:
    """Return the row `cost` of the plan, or an empty text without one."""
    cluster = workspaces.CLUSTER + more
    for after, price in priced:
        assert after in cluster
        cluster = cluster.replace(after, f"{after}, {price}", 1)
    write(root, {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": cluster})
    outcome = gangplan("plan", "-C", root)
    assert outcome.code == 0, outcome.err
    rows = [line.split(None, 1)[1] for line in outcome.out.splitlines() if line.startswith("  cost ")]
    return rows[0] if rows else ""


def test_gpus_cost_their_price_until_the_timeout(root: Path) -> None:
    # 4 workers x 2 GPUs x 24 h x 1.5625; the cost of a launcher on a pool without a price is unknown.
    assert plan(root, workspaces.SPEC, GPU) == "at most 300.00 EUR (8 GPUs x 1.5625 x 24h)"


def test_the_launcher_costs_the_price_of_its_own_pool(root: Path) -> None:
    found = plan(root, workspaces.SPEC + "timeout: 12h\n", GPU, CPU)
    assert found == "at most 150.48 EUR ((8 GPUs x 1.5625 + 1 CPU x 0.04) x 12h)"


def test_cores_are_counted_on_pools_without_gpus(root: Path) -> None:
    spec = workspaces.SPEC.replace("gpus: 2\n", "").replace("cpu: 8", "cpu: 500m") + "timeout: 90m\n"
    assert plan(root, spec, GPU, CPU) == "at most 0.18 EUR ((2 CPU x 0.04 + 1 CPU x 0.04) x 1h30m)"


def test_a_launcher_that_runs_ranks_is_not_an_extra_pod(root: Path) -> None:
    found = plan(root, workspaces.SPEC + "launcher: {runsRanks: true}\n", GPU, CPU)
    assert found == "at most 300.00 EUR (8 GPUs x 1.5625 x 24h)"


def test_an_old_trainer_limits_attempts_not_runs(root: Path) -> None:
    versions = ('trainer: "2.3.0", kueue: "0.19.2"', 'trainer: "2.1.0", kueue: "0.15.2"')
    cluster = workspaces.CLUSTER.replace(*versions)
    for retries, hours in (("", "24h"), ("retries: 2\n", "3d")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workspaces, "CLUSTER", cluster)
            assert plan(root, workspaces.SPEC + retries, GPU).endswith(f" x {hours})")
    assert plan(root, workspaces.SPEC + "retries: 2\n", GPU).endswith(" x 24h)")


def test_a_pool_without_a_price_has_no_cost_row(root: Path) -> None:
    assert plan(root, workspaces.SPEC) == ""
    assert plan(root, workspaces.SPEC, CPU) == "", "the workers' pool has none"


IDLE = workspaces.SPEC.replace("gpus: 2\n", "placement: {nodePool: a100}\n")


@pytest.mark.parametrize(
    ("spec", "priced", "row"),
    [
        (IDLE, (GPU,), ""),
        (IDLE, (GPU, CPU), ""),
        (IDLE.replace("image: openmpi", "image: pytorch"), (GPU, CPU), ""),
        (
            IDLE.replace("nodePool: a100", "nodePool: cpu"),
            (GPU, CPU),
            "at most 31.68 EUR ((32 CPU x 0.04 + 1 CPU x 0.04) x 24h)",
        ),
        (IDLE + "gpus: 1\n", (GPU,), "at most 150.00 EUR (4 GPUs x 1.5625 x 24h)"),
    ],
    ids=["no GPUs there", "a launcher with a price", "no launcher", "cores with a price", "a GPU"],
)
def test_runs_without_gpus_on_nodes_with_gpus_have_no_price(
    spec: str, priced: tuple[tuple[str, str], ...], row: str, root: Path
) -> None:
    """The cost of 0 GPUs is unknown, not 0.00."""
    assert plan(root, spec, *priced) == row
    assert "(0.00 EUR)" not in gangplan("plan", "-C", root).out


def test_the_json_plan_has_the_cost(root: Path) -> None:
    plan(root, workspaces.SPEC, GPU, more="")
    (run,) = json.loads(gangplan("plan", "-C", root, "--format", "json").out)["runs"]
    assert run["cost"] == {"most": "300.00", "currency": "USD"}
    plan(root, workspaces.SPEC)
    (run,) = json.loads(gangplan("plan", "-C", root, "--format", "json").out)["runs"]
    assert run["cost"] is None


def test_the_network_of_the_nodes_is_shown(root: Path) -> None:
    fast = (GPU[0], "networkGbps: 200")
    plan(root, workspaces.SPEC, fast)
    assert "  network   default, 200 Gbit/s per node\n" in gangplan("plan", "-C", root).out
    plan(root, workspaces.SPEC + "network: {rdma: auto}\n", fast)
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, "falls back to TCP (200 Gbit/s per node)" in found.message) == ("rdma-fallback", True)
