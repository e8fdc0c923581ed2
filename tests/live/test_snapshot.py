"""Snapshots: what is read, what is kept of it, and where it differs from the cluster file."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.live.pools import NodeList, find_pool_of_live_node, summarise_live_node_pools
from gangplan.model.statuses import read_statuses
from gangplan.model.usage import read_usage
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.live.answers import CLUSTER, KUEUE, TRAINER, node, resources
from tests.live.server import serving
from tests.workspaces import Outcome, gangplan

TIME = "2026-11-23T08:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace."""
    return workspaces.stock(tmp_path / "workspace")


def taken(root: Path, answers: dict[str, Any], *more: str) -> Outcome:
    """Take a snapshot of a cluster with these answers."""
    with serving(answers) as server:
        path = server.kubeconfig(root.parent, "lab")
        arguments = ("cluster", "snapshot", "lab", "-C", root, "--kubeconfig", path, "--observed", TIME)
        outcome = gangplan(*arguments, *more)
        assert server.methods == {"GET"}
        assert not [path for path in server.paths if "secret" in path or "configmap" in path]
    return outcome


def test_the_same_facts_give_the_same_bytes(root: Path) -> None:
    outcome = taken(root, CLUSTER)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "the cluster file agrees" in outcome.err
    path = root / "observed/lab.json"
    first = path.read_bytes()
    shuffled = deepcopy(CLUSTER)
    shuffled["/api/v1/nodes"].reverse()
    shuffled["/apis"]["groups"].reverse()
    taken(root, shuffled)
    assert path.read_bytes() == first
    text = first.decode()
    assert "hunter2" not in text
    assert "managedFields" not in text
    assert "last-applied" not in text
    body = json.loads(text)
    assert body["versions"] == {"kubernetes": "1.34.4", "kueue": "0.19.2", "trainer": "2.3.0"}
    assert [(one["pool"], one["count"]) for one in body["nodes"]] == [
        ("cpu", 4),
        ("a100", 4),
        ("a100-spot", 4),
    ]
    assert body["trainJobs"] == {"nlp": {"running": 1}}


def test_readers_of_kubectl_output_read_snapshots(root: Path) -> None:
    taken(root, CLUSTER)
    path = root / "observed/lab.json"
    usage = read_usage(path)
    assert usage["nlp"]["a100"]["nvidia.com/gpu"].value() == 8
    (status,) = read_statuses(path)
    assert (status.name, status.team, status.end) == ("filings-0a1b2c3d", "nlp", "")


def test_a_snapshot_changes_nothing_in_rendered(root: Path) -> None:
    workspaces.render(root)
    before = workspaces.rendered(root)
    taken(root, CLUSTER)
    assert gangplan("render", "--check", "-C", root).code == Exit.CLEAN
    assert workspaces.rendered(root) == before


def test_pages_are_read_to_the_end(root: Path) -> None:
    """A list with `continue` is requested again."""
    answers = deepcopy(CLUSTER)
    items = answers.pop("/api/v1/nodes")

    with serving(answers) as server:

        class Pages(dict[str, Any]):
            def get(self, path: str, default: Any = None) -> Any:
                if path == "/api/v1/nodes":
                    query = server.asked[-1][2]
                    part, token = (items[:5], "more") if "continue" not in query else (items[5:], "")
                    return {"metadata": {"continue": token}, "items": part}
                return super().get(path, default)

        server.answers = Pages(answers)
        path = server.kubeconfig(root.parent, "lab")
        arguments = ("cluster", "snapshot", "lab", "-C", root, "--kubeconfig", path, "-o", "-")
        outcome = gangplan(*arguments)
    assert sum(one["count"] for one in json.loads(outcome.out)["nodes"]) == 12


DIFFERENT = [
    (
        "kubernetes",
        {"/version": {"gitVersion": "v1.33.9+k3s1"}},
        "observed-version",
        "warning",
        "Kubernetes 1.33.9",
    ),
    ("patch", {"/version": {"gitVersion": "v1.34.9"}}, "observed-version", "note", "Kubernetes 1.34.9"),
    ("no-kueue", {f"/apis/{KUEUE}": resources()}, "observed-kind", "error", "does not serve clusterqueues"),
    (
        "jobset",
        {"/apis/jobset.x-k8s.io/v1alpha2": resources()},
        "observed-kind",
        "error",
        "does not serve jobsets",
    ),
    (
        "old-trainer",
        {
            f"/openapi/v3/apis/{TRAINER}": {
                "components": {
                    "schemas": {
                        "x.TrainJob": {"properties": {"spec": {"properties": {"podTemplateOverrides": {}}}}}
                    }
                }
            }
        },
        "observed-kind",
        "error",
        "they are those of 2.1",
    ),
]
NODES = CLUSTER["/api/v1/nodes"]
TAINT = {"taints": [{"key": "example.com/maintenance", "value": "yes", "effect": "NoSchedule"}]}
WRONG_NODES = [
    ("fewer", NODES[:-1], "observed-nodes", "pool 'a100-spot' has 3 nodes, and the file states 4"),
    ("none", NODES[:8], "observed-nodes", "no node belongs to pool 'a100-spot' (pool=spot)"),
    (
        "gpus",
        [*NODES[:-1], node("spot-3", "spot", 7)],
        "observed-nodes",
        "has 7 GPUs to give, and the file states 8",
    ),
    (
        "taint",
        [*NODES[:-1], node("spot-3", "spot", 8, spec=TAINT)],
        "observed-nodes",
        "taint example.com/maintenance",
    ),
    (
        "rack",
        [*NODES[:-1], node("spot-3", "spot", 8, labels={"pool": "spot", "kubernetes.io/hostname": "spot-3"})],
        "observed-topology",
        "1 of 12 nodes",
    ),
    (
        "cordoned",
        [*NODES[:-1], node("spot-3", "spot", 8, spec={"unschedulable": True})],
        "observed-nodes",
        "1 of the 4 nodes of pool 'a100-spot' takes no new pods",
    ),
]


