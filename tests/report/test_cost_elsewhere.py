"""`gangplan cost --elsewhere`: the same job on other pools, with its cost and its wait."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.pipeline.elsewhere import ClusterPool, move_spec_to_other_place
from gangplan.source.document import load_document
from tests import plain, workspaces
from tests.schedules import worlds
from tests.workspaces import Outcome, gangplan

SPEC = "specs/nlp/filings.yaml"
PRICED = "price: {perGpuHour: 1.5625}"
_OLD = "count: 4, cpu: 64, memory: 512Gi, gpu: {model: a100-40gb, count: 8}, labels: {pool: old}"
OTHERS = [
    f"  a100-old: {{price: {{perGpuHour: 1}}, {_OLD}}}",
    "  tiny: {count: 1, cpu: 8, memory: 32Gi, gpu: {model: t4, count: 1}, labels: {pool: tiny}}",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace with a price for its GPUs, a pool of cheaper ones, and a pool with too
    few."""
    root = workspaces.stock(tmp_path / "workspace")
    path = root / "overlays/lab/cluster.yaml"
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith("  a100:"):
            line = line.replace("{count:", f"{{{PRICED}, count:")
            lines += [line, *OTHERS]
        else:
            lines.append(line)
    path.write_text("\n".join(lines) + "\n")
    return root


def cost(root: Path, *flags: object) -> Outcome:
    """Run the command."""
    return gangplan("cost", "-C", root, "--elsewhere", *flags)


def costs(root: Path, *flags: object) -> list[dict[str, Any]]:
    """Return all jobs with their places."""
    outcome = cost(root, *flags, "--format", "json")
    assert outcome.code == Exit.CLEAN, outcome.err
    jobs: list[dict[str, Any]] = json.loads(outcome.out)["jobs"]
    return jobs


def places(root: Path, *flags: object) -> dict[str, dict[str, Any]]:
    """Return the places of the one job by their pools."""
    (job,) = costs(root, SPEC, *flags)
    return {one["pool"]: one for one in job["places"]}


def test_each_pool_with_gpus_is_tried(root: Path) -> None:
    found = places(root)
    assert set(found) == {"a100", "a100-spot", "a100-old", "tiny"}
    assert [one["isNow"] for one in found.values()].count(True) == 1
    assert found["a100"]["isNow"]
    ratio = Decimal(found["a100"]["most"]) / Decimal(found["a100-old"]["most"])
    assert Decimal("1.5") < ratio < Decimal("1.6")
    assert "fit" in found["tiny"]["refused"]
    assert found["tiny"]["most"] is None


def test_the_cheapest_pool_comes_first_and_refused_ones_last(root: Path) -> None:
    lines = cost(root, SPEC).out.splitlines()
    assert lines[0] == SPEC
    assert "a100-old" in lines[2]
    assert "tiny" in lines[-1]


def test_the_wait_includes_runs_that_are_there(root: Path, tmp_path: Path) -> None:
    """The quota of the pool is enough for one run; another job of the team has just taken it."""
    text = (root / SPEC).read_text()
    assert "workers: 4" in text
    (root / "specs/nlp/earlier.yaml").write_text(text.replace("workers: 4", "workers: 16"))
    durations = tmp_path / "durations.yaml"
    durations.write_text("nlp/earlier: 3h\nnlp/filings: 1h\n")
    alone, found = places(root), places(root, "--durations", durations)
    assert found["a100"]["waitSeconds"] == 3 * 3600
    assert found["a100-old"]["waitSeconds"] == 0
    assert found["a100"]["expected"] is not None
    assert alone["a100"]["expected"] is None


@pytest.mark.parametrize("spec", [workspaces.SPEC, worlds.SPEC], ids=["once", "by a schedule"])
def test_a_job_that_others_come_after_has_its_wait(spec: str, tmp_path: Path) -> None:
    """What a schedule or an earlier run creates is in Git as a template."""
    worlds.stock(tmp_path, spec, **{"specs/nlp/late.yaml": f"{workspaces.SPEC}after: [filings]\n"})
    for job in costs(tmp_path, SPEC):
        assert {one["waitSeconds"] for one in job["places"] if not one["refused"]} == {0}


def test_a_broken_platform_is_reported_once(root: Path) -> None:
    path = root / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text().replace("labels: {pool: old}", "labels: {pool: a100}"))
    outcome = cost(root, SPEC)
    assert outcome.code == Exit.INPUT
    assert "pool-overlap" in outcome.err
    assert outcome.out == ""


def test_elsewhere_needs_specs_and_a_known_format(root: Path) -> None:
    assert cost(root).code == Exit.INPUT
    assert "Name specs" in cost(root).err
    assert cost(root, SPEC, "--format", "csv").code == Exit.INPUT


def test_scalars_of_a_moved_spec_keep_their_text() -> None:
    text = """\
kind: TrainingJob
command: [python, train.py, --lr, 1e-4, "0.10", 010]
clusters: [here, there]
gpu: {model: h100}
gpus: 8
owner: needs no GPU, and no data [yet]
env: {EMPTY: "", NOTE: "a: b", FLAG: "yes"}
placement:
  nodePool: old
  spread: pack
description: |
  two
  lines
"""
    document, findings = load_document(text.encode(), "specs/a/b.yaml")
    assert document is not None, findings
    new = move_spec_to_other_place(document, ClusterPool("lab", "a100", ""))
    assert "1e-4" in new
    assert "010" in new
    value = plain.load_all(new.encode())
    (again,) = value
    assert again["clusters"] == ["lab"]
    assert again["placement"] == {"nodePool": "a100", "spread": "pack"}
    assert "gpu" not in again
    assert again["env"] == {"EMPTY": "", "NOTE": "a: b", "FLAG": "yes"}
    assert again["owner"] == "needs no GPU, and no data [yet]"
    assert again["description"] == "two\nlines\n"
