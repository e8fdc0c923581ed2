"""Five teams share 128 GPUs (US-01): sums, usage, refusals, and what three sets of versions change.

The workspace is in tests/examples/five-teams.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.model.quantity import ZERO, parse_quantity
from gangplan.source import load_objects
from tests.golden import render_example
from tests.workspaces import gangplan

EXAMPLE = Path(__file__).parent / "examples/five-teams"
CLUSTERS = ("gpu-21", "gpu-22", "gpu-23")
TEAMS = {"cv": 32, "nlp": 32, "forecasting": 24, "recommender": 24, "research": 16}
# Usage in the founding document: 118 of 128 (S0 UC5).
USED = {"cv": (16, 14), "nlp": (16, 12), "forecasting": (12, 12), "recommender": (12, 8), "research": (8, 8)}
GPU = "nvidia.com/gpu"
Body = dict[str, Any]


def objects(cluster: str) -> dict[tuple[str, str, str], Body]:
    """Return every object of a cluster by kind, namespace and name; names of runs come without their hash."""
    found = {}
    for path in sorted((render_example("five-teams") / cluster).rglob("*.yaml")):
        for body in load_objects(re.sub(r"-[0-9a-f]{8}\b", "-hash", path.read_text())):
            meta = body["metadata"]
            found[body["kind"], meta.get("namespace", ""), meta["name"]] = body
    return found


def queues(cluster: str) -> dict[str, Body]:
    """Return the ClusterQueues of a cluster by name."""
    return {name: body for (kind, _, name), body in objects(cluster).items() if kind == "ClusterQueue"}


def gpus(queue: Body, field: str = "nominalQuota") -> dict[str, int]:
    """Return the GPUs of a queue by flavor."""
    (group,) = queue["spec"]["resourceGroups"]
    return {
        flavor["name"]: int(item[field])
        for flavor in group["flavors"]
        for item in flavor["resources"]
        if item["name"] == GPU
    }


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_quotas_add_up_to_the_capacity(cluster: str) -> None:
    found = queues(cluster)
    assert {name: sum(gpus(queue).values()) for name, queue in found.items()} == TEAMS
    for flavor in ("a100-80gb", "a100-40gb"):
        assert sum(gpus(queue)[flavor] for queue in found.values()) == 64
    assert {name: queue["spec"]["fairSharing"]["weight"] for name, queue in found.items()} == {
        name: str(weight) for name, weight in TEAMS.items()
    }
    # CPU and memory go with the GPUs: a GPU without them could never be reclaimed (kueue#4028).
    for resource, whole in (("cpu", "1984"), ("memory", "22800Gi")):
        parts = [
            parse_quantity(item["nominalQuota"])
            for queue in found.values()
            for flavor in queue["spec"]["resourceGroups"][0]["flavors"]
            for item in flavor["resources"]
            if item["name"] == resource
        ]
        assert sum(parts, ZERO) == parse_quantity(whole)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_caps_are_quota_plus_borrowing(cluster: str) -> None:
    found = objects(cluster)
    for name, queue in queues(cluster).items():
        cap = found["ResourceQuota", f"team-{name}", "training"]["spec"]["hard"][f"requests.{GPU}"]
        most = sum(gpus(queue).values()) + sum(gpus(queue, "borrowingLimit").values())
        assert int(cap) == most
        assert most >= TEAMS[name]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_each_team_has_all_its_objects(cluster: str) -> None:
    found = objects(cluster)
    for team in TEAMS:
        namespace = f"team-{team}"
        kinds = {kind for kind, where, _ in found if where == namespace}
        assert {
            *("ResourceQuota", "LimitRange", "NetworkPolicy", "ServiceAccount", "RoleBinding", "LocalQueue"),
            *("TrainJob", "TrainingRuntime"),
        } <= kinds
        assert ("Namespace", "", namespace) in found
    classes = {
        name: body["value"] for (kind, _, name), body in found.items() if kind == "WorkloadPriorityClass"
    }
    assert classes == {"training-low": 100, "training-normal": 500, "training-high": 1000}


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two values differ, without positions in lists."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}" if path else key
            if key in old and key in new:
                yield from differences(old[key], new[key], inner)
            else:
                yield inner
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for before, after in zip(old, new, strict=True):
            yield from differences(before, after, path)
    elif old != new:
        yield path


def between(one: str, other: str) -> dict[str, set[str]]:
    """Return the paths in which objects of two clusters differ, by kind, ignoring the clusters' names."""
    old, new = objects(one), objects(other)
    assert old.keys() == new.keys()
    found: dict[str, set[str]] = {}
    for key, body in old.items():
        renamed = json.loads(json.dumps(body).replace(one, other))
        for path in differences(renamed, new[key]):
            found.setdefault(key[0], set()).add(path)
    return found