@pytest.mark.parametrize(
    ("answers", "rule", "severity", "words"),
    [one[1:] for one in DIFFERENT],
    ids=[one[0] for one in DIFFERENT],
)
def test_differing_versions_and_kinds_are_reported(
    root: Path, answers: dict[str, Any], rule: str, severity: str, words: str
) -> None:
    outcome = taken(root, {**CLUSTER, **answers})
    found = [one for one in outcome.findings if words in one.message]
    assert [(one.rule, one.severity) for one in found] == [(rule, severity)], outcome.err
    assert found[0].place.startswith("overlays/lab/cluster.yaml:3:")
    assert outcome.code == (Exit.FINDINGS if severity == "error" else Exit.CLEAN)
    assert found[0].help
    again = gangplan("cluster", "check", "-C", root, "--snapshot", root / "observed/lab.json")
    assert set(outcome.findings) <= set(again.findings)


@pytest.mark.parametrize(
    ("nodes", "rule", "words"), [one[1:] for one in WRONG_NODES], ids=[one[0] for one in WRONG_NODES]
)
def test_differing_nodes_are_reported(root: Path, nodes: list[Any], rule: str, words: str) -> None:
    outcome = taken(root, {**CLUSTER, "/api/v1/nodes": nodes})
    assert [(one.rule, words in one.message) for one in outcome.findings] == [(rule, True)], outcome.err


@pytest.mark.parametrize(
    ("device_class", "rules"), [("", ["observed-nodes"]), (", deviceClass: nic.example.com", [])]
)
def test_nodes_do_not_report_devices_of_a_class(device_class: str, rules: list[str], root: Path) -> None:
    """A driver reports them in ResourceSlices."""
    rdma = f"labels: {{pool: spot}}, rdma: {{resource: example.com/nic, count: 8{device_class}}}"
    text = workspaces.CLUSTER.replace("labels: {pool: spot}", rdma)
    workspaces.write(root, {"overlays/lab/cluster.yaml": text})
    assert [one.rule for one in taken(root, CLUSTER).findings] == rules


def test_validate_also_takes_snapshots(root: Path) -> None:
    taken(root, {**CLUSTER, "/api/v1/nodes": NODES[:-1]})
    outcome = gangplan("validate", "-C", root, "--snapshot", root / "observed/lab.json")
    assert "observed-nodes" in {one.rule for one in outcome.findings}
    assert "observed-nodes" not in gangplan("validate", "-C", root).err


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind": "ClusterSnapshot"}', '{"kind": "List", "items": []}']
)
def test_files_that_are_not_snapshots_are_refused(root: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    outcome = gangplan("cluster", "check", "-C", root, "--snapshot", path)
    assert outcome.code == Exit.INPUT
    assert "gangplan cluster snapshot NAME" in outcome.err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodes", [{}]),
        ("nodes", [1]),
        ("nodes", [{"pool": "cpu", "count": "4", "ready": 4, "labels": {}, "taints": [], "allocatable": {}}]),
        ("versions", {"kubernetes": "new"}),
        ("versions", {"kubernetes": 1}),
        ("topology", {"a": {}}),
        ("crds", {"trainjobs.trainer.kubeflow.org": 1}),
        ("storageClasses", {"a": 1}),
        ("runtimeClasses", [1]),
    ],
)
def test_edited_snapshots_are_refused(root: Path, name: str, value: object) -> None:
    taken(root, CLUSTER)
    path = root / "observed/lab.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    outcome = gangplan("cluster", "check", "-C", root, "--snapshot", path)
    assert outcome.code == Exit.INPUT, outcome.err
    assert "somebody has changed it" in outcome.err


@pytest.mark.parametrize(
    ("gang", "kind"),
    [("volcano", "podgroups.scheduling.volcano.sh"), ("coscheduling", "podgroups.scheduling.x-k8s.io")],
)
def test_a_missing_gang_scheduler_is_reported(root: Path, gang: str, kind: str) -> None:
    path = root / "overlays/lab/cluster.yaml"
    path.write_text(f"{path.read_text()}gang: {gang}\n")
    outcome = taken(root, CLUSTER)
    (shown,) = [one for one in outcome.findings if kind in one.message]
    assert (shown.rule, shown.severity) == ("observed-kind", "error")
    assert shown.place.startswith(f"overlays/lab/cluster.yaml:{len(path.read_text().splitlines())}:")


def test_a_node_goes_to_the_pool_that_fits_best(root: Path) -> None:
    spec = load_workspace(root).clusters["lab"].spec
    assert find_pool_of_live_node(node("a"), spec) == "cpu"
    assert find_pool_of_live_node(node("a", "a100", 8), spec) == "a100"
    assert find_pool_of_live_node(node("a", "unknown", 8), spec) == ""
    assert find_pool_of_live_node(node("a", "spot", 8), spec) == "a100-spot"
    (summary,) = summarise_live_node_pools(NodeList([node("a", cpu="58"), node("b")]), spec)
    assert summary["allocatable"]["cpu"] == {"least": "58", "most": "60"}
    assert "kubernetes.io/hostname" not in summary["labels"]
