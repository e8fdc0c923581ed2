"""The templates of the sample workspace that teams start from: each makes a job without findings."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import REPOSITORY, gangplan

HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\n"
# Template -> parameters of a spec that uses it, and the ranks of its run.
LIBRARY: dict[str, tuple[str, int]] = {
    "horovod-pytorch": ("script: train.py, workers: 2", 16),
    "horovod-tensorflow": ("script: train.py, workers: 2, gpus: 4", 8),
    "deepspeed-zero": ("script: train.py, workers: 2", 16),
    "llm-finetune": ("script: train.py, workers: 2, model: /models/base", 16),
    "megatron": ("workers: 2", 16),
    "mpi-solver": ("program: ./flow, workers: 2", 32),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sample workspace."""
    root = tmp_path_factory.mktemp("sample")
    for name in ("specs", "overlays", "images", "policies", "jobtemplates"):
        shutil.copytree(REPOSITORY / name, root / name)
    return root


def test_every_template_that_is_not_a_benchmark_is_tried() -> None:
    names = {one.stem for one in (REPOSITORY / "jobtemplates").glob("*.yaml")}
    assert {name for name in names if not name.startswith("benchmark-")} == set(LIBRARY)


@pytest.mark.parametrize("template", LIBRARY)
def test_a_spec_of_a_few_lines_makes_a_run(template: str, sample: Path) -> None:
    parameters, ranks = LIBRARY[template]
    file = f"specs/nlp/{template}.yaml"
    (sample / file).write_text(
        f"{HEAD}template: {template}\nparameters: {{{parameters}}}\ncheckpoint: {{to: checkpoints}}\n",
        encoding="utf-8",
    )
    try:
        judged = gangplan("validate", file, "-C", sample)
        planned = gangplan("plan", file, "-C", sample)
    finally:
        (sample / file).unlink()
    assert judged.code == Exit.CLEAN, judged.err
    assert [one.rule for one in judged.findings if one.severity == "error"] == []
    assert f"ranks     {ranks} = " in planned.out or f"ranks     {ranks}\n" in planned.out, planned.out
