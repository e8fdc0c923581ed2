"""Slices of a topology: Kueue admits pods that do not fill a slice, but they never get a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.validate.kueue import judge_admission
from gangplan.validate.kueue.model import count_pods_kueue_admits_without_node
from gangplan.validate.scheduler import fit_admitted_run
from tests.admission.worlds import edited, table, world_of
from tests.standing import base as shared
from tests.workspaces import gangplan, write

TABLE = table()
POD = "spec.template.spec.replicatedJobs.0.template.spec.template"
RACK = "example.com/rack"
PREFIX = "kueue.x-k8s.io/podset-"
NOTES = f"/{POD.replace('.', '/')}/metadata/annotations/{PREFIX.replace('/', '~1')}"
PATCH = f"""\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {{kind: TrainingRuntime}}
  patch: |-
    - op: add
      path: {NOTES}slice-required-topology
      value: topology.example.com/rack
    - op: add
      path: {NOTES}slice-size
      value: "2"
"""


@pytest.mark.parametrize(
    ("workers", "size", "rest"), [(4, 2, 0), (3, 2, 1), (5, 2, 1), (5, 3, 2), (6, 3, 0), (3, 1, 0)]
)
def test_pods_beyond_whole_slices_get_no_node(workers: int, size: int, rest: int) -> None:
    notes = {f"{PREFIX}unconstrained-topology": "true"}
    notes |= {f"{PREFIX}slice-required-topology": RACK, f"{PREFIX}slice-size": str(size)}
    edits = [
        *TABLE["topology"],
        {"in": "TrainingRuntime", "at": f"{POD}.metadata.annotations", "set": notes},
        {"in": "TrainJob", "at": "spec.trainer.numNodes", "set": workers},
    ]
    scene = edited(TABLE["base"], edits)
    world = world_of(scene)
    verdict, fit = judge_admission(world, scene["run"]), fit_admitted_run(world, scene["run"])

    assert verdict.outcome == "admit"
    assert count_pods_kueue_admits_without_node(verdict) == ({"node": rest} if rest else {})
    assert fit is not None
    assert fit.bound == fit.pods - rest
    assert fit.verdict == ("no" if rest else "sure")
    assert sum(fit.placements["node"].values()) == workers - rest


@pytest.mark.parametrize(("workers", "said"), [(3, True), (4, False)])
def test_pods_beyond_whole_slices_are_reported(tmp_path: Path, workers: int, said: bool) -> None:
    root = shared.workspace(tmp_path / "workspace")
    for team in ("cv", "research"):
        (root / f"specs/{team}/train.yaml").unlink()
    spec = shared.SPEC.replace("workers: 2\ngpus: 4", f"workers: {workers}\ngpus: 8")
    spec += "placement: {nodePool: h100, topology: {required: block}}\n"
    write(root, {"specs/nlp/train.yaml": spec, "overlays/lab/kustomization.yaml": PATCH})
    found = gangplan("validate", "-C", root).findings
    assert [one.rule for one in found] == (["no-topology"] if said else [])
    if said:
        assert found[0].place.startswith("overlays/lab/kustomization.yaml:")
        assert "it admits the run, but 1 of 3 pods of 'node' never get a node" in found[0].message
        assert found[0].help == "Use 2 or 4 pods of 'node', or a slice size that divides 3."
