"""Patches of the Jobs and CronJobs that create runs: kustomize follows the references of their pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import workspaces
from tests.pipelines import worlds
from tests.schedules.worlds import NIGHTLY, one, rendered

POD = {"Job": "/spec/template/spec", "CronJob": "/spec/jobTemplate/spec/template/spec"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}


def patched(root: Path, kind: str, path: str, value: object) -> dict[str, Any]:
    """Return the object of a kind that creates runs, with a value added at a path."""
    component = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [
            {"target": {"kind": kind}, "patch": json.dumps([{"op": "add", "path": path, "value": value}])}
        ],
    }
    workspaces.write(root, {"overlays/lab/kustomization.yaml": json.dumps(component)})
    return one(rendered(root), kind)


@pytest.mark.usefixtures("builder")
@pytest.mark.parametrize("kind", POD)
def test_a_patch_of_what_creates_runs_changes_that_alone(kind: str, tmp_path: Path) -> None:
    jobs = {"prepare": worlds.PREPARE, "filings": worlds.TRAIN}
    worlds.stock(tmp_path, jobs if kind == "Job" else {"filings": workspaces.SPEC + NIGHTLY})
    before = one(rendered(tmp_path), kind)
    annotated = patched(tmp_path, kind, "/metadata/annotations/example.com~1owner", "ml")
    assert annotated["spec"] == before["spec"]
    tolerated = patched(tmp_path, kind, f"{POD[kind]}/tolerations", [TOLERATION])
    pod = tolerated["spec"]
    for step in POD[kind].split("/")[2:]:
        pod = pod[step]
    assert pod.pop("tolerations") == [TOLERATION]
    assert tolerated["spec"] == before["spec"]
