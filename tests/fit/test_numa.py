"""Pools whose kubelet gives a pod resources of one NUMA node only."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gangplan.validate.scheduler import PodShape, build_plain_pods_for_scheduler, fit_pods
from gangplan.validate.scheduler.reduce import Reducer
from gangplan.validate.scheduler.search import search_best_pod_packing
from gangplan.validate.world import NodeGroup
from tests import workspaces
from tests.fit.test_counts import world
from tests.workspaces import Outcome, gangplan

POOL = "a100: {count: 4, cpu: 124, memory: 1900Gi,"
JOB = workspaces.SPEC.replace("workers: 4\ngpus: 2\ncpu: 8\nmemory: 32Gi\n", "")


def nodes(count: int = 2, numa: dict[str, int] | None = None, cpu: int = 92, gpus: int = 8) -> NodeGroup:
    """Return nodes with two NUMA nodes each."""
    free = {"cpu": Fraction(cpu), "memory": Fraction(2**40), "gpu": Fraction(gpus)}
    aligned = {"cpu": 2, "gpu": 2} if numa is None else numa
    return NodeGroup("a", count, {}, (), free, numa=aligned)


def pods(count: int, cpu: str, gpus: int = 0, is_guaranteed: bool = True, name: str = "worker") -> PodShape:
    requests: dict[str, Any] = {"cpu": cpu, "memory": "1Gi"} | ({"gpu": str(gpus)} if gpus else {})
    limits = requests if is_guaranteed else {}
    container = {"name": "node", "resources": {"requests": requests, "limits": limits}}
    return build_plain_pods_for_scheduler(
        name, count, {"metadata": {"name": name}, "spec": {"containers": [container]}}
    )


@pytest.mark.parametrize(
    ("cpu", "gpus", "is_guaranteed", "most"),
    [
        ("30", 0, True, 4),  # the 46 cores of a NUMA node hold one of these, the 92 of a node three
        ("30", 0, False, 6),  # such a pod has no exclusive cores
        ("30500m", 0, True, 6),  # nor does a pod with a fraction of a core
        ("23", 0, True, 8),
        ("46", 0, True, 4),
        ("8", 3, True, 4),  # one on each side, where two are left over
        ("8", 2, True, 8),
        ("8", 3, False, 4),  # devices are aligned in every QoS class
        ("47", 0, True, 2),  # larger than a NUMA node: the policy restricted allows two
    ],
)
def test_a_node_takes_as_many_pods_as_its_numa_nodes(
    cpu: str, gpus: int, is_guaranteed: bool, most: int
) -> None:
    every = pods(20, cpu, gpus, is_guaranteed)
    fit = fit_pods(world(nodes()), [every])
    assert fit.bound == most
    assert fit.reasons
    # The search gives the same answer as counting.
    reducer = Reducer(world(nodes()), [every])
    assert search_best_pod_packing(reducer.question()).bound == most
    # Where nothing is aligned, only the sum counts.
    assert fit_pods(world(nodes(numa={})), [every]).bound >= most


def test_the_reason_names_the_numa_node() -> None:
    (reason,) = fit_pods(world(nodes()), [pods(5, "30")]).reasons
    assert reason == "0/2 nodes are available: 2 Insufficient cpu on one NUMA node."


def test_a_launcher_needs_a_node_with_a_free_numa_node() -> None:
    """Two workers of 46 cores fill a node; the launcher's core is on the other node."""
    workers, launcher = pods(3, "46", 4), replace(pods(1, "1", name="launcher"), stage=1)
    fit = fit_pods(world(nodes()), [workers, launcher])
    assert (fit.bound, fit.verdict) == (4, "sure")
    assert fit_pods(world(nodes(1)), [pods(2, "46", 4), launcher]).bound == 2


def check(root: Path, numa: str, job: str) -> Outcome:
    cluster = workspaces.CLUSTER.replace(POOL, f"{POOL} numa: {numa},")
    assert cluster != workspaces.CLUSTER
    files = {"overlays/lab/cluster.yaml": cluster, "specs/nlp/filings.yaml": JOB + job}
    return gangplan("validate", "-C", workspaces.write(workspaces.stock(root), files))


SINGLE = "{nodes: 2, policy: single-numa-node}"


@pytest.mark.parametrize(
    ("numa", "job", "place"),
    [
        (SINGLE, "workers: 2\ngpus: 4\ncpu: 60\nmemory: 900Gi\n", ""),
        (SINGLE, "workers: 2\ngpus: 8\ncpu: 60\nmemory: 900Gi\n", "6:7"),
        (SINGLE, "workers: 2\ngpus: 4\ncpu: 63\nmemory: 900Gi\n", "7:6"),
        (SINGLE, "workers: 2\ngpus: 4\ncpu: 62.5\nmemory: 900Gi\n", ""),
        (SINGLE, "workers: 2\ngpus: 4\ncpu: 60\nmemory: 1000Gi\n", ""),
        (
            "{policy: single-numa-node, aligns: [memory]}",
            "workers: 2\ngpus: 8\ncpu: 60\nmemory: 1000Gi\n",
            "8:9",
        ),
        ("{nodes: 4, policy: single-numa-node}", "workers: 2\ngpus: 4\ncpu: 30\nmemory: 64Gi\n", "6:7"),
        ("{policy: restricted}", "workers: 2\ngpus: 8\ncpu: 120\nmemory: 1000Gi\n", ""),
        ("{policy: best-effort}", "workers: 2\ngpus: 8\ncpu: 120\nmemory: 1000Gi\n", ""),
    ],
)
def test_a_worker_larger_than_a_numa_node_is_refused(numa: str, job: str, place: str, tmp_path: Path) -> None:
    found = [one for one in check(tmp_path, numa, job).findings if one.severity == "error"]
    assert [(one.place, one.rule) for one in found] == (
        [(f"specs/nlp/filings.yaml:{place}", "pool-no-fit")] if place else []
    )
    assert all("single-numa-node gives a worker what one NUMA node has" in one.message for one in found)


def test_too_many_workers_for_all_numa_nodes_are_reported(tmp_path: Path) -> None:
    """Four nodes with 124 cores take twelve workers of 40 by the sum, but eight by NUMA node."""
    job = "workers: {n}\ngpus: 1\ncpu: 40\nmemory: 64Gi\n"
    assert check(tmp_path / "fits", SINGLE, job.format(n=8)).errors() == []
    found = check(tmp_path / "not", SINGLE, job.format(n=9)).errors()
    assert [rule for _, rule in found] == ["nodes-too-few"]


@pytest.mark.parametrize("field", ["topologyManager", "topologyManagerPolicy", "topology-manager-policy"])
def test_the_kubelets_own_field_names_get_a_help(field: str, tmp_path: Path) -> None:
    cluster = workspaces.CLUSTER.replace(POOL, f"{POOL} {field}: single-numa-node,")
    root = workspaces.write(workspaces.stock(tmp_path), {"overlays/lab/cluster.yaml": cluster})
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.help) == ("spec-unknown-field", "Write numa: {policy: single-numa-node}.")


def test_the_help_names_what_a_numa_node_has(tmp_path: Path) -> None:
    (found,) = check(tmp_path, SINGLE, "workers: 2\ngpus: 8\ncpu: 124\nmemory: 900Gi\n").findings
    assert found.help.startswith("Write gpus: 4 and cpu: 62, the most that fits there; or ")
