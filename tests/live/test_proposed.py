"""`init --from-cluster`: from a cluster that answers to a workspace that states what was seen of it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.live.proposed import _propose_pools_from_live_nodes
from tests import plain
from tests.live.answers import CLUSTER, KUEUE, node
from tests.live.server import refusal, serving
from tests.workspaces import Outcome, gangplan

FILE = "overlays/lab/cluster.yaml"
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "topology.kubernetes.io/region": "eu-west-1"}
NODES = [
    *(node(f"gpu-{number}", "", 8, labels={**A100, "kubernetes.io/hostname": f"gpu-{number}"},
           spec={"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}], "providerID": "aws:///x"})
      for number in range(3)),
    *(node(f"cpu-{number}", "", labels={"node.kubernetes.io/instance-type": "m7i.8xlarge", "topology.kubernetes.io/region": "eu-west-1"},
           spec={"providerID": "aws:///y"})
      for number in range(2)),
    node("control", "", labels={"node-role.kubernetes.io/control-plane": ""}, spec={"providerID": "aws:///z"}),
]  # fmt: skip
LIVE: dict[str, Any] = {
    **CLUSTER,
    "/api/v1/nodes": NODES,
    "/apis/storage.k8s.io/v1/storageclasses": [
        {"metadata": {"name": "efs"}, "provisioner": "efs.csi.aws.com"},
        {
            "metadata": {
                "name": "gp3",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "ebs.csi.aws.com",
        },
    ],
    f"/apis/{KUEUE}/localqueues": [{"metadata": {"name": "night", "namespace": "nlp"}, "spec": {}}],
}


def begun(root: Path, answers: dict[str, Any], *more: str) -> Outcome:
    """Create a workspace from a cluster with these answers."""
    with serving(answers) as server:
        root.parent.mkdir(exist_ok=True)
        path = server.kubeconfig(root.parent, "lab")
        flags = ("--team", "nlp", "--cluster", "lab", "--from-cluster", "--kubeconfig", path)
        outcome = gangplan("init", root, *flags, *more)
        assert server.methods <= {"GET"}
        assert not [path for path in server.paths if "secret" in path or "configmap" in path]
    return outcome


def test_the_workspace_matches_the_cluster_and_is_valid(tmp_path: Path) -> None:
    root = tmp_path / "jobs"
    outcome = begun(root, LIVE)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    written = plain.load((root / FILE).read_text())
    assert written["versions"] == {
        "kubernetes": "1.34.4",
        "trainer": "2.3.0",
        "kueue": "0.19.2",
        "argocd": "3.5.1",
    }
    assert (written["region"], written["location"]) == ("eu-west-1", "cloud")
    assert written["nodePools"] == {
        "cpu": {"count": 2, "cpu": 60, "memory": "240Gi", "labels": {"node.kubernetes.io/instance-type": "m7i.8xlarge"}},
        "a100-80gb": {
            "count": 3,
            "cpu": 124,
            "memory": "1900Gi",
            "gpu": {"model": "a100-80gb", "count": 8},
            "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        },
    }  # fmt: skip
    assert written["storageClasses"] == {
        "efs": {"accessModes": ["ReadWriteMany", "ReadWriteOnce"]},
        "gp3": {"accessModes": ["ReadWriteOnce"], "default": True},
    }
    assert written["teams"] == {"nlp": {"queue": "night"}}
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    checked = gangplan("validate", "-C", root)
    assert checked.code == Exit.CLEAN
    assert {one.rule for one in checked.findings} == {"gpu-operator-unstated"}  # as on the cluster
    with serving(LIVE) as server:
        same = gangplan(
            "cluster", "snapshot", "lab", "-C", root, "--kubeconfig", server.kubeconfig(tmp_path, "lab")
        )
    (control,) = same.findings
    assert control.message.startswith("1 node belongs to no pool"), same.err


def test_the_same_cluster_gives_the_same_bytes(tmp_path: Path) -> None:
    other = deepcopy(LIVE)
    other["/api/v1/nodes"].reverse()
    other["/apis/storage.k8s.io/v1/storageclasses"].reverse()
    begun(tmp_path / "one", LIVE)
    begun(tmp_path / "two", other)
    assert (tmp_path / "one" / FILE).read_bytes() == (tmp_path / "two" / FILE).read_bytes()


def test_unseen_nodes_become_examples_and_are_reported(tmp_path: Path) -> None:
    answers = {**LIVE, "/api/v1/nodes": refusal(403, "Forbidden", 'nodes is forbidden: User "me" cannot list resource "nodes"')}  # fmt: skip
    outcome = begun(tmp_path / "jobs", answers)
    assert outcome.code == Exit.CLEAN
    assert "not seen in cluster lab: you may not list nodes" in outcome.err
    assert set(plain.load((tmp_path / "jobs" / FILE).read_text())["nodePools"]) == {"cpu", "gpu"}


def test_a_cluster_without_trainer_is_reported(tmp_path: Path) -> None:
    outcome = begun(tmp_path / "jobs", {**LIVE, "/apis/apps/v1/deployments": []})
    assert "not seen in cluster lab: no Trainer was found" in outcome.err
    assert outcome.code == Exit.CLEAN
    assert plain.load((tmp_path / "jobs" / FILE).read_text())["versions"]["trainer"] == "2.3.0"


def test_a_cluster_that_does_not_answer_leaves_no_workspace(tmp_path: Path) -> None:
    with serving({}) as server:
        path = server.kubeconfig(tmp_path, "lab")
    flags = ("--team", "nlp", "--cluster", "lab", "--from-cluster", "--kubeconfig", path)
    assert gangplan("init", tmp_path / "jobs", *flags).code == Exit.ENVIRONMENT
    assert gangplan("init", tmp_path / "jobs", *flags, "--context", "moon").code == Exit.INPUT
    assert not (tmp_path / "jobs").exists()


READY = [{"type": "Ready", "status": "True"}]
GKE = {"cloud.google.com/gke-nodepool": "A_Pool"}
# Labels of the nodes, what each offers, and the pool: its name, and its fields except labels, CPU and memory.
POOLS: dict[str, tuple[dict[str, str], dict[str, str], str, dict[str, Any]]] = {
    "by its cloud": (GKE, {}, "a-pool", {}),
    "nothing tells": ({}, {}, "cpu", {}),
    "AMD": (
        {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
        {"amd.com/gpu": "8"},
        "mi300x",
        {"gpu": {"model": "mi300x", "count": 8, "resource": "amd.com/gpu"}},
    ),
    "a GPU that nobody knows": (
        {"nvidia.com/gpu.product": "NVIDIA-X9000"},
        {"nvidia.com/gpu": "4"},
        "nvidia-x9000",
        {"gpu": {"model": "nvidia-x9000", "count": 4}},
    ),
    "shared GPUs": (
        {"nvidia.com/gpu.product": "Tesla-T4-SHARED"},
        {"nvidia.com/gpu": "16"},
        "t4",
        {"gpu": {"model": "t4", "count": 16, "shared": True}},
    ),
    "MIG slices": (
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
        {"nvidia.com/mig-1g.5gb": "7"},
        "a100-40gb",
        {"gpu": {"model": "a100-40gb", "mig": "1g.5gb", "count": 7, "resource": "nvidia.com/mig-1g.5gb"}},
    ),
    "GPUs without labels": (GKE, {"nvidia.com/gpu": "8"}, "a-pool", {"gpu": {"model": "gpu", "count": 8}}),
}


@pytest.mark.parametrize("name", POOLS)
def test_nodes_decide_the_name_and_fields_of_their_pool(name: str) -> None:
    labels, offered, called, fields = POOLS[name]
    bodies = [node(f"n{number}", labels=labels, **offered) for number in range(2)]
    ((found, pool),) = _propose_pools_from_live_nodes(bodies).items()
    assert found == called
    assert {key: value for key, value in pool.items() if key not in ("labels", "cpu", "memory")} == {
        "count": 2,
        **fields,
    }


def test_nodes_that_take_no_runs_form_no_pool() -> None:
    cordoned = node("a", spec={"unschedulable": True})
    lost = node("b")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    tiny = node("c")
    tiny["status"]["allocatable"] = {"cpu": "500m", "memory": "900Mi"}
    odd = node("d")
    odd["status"]["allocatable"] = {"cpu": "many"}
    assert _propose_pools_from_live_nodes([cordoned, lost, tiny, odd]) == {}


def test_a_pool_has_the_size_of_its_smallest_node_and_common_taints() -> None:
    one = node("a", labels=GKE, spec={"taints": [{"key": "x", "value": "y", "effect": "NoExecute"}]})
    other = node("b", labels=GKE)
    one["status"]["allocatable"] = {"cpu": "31900m", "memory": "129600Mi"}
    (pool,) = _propose_pools_from_live_nodes([one, other]).values()
    assert (pool["cpu"], pool["memory"], pool["count"]) == (31, "126Gi", 2)
    assert "taints" not in pool
