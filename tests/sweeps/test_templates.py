"""Sweeps whose jobs use a template."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.incremental.test_known import made
from tests.sweeps.files import FILE, SWEEP, workspace
from tests.sweeps.test_schema import wrong
from tests.templates.files import TEMPLATE, WIDE
from tests.workspaces import gangplan, render, rendered, write

BY = """\
apiVersion: gangplan.dev/v1
kind: Sweep
parameters:
  grid:
    lr: [1e-4, 3e-4, 1e-3]
    batch: [64, 128]
maxConcurrent: 2
template:
  template: wide
  parameters: {rate: "${{ parameters.lr }}", script: train.py}
  command: [python, train.py, "--lr=${{ parameters.lr }}", "--batch", "${{ parameters.batch }}"]
  gpus: 1
"""
PLAIN = SWEEP.replace(
    "  gpus: 1\n", "  gpus: 1\n  cpu: 8\n  memory: 32Gi\n  env: {OMP_NUM_THREADS: 4, NCCL_DEBUG: WARN}\n"
)
OWN = """\
apiVersion: gangplan.dev/v1
kind: Sweep
parameters: {grid: {lr: [1e-4, 0.10]}}
maxConcurrent: 1
template:
  template: wide
  parameters: {rate: "${{ parameters.lr }}"}
"""


def runs(root: Path) -> dict[str, bytes]:
    return {path: data for path, data in rendered(root).items() if "rates" in path}


def test_a_sweep_with_a_template_renders_the_runs_of_a_plain_sweep(tmp_path: Path) -> None:
    render(workspace(tmp_path / "by", BY, **{WIDE: TEMPLATE}))
    render(workspace(tmp_path / "plain", PLAIN))
    assert len(runs(tmp_path / "by")) == 6
    assert runs(tmp_path / "by") == runs(tmp_path / "plain")
    queues = [data for path, data in rendered(tmp_path / "by").items() if "platform" in path]
    assert queues == [data for path, data in rendered(tmp_path / "plain").items() if "platform" in path]


def test_a_value_reaches_the_template_as_it_is_written(tmp_path: Path) -> None:
    root = workspace(tmp_path, OWN, **{WIDE: TEMPLATE})
    plan = json.loads(gangplan("plan", FILE, "--format", "json", "-C", root).out)
    assert sorted(run["command"][-1] for run in plan["runs"]) == ["--lr=0.10", "--lr=1e-4"]
    assert {run["template"]["name"] for run in plan["runs"]} == {"wide"}


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("template: wide", "template: wild", f"{FILE}:6:13", "template-unknown"),
        ("{rate:", "{rat:", f"{FILE}:7:16", "template-parameter-unknown"),
        ("{rate:", "{rate: fast, script:", f"{FILE}:7:22", "template-parameter-value"),
        ("0.10]", "fast]", f"{FILE}:7:22", "template-parameter-value"),
        ("  template: wide\n", "", f"{FILE}:6:3", "template-parameter-unknown"),
    ],
)
def test_a_mistake_in_the_sweep_is_reported_once_at_its_place(
    tmp_path: Path, old: str, new: str, place: str, rule: str
) -> None:
    outcome = gangplan("validate", "-C", workspace(tmp_path, OWN.replace(old, new), **{WIDE: TEMPLATE}))
    assert (place, rule) in outcome.errors(), outcome.err
    assert sum(one[1] == rule for one in outcome.errors()) == 1


def test_a_mistake_in_the_template_is_reported_in_the_template(tmp_path: Path) -> None:
    root = workspace(tmp_path, OWN, **{WIDE: TEMPLATE.replace("cpu: 8", "cpu: many")})
    assert gangplan("validate", "-C", root).errors() == [(f"{WIDE}:13:8", "spec-value")]


def test_uncapped_trial_sizes_are_found_through_the_template(tmp_path: Path) -> None:
    sizes = OWN.replace("lr: [1e-4, 0.10]", "size: [2, 4]").replace(
        '{rate: "${{ parameters.lr }}"}', '{rate: 0.1, size: "${{ parameters.size }}"}'
    )
    root = workspace(tmp_path, sizes, **{WIDE: TEMPLATE})
    plain = sizes.replace(
        "template: wide\n", "image: openmpi\n  command: [a]\n  gpus: 2\n  cpu: 8\n  memory: 32Gi\n"
    ).replace(
        'parameters: {rate: 0.1, size: "${{ parameters.size }}"}',
        "workers: ${{ parameters.size }}\n  checkpoint: {to: filings}",
    )
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "sweep-uncapped"]
    same = gangplan("validate", "-C", workspace(tmp_path / "plain", plain)).findings
    assert [one.message for one in found] == [one.message for one in same if one.rule == "sweep-uncapped"]


def test_a_changed_template_rerenders_only_its_own_sweeps(tmp_path: Path) -> None:
    other = {WIDE: TEMPLATE, "jobtemplates/other.yaml": TEMPLATE, "specs/nlp/plain.yaml": PLAIN}
    root = workspace(tmp_path, OWN, **other)
    render(root)
    assert made(root, "validate") == (0, 0)
    write(root, {"jobtemplates/other.yaml": TEMPLATE.replace("cpu: 8", "cpu: 4")})
    assert made(root, "validate") == (0, 0)
    before = runs(root)
    write(root, {WIDE: TEMPLATE.replace("cpu: 8", "cpu: 4")})
    assert gangplan("render", "--check", "-C", root).code == 1
    render(root)
    assert runs(root) != before


def test_the_schema_accepts_a_template_in_place_of_its_fields() -> None:
    assert wrong(OWN) == []
    assert "template" in wrong(OWN.replace("  template: wide\n", ""))
    assert yaml.safe_load(OWN)["template"]["template"] == "wide"


@pytest.mark.parametrize(
    "parameters", ["parameters: {rate: 0.1, script: train.py}  # rate\n", "parameters:\n  rate: 0.1\n", ""]
)
def test_a_new_sweep_of_a_job_with_a_template_varies_its_parameters(tmp_path: Path, parameters: str) -> None:
    spec = f"apiVersion: gangplan.dev/v1\nkind: TrainingJob\ntemplate: wide\n{parameters}timeout: 4h\n"
    root = workspace(tmp_path, PLAIN, **{WIDE: TEMPLATE, "specs/nlp/tuned.yaml": spec})
    flags = ("--from", "specs/nlp/tuned.yaml", "-p", "rate=1e-4,1e-3", "--max-concurrent", "1")
    outcome = gangplan("new", "sweep", "found", *flags, "-C", root)
    assert outcome.code == 0, outcome.err
    text = (root / "specs/nlp/found.yaml").read_text()
    assert yaml.safe_load(text)["template"]["parameters"]["rate"] == "${{ parameters.rate }}"
    assert "2 trials" in outcome.out
