"""The proof as users see it: the words of the requirements, the line of the cause, the change that helps."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.validate.kueue import judge_admission
from tests import workspaces
from tests.admission.worlds import edited, table, world_of
from tests.standing import base as shared
from tests.workspaces import gangplan, write

CPU_SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, train.py]
workers: 64
gpus: 0
cpu: 8
memory: 2Gi
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write the small workspace."""
    return workspaces.stock(tmp_path / "workspace")


def edit(root: Path, file: str, old: str, new: str) -> None:
    """Replace one text with another."""
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new, 1))


def test_gpus_beyond_the_quota_are_reported(root: Path) -> None:
    edit(root, "specs/nlp/filings.yaml", "workers: 4\ngpus: 2", "workers: 16\ngpus: 4")
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.severity, found.place) == ("over-quota", "error", "specs/nlp/filings.yaml:5:10")
    words = "Requested 64 GPUs, but project quota is 32. Contact admin or reduce workers."
    assert found.message == f"TrainJob/nlp/filings: {words}"
    assert "nvidia.com/gpu in flavor a100, previously considered podsets requests (0) + current" in found.help
    assert found.help.startswith("Use at most 8 workers (not 16)")


def test_cores_beyond_the_quota_are_reported(root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": CPU_SPEC})
    edit(
        root,
        "overlays/lab/cluster.yaml",
        "cpu: {count: 4, cpu: 60,",
        "cpu: {labels: {pool: cpu}, count: 4, cpu: 64,",
    )
    (found,) = gangplan("validate", "-C", root).findings
    words = "Job requires 512 CPU cores, but project quota is 256 cores."
    assert found.message.endswith(f": {words} Request quota increase or reduce workers.")
    assert " Kueue would say: " in found.help
    # 31 workers, because the launcher counts, too.
    assert found.help.startswith("Use at most 31 workers (not 64)")


@pytest.mark.parametrize("workers", [31, 32])
def test_the_proposed_number_of_workers_is_the_largest_that_fits(root: Path, workers: int) -> None:
    write(root, {"specs/nlp/filings.yaml": CPU_SPEC.replace("64", str(workers))})
    edit(
        root,
        "overlays/lab/cluster.yaml",
        "cpu: {count: 4, cpu: 60,",
        "cpu: {labels: {pool: cpu}, count: 4, cpu: 64,",
    )
    outcome = gangplan("validate", "-C", root)
    assert [one.rule for one in outcome.findings] == (["over-quota"] if workers == 32 else [])
    assert outcome.code == (Exit.FINDINGS if workers == 32 else Exit.CLEAN)


def test_a_quota_below_one_worker_is_reported(root: Path) -> None:
    path = "overlays/lab/cluster.yaml"
    edit(
        root,
        path,
        "  nlp: {queue: training}",
        "  nlp: {queue: training, quota: {a100: {gpus: 1}}, borrow: {}}",
    )
    (found,) = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert "Requested 8 GPUs, but project quota is 1." in found.message
    assert found.place == "specs/nlp/filings.yaml:6:7"
    assert found.help.startswith(
        "Fewer workers do not help: even one needs 2 GPUs, and at most 1 is ever available. Kueue would say: "
    )


def test_a_pool_without_nodes_is_named(root: Path) -> None:
    """Its quota is 0 because it has no nodes: neither fewer workers nor other fields would help."""
    edit(root, "overlays/lab/cluster.yaml", "a100: {count: 4,", "a100: {count: 0,")
    edit(root, "specs/nlp/filings.yaml", "gpus: 2", "gpus: 2\nplacement: {nodePool: a100}")
    (found,) = gangplan("validate", "-C", root).findings
    assert found.rule == "over-quota"
    said = "Name another pool: 'a100' has count: 0 in overlays/lab/cluster.yaml, and no autoscale"
    assert found.help.startswith(said)


def test_an_invalid_queue_is_reported_once(root: Path) -> None:
    write(
        root,
        {
            "specs/nlp/second.yaml": workspaces.SPEC,
            "overlays/lab/kustomization.yaml": (
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
                "- target: {kind: ClusterQueue}\n  patch: |-\n"
                "    - {op: remove, path: /spec/namespaceSelector}\n"
            ),
        },
    )
    assert [one.rule for one in gangplan("validate", "-C", root).findings] == ["queue-invalid"]


def test_the_plan_shows_what_is_borrowed(tmp_path: Path) -> None:
    root = shared.workspace(tmp_path / "workspace")
    edit(
        root,
        "specs/research/train.yaml",
        "workers: 2\ngpus: 4",
        "workers: 2\ngpus: 8\nplacement: {nodePool: h100}",
    )
    text = gangplan("plan", "-C", root).out
    line = next(one for one in text.splitlines() if "borrows" in one)
    assert re.search(r"admission admitted at once when idle \(node: h100\S*, launcher: cpu\); borrows", line)
    assert re.search(r"\b8 GPUs of h100\S* beyond the team's own quota", line)
    runs = json.loads(gangplan("plan", "-C", root, "--format", "json").out)["runs"]
    (run,) = [one["admission"] for one in runs if one["spec"] == "specs/research/train.yaml"]
    assert (run["outcome"], run["reason"], run["clusterQueue"]) == ("admit", "", "research")
    assert [of["nvidia.com/gpu"] for of in run["borrowed"].values()] == ["8"]


def test_the_plan_shows_that_a_run_is_never_admitted(root: Path) -> None:
    edit(root, "specs/nlp/filings.yaml", "workers: 4", "workers: 32")
    outcome = gangplan("plan", "-C", root)
    assert "admission never: couldn't assign flavors to pod set node: " in outcome.out


def test_a_thousand_runs_are_judged_in_seconds() -> None:
    base = table()
    for topology in ([], base["topology"]):
        scene = edited(base["base"], topology)
        world = world_of(scene)
        began = time.process_time()
        assert all(judge_admission(world, scene["run"]).outcome == "admit" for _ in range(1000))
        assert time.process_time() - began < 5
