"""The benchmarks of the sample workspace, and the efficiency that they predict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workspaces import CLUSTER, REPOSITORY, STOCK, gangplan, write

HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\n"
# BERT 4B on DGX A100: 1.89, 3.75, 6.86 and 12.71 times one node with 2, 4, 8 and 16 (NVIDIA NeMo user guide).
BERT = {2: 1.89, 4: 3.75, 8: 6.86, 16: 12.71}
ROOMY = CLUSTER.replace("a100: {count: 4,", "a100: {count: 200,")


def planned(root: Path, template: str, workers: int, more: str = "") -> dict[str, object]:
    """Return the template in the JSON of a plan."""
    spec = (
        f"{HEAD}template: {template}\nparameters: {{workers: {workers}{more}}}\ncheckpoint: {{to: filings}}\n"
    )
    catalog = STOCK["images/catalog.yaml"]
    if "\n  deepspeed:" not in catalog:
        catalog += catalog[catalog.index("\n  openmpi:") : catalog.index("\n  openmpi4:")].replace(
            "openmpi:", "deepspeed:"
        )
    own = {
        f"jobtemplates/{one.name}": one.read_text() for one in (REPOSITORY / "jobtemplates").glob("*.yaml")
    }
    files = {**own, "specs/nlp/filings.yaml": spec}
    write(root, {**STOCK, **files, "overlays/lab/cluster.yaml": ROOMY, "images/catalog.yaml": catalog})
    outcome = gangplan("plan", "-C", root, "--format", "json")
    (run,) = json.loads(outcome.out)["runs"]
    found: dict[str, object] = run["template"]
    return found


@pytest.mark.parametrize("workers", BERT)
def test_bert_predicts_the_measured_efficiency(tmp_path: Path, workers: int) -> None:
    found = planned(tmp_path, "benchmark-bert", workers, ", script: bench.py")["expected"]
    assert isinstance(found, dict)
    assert float(found["efficiency"]) == pytest.approx(BERT[workers] / workers, abs=0.001)
    assert "https://docs.nvidia.com/" in found["source"]


# The sources' figures: speed-ups by nodes, or for Horovod a share of linear scaling.
PUBLISHED = [
    ("benchmark-t5", 10, 8.64 / 10),
    ("benchmark-t5", 20, 1626353 / 110769 / 20),
    ("benchmark-gpt", 4, 161754 / 40345 / 4),
    ("benchmark-gpt", 16, 659481 / 40345 / 16),
    ("benchmark-gpt", 32, 28.73 / 32),
    ("benchmark-resnet101", 64, 0.9),
    ("benchmark-inception3", 64, 0.9),
    ("benchmark-vgg16", 64, 0.68),
]


@pytest.mark.parametrize(("template", "workers", "efficiency"), PUBLISHED)
def test_other_benchmarks_predict_the_published_efficiency(
    tmp_path: Path, template: str, workers: int, efficiency: float
) -> None:
    more = ", script: bench.py" if template in ("benchmark-t5", "benchmark-gpt") else ""
    found = planned(tmp_path, template, workers, more)["expected"]
    assert isinstance(found, dict)
    assert float(found["efficiency"]) == pytest.approx(efficiency, abs=0.001)
    assert "https://" in found["source"]


def test_without_a_published_figure_nothing_is_predicted(tmp_path: Path) -> None:
    assert "expected" not in planned(tmp_path, "benchmark-bert", 32, ", script: bench.py")


@pytest.mark.parametrize(("workers", "efficiency"), [(2, "0.80-0.92"), (32, "0.90"), (100, "0.80-0.92")])
def test_resnet_50_predicts_a_range_between_published_figures(
    tmp_path: Path, workers: int, efficiency: str
) -> None:
    found = planned(tmp_path, "benchmark-resnet50", workers)["expected"]
    assert isinstance(found, dict)
    assert found["efficiency"] == efficiency