def test_clusters_differ_only_in_what_their_versions_demand() -> None:
    """Trainer 2.1 + Kueue 0.16, Trainer 2.2 + Kueue 0.18, Trainer 2.3 + Kueue 0.19."""
    assert between("gpu-21", "gpu-22") == EXPECTED_21_22
    assert between("gpu-22", "gpu-23") == EXPECTED_22_23


# Trainer 2.2 has a deadline on the TrainJob; before that, only the Job carries it, and the alert reads it
# there. Kueue 0.18 reports what would have to become free in its queues, which 0.16 does not. Kueue's own
# objects are the same in all three, and everything is the same between Trainer 2.2 + Kueue 0.18 and Trainer
# 2.3 + Kueue 0.19.
EXPECTED_21_22 = {
    "TrainJob": {"spec.activeDeadlineSeconds"},
    "TrainingRuntime": {"spec.template.spec.replicatedJobs.template.spec.activeDeadlineSeconds"},
    "PrometheusRule": {"spec.groups.rules.expr"},
    "ConfigMap": {"data.gangplan-queues.json"},
}
EXPECTED_22_23: dict[str, set[str]] = {}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Copy the workspace, for tests that change it."""
    shutil.copytree(EXAMPLE / "input", tmp_path / "workspace")
    return tmp_path / "workspace"


def change(root: Path, old: str, new: str, cluster: str = "gpu-22") -> None:
    """Change a cluster file."""
    path = root / f"overlays/{cluster}/cluster.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_a_sixth_team_of_eight_is_refused(root: Path) -> None:
    sixth = "  audio:\n    queue: training\n    quota: {a100-80gb: {gpus: 8}}\n    borrow: {}\nlimits: {"
    change(root, "limits: {", sixth)
    (root / "specs/audio").mkdir()
    (root / "specs/audio/team.yaml").write_text(
        "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [gpu-22]\n"
    )

    outcome = gangplan("render", "-C", root)

    assert outcome.code == Exit.FINDINGS
    ((place, rule),) = outcome.errors()
    assert (rule, place.partition(":")[0]) == ("quota-over-capacity", "overlays/gpu-22/cluster.yaml")
    assert "add up to 72 GPUs" in outcome.err
    assert "but it has 64" in outcome.err
    assert not (root / "rendered").exists()


def test_a_sixth_team_may_overcommit_on_purpose(root: Path) -> None:
    sixth = "  audio:\n    queue: training\n    quota: {a100-80gb: {gpus: 8}}\n    borrow: {}\n"
    change(root, "limits: {", f"{sixth}overcommit: true\nlimits: {{")
    (root / "specs/audio").mkdir()
    (root / "specs/audio/team.yaml").write_text(
        "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [gpu-22]\n"
    )
    assert gangplan("render", "-C", root).code == Exit.CLEAN


def test_the_founding_documents_quotas_contradict_each_other(root: Path) -> None:
    """It wants caps equal to quotas, and runs of 38, 44 and 32 GPUs by borrowing (S0 UC5 step 3; C-18)."""
    for team, quota in TEAMS.items():
        change(
            root,
            f"  {team}:\n    queue: training\n",
            f"  {team}:\n    queue: training\n    hardQuota: {{gpus: {quota}}}\n",
        )

    outcome = gangplan("validate", "-C", root, "--cluster", "gpu-22")

    assert outcome.code == Exit.FINDINGS
    assert [rule for _, rule in outcome.errors()] == ["hard-quota-below-queue"] * 5
    assert "capped at 32 GPUs, but its queue may admit 48 (32 of its own and 16 borrowed)" in outcome.err


def snapshot(path: Path, used: dict[str, tuple[int, int]]) -> Path:
    """Write what `kubectl get clusterqueues -o json` prints."""
    items = []
    for team, amounts in used.items():
        flavors = [
            {"name": flavor, "resources": [{"name": GPU, "total": str(amount), "borrowed": "0"}]}
            for flavor, amount in zip(("a100-80gb", "a100-40gb"), amounts, strict=True)
        ]
        items.append(
            {"kind": "ClusterQueue", "metadata": {"name": team}, "status": {"flavorsUsage": flavors}}
        )
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return path


def quota(root: Path, tmp_path: Path, used: dict[str, tuple[int, int]], *more: str) -> Any:
    """Run `gangplan cluster quota` with a snapshot."""
    usage = snapshot(tmp_path / "usage.json", used)
    return gangplan("cluster", "quota", "-C", root, "--cluster", "gpu-22", "--usage", usage, *more)


def test_usage_of_118_is_92_percent(root: Path, tmp_path: Path) -> None:
    outcome = quota(root, tmp_path, USED)
    assert outcome.code == Exit.CLEAN
    assert "128 promised of 128 = 64 + 64, 118/128 used (92 %)" in outcome.out
    assert "team cv is approaching its quota limit (30/32 GPUs used)" in outcome.err
    near = [shown.message.split()[1] for shown in outcome.findings]
    assert near == ["cv", "forecasting", "research"]  # 94 %, 100 %, 100 %; nlp has 88 %, recommender 83 %


def test_usage_below_nine_tenths_is_not_a_warning(root: Path, tmp_path: Path) -> None:
    outcome = quota(root, tmp_path, {"cv": (14, 14)})
    assert not outcome.findings
    assert quota(root, tmp_path, {"cv": (15, 14)}).findings[0].rule == "quota-nearly-used"


def test_borrowed_usage_is_reported(root: Path, tmp_path: Path) -> None:
    outcome = quota(root, tmp_path, {**USED, "cv": (16, 22)})
    assert "team cv uses more than its quota (38/32 GPUs): the rest is borrowed" in outcome.err


def test_json_has_the_same_usage(root: Path, tmp_path: Path) -> None:
    outcome = quota(root, tmp_path, USED, "--format", "json")
    cluster = json.loads(outcome.out)["clusters"]["gpu-22"]
    assert cluster["pools"]["a100-80gb"] == {"resource": GPU, "capacity": "64"}
    assert sum(int(row["used"]) for row in cluster["teams"]) == 118


BAD = [{"name": "a", "resources": [{"name": "cpu", "total": "many"}]}]
BELOW = [{"name": "a", "resources": [{"name": "cpu", "total": "-1"}]}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no ClusterQueue"),
        ("[]", "holds no ClusterQueue"),
        ("{", "is not JSON"),
        ("a: [", "neither JSON nor YAML"),
        ("[" * 100_000, "nested too deeply"),
        ('{"items": [{"kind": "ClusterQueue"}]}', "cannot be read"),
        ('{"items": [{"kind": "Pod", "metadata": {"name": "a"}}]}', "holds no ClusterQueue"),
        ('{"items": 1}', "holds no ClusterQueue"),
        (
            json.dumps({"kind": "ClusterQueue", "metadata": {"name": "cv"}, "status": {"flavorsUsage": BAD}}),
            "cannot be read",
        ),
        (
            json.dumps(
                {"kind": "ClusterQueue", "metadata": {"name": "cv"}, "status": {"flavorsUsage": BELOW}}
            ),
            "cannot be read",
        ),
    ],
)
def test_an_invalid_snapshot_is_refused(root: Path, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "usage.json"
    path.write_text(text)
    outcome = gangplan("cluster", "quota", "-C", root, "--cluster", "gpu-22", "--usage", path)
    assert outcome.code == Exit.INPUT
    assert said in outcome.err
    assert "kubectl get clusterqueues -o json" in outcome.err


def test_a_snapshot_of_another_cluster_is_refused(root: Path, tmp_path: Path) -> None:
    outcome = quota(root, tmp_path, {"elsewhere": (8, 8)})
    assert outcome.code == Exit.INPUT
    assert "it has none of the queues cv, forecasting" in outcome.err
    assert not outcome.out


def test_a_snapshot_with_an_unknown_flavor_is_refused(root: Path, tmp_path: Path) -> None:
    path = snapshot(tmp_path / "usage.json", USED)
    path.write_text(path.read_text().replace("a100-40gb", "a100-old", 1))
    outcome = gangplan("cluster", "quota", "-C", root, "--cluster", "gpu-22", "--usage", path)
    assert outcome.code == Exit.INPUT
    assert "queue 'cv' uses flavor 'a100-old', which the cluster file no longer has" in outcome.err


def test_the_reserve_of_a_cohort_counts_as_promised(root: Path) -> None:
    path = root / "overlays/gpu-22/cluster.yaml"
    text = path.read_text().replace("quota: {a100-80gb: {gpus: 8}, ", "quota: {a100-80gb: {gpus: 4}, ")
    path.write_text(
        re.sub(
            r"^cohorts:\n  (\S+): \{\}", r"cohorts:\n  \1: {quota: {a100-80gb: {gpus: 4}}}", text, flags=re.M
        )
    )
    outcome = gangplan("cluster", "quota", "-C", root, "--cluster", "gpu-22")
    assert "128 promised, 4 of them cohorts' reserves, of 128" in outcome.out


def test_a_snapshot_needs_the_name_of_its_cluster(root: Path, tmp_path: Path) -> None:
    outcome = gangplan("cluster", "quota", "-C", root, "--usage", snapshot(tmp_path / "usage.json", USED))
    assert outcome.code == Exit.INPUT
    assert "--cluster NAME" in outcome.err
