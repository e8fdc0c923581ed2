"""What a source says about its machines, where the clusters have no pool as large, or none like that."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch, judge_import_batch, read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.rules.imports import IMPORT_ASKED
from gangplan.workspace import load_workspace
from tests.imports.sources import SAGEMAKER, imported
from tests.workspaces import STOCK, WIDE_CLUSTER, write

SBATCH = """\
#!/bin/bash
#SBATCH --job-name=wide
#SBATCH --nodes=2
#SBATCH --gres=gpu:MODEL:4
#SBATCH --mem=4000G
#SBATCH --cpus-per-task=16
#SBATCH --ntasks-per-node=4
#SBATCH --time=1:00:00
srun ./hybrid
"""
SPOT = '"EnableManagedSpotTraining": true, "TrainingJobName"'


def on_cluster(root: Path, cluster: str, text: str) -> Batch:
    write(root / "workspace", {**STOCK, "overlays/lab/cluster.yaml": cluster})
    write(root / "sources", {"job.json": text})
    target = ImportTarget(load_workspace(root / "workspace"), "nlp", ImportAnswers())
    batch = read_import_batch(SOURCE_KINDS["sagemaker"], [root / "sources/job.json"], target, {})
    judge_import_batch(batch, root / "workspace")
    return batch


@pytest.mark.parametrize(
    ("model", "of_pool", "of_spec"),
    [("a100", "a100-80gb", {"model": "a100-80gb"}), ("h100", "h100-80gb", None), ("big", "gpu", None)],
)
def test_a_pool_that_is_suggested_takes_the_run(
    model: str, of_pool: str, of_spec: dict[str, str] | None, tmp_path: Path
) -> None:
    """The pool has the GPUs that the source names, so that the spec that asks for them fits on it."""
    batch = imported(tmp_path, "slurm", SBATCH.replace("MODEL", model), "job.sbatch", image="pytorch")
    (one,) = batch.imported
    (pool,) = [each for each in one.draft.suggestions if "gpu" in each.value and each.path[0] == "nodePools"]
    assert pool.value["gpu"] == {"model": of_pool, "count": 4}
    assert one.draft.values.get("gpu") == of_spec
    assert one.draft.values["placement"] == {"nodePool": pool.path[1]}
    assert not [finding for finding in batch.everything if finding.is_error]
    assert "lab" in one.runs


def test_another_model_with_room_is_not_the_one_that_is_wanted(tmp_path: Path) -> None:
    """A pool of large nodes with GPUs of another model does not keep the import from suggesting one."""
    large = (
        "  l40s: {count: 8, cpu: 256, memory: 8000Gi, gpu: {model: l40s, count: 8}, labels: {pool: l40s}}\n"
    )
    cluster = WIDE_CLUSTER.replace("nodePools:\n", f"nodePools:\n{large}")
    assert cluster != WIDE_CLUSTER
    write(tmp_path / "workspace", {**STOCK, "overlays/lab/cluster.yaml": cluster})
    write(tmp_path / "sources", {"job.sbatch": SBATCH.replace("MODEL", "a100")})
    target = ImportTarget(load_workspace(tmp_path / "workspace"), "nlp", ImportAnswers("pytorch"))
    batch = read_import_batch(SOURCE_KINDS["slurm"], [tmp_path / "sources/job.sbatch"], target, {})
    judge_import_batch(batch, tmp_path / "workspace")
    assert not [finding for finding in batch.everything if finding.is_error]
    assert batch.imported[0].draft.values["placement"]["nodePool"].startswith("migrated-4-a100-80gb")


def test_spot_is_taken_where_a_pool_is_spot(tmp_path: Path) -> None:
    batch = on_cluster(tmp_path, WIDE_CLUSTER, SAGEMAKER.replace('"TrainingJobName"', SPOT))
    assert batch.imported[0].draft.values["placement"] == {"capacity": "spot"}
    assert not [finding for finding in batch.everything if finding.is_error]


@pytest.mark.parametrize("has_processors", [False, True])
def test_spot_is_asked_about_where_no_pool_for_the_workers_is_spot(
    has_processors: bool, tmp_path: Path
) -> None:
    """As it is without a checkpoint. Spot nodes without GPUs are of no use to workers that have some."""
    cluster = WIDE_CLUSTER.replace(", capacity: spot", "")
    assert cluster != WIDE_CLUSTER
    if has_processors:
        cluster = cluster.replace("memory: 240Gi}", "memory: 240Gi, capacity: spot}")
    batch = on_cluster(tmp_path, cluster, SAGEMAKER.replace('"TrainingJobName"', SPOT))
    (one,) = batch.imported
    assert "placement" not in one.draft.values
    asked = [finding.message for finding in batch.everything if finding.rule == IMPORT_ASKED]
    assert any("EnableManagedSpotTraining" in message for message in asked)
    assert not [finding for finding in batch.everything if finding.is_error]
    assert "lab" in one.runs
