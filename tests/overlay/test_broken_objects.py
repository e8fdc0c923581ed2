"""Patches that break the form of objects: a finding for each, and never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import workspaces
from tests.workspaces import gangplan

KINDS = {
    "TrainingRuntime": ("/spec", "/spec/template", "/spec/template/spec", "/spec/mlPolicy"),
    "TrainJob": ("/spec", "/spec/runtimeRef", "/spec/trainer", "/spec/runtimePatches"),
    "NetworkPolicy": ("/spec", "/spec/podSelector", "/spec/egress", "/spec/ingress"),
    "Namespace": ("/spec",),
    "ResourceQuota": ("/spec", "/spec/hard"),
    "LimitRange": ("/spec", "/spec/limits"),
    "PersistentVolumeClaim": ("/spec", "/spec/accessModes", "/spec/resources"),
    "ClusterRole": ("/rules",),
    "RoleBinding": ("/roleRef",),
    "ClusterQueue": ("/spec", "/spec/resourceGroups", "/spec/preemption"),
    "LocalQueue": ("/spec", "/spec/clusterQueue"),
    "ResourceFlavor": ("/spec", "/spec/nodeLabels"),
    "WorkloadPriorityClass": ("/value",),
    "ServiceAccount": ("/automountServiceAccountToken",),
}
VALUES: tuple[Any, ...] = ("abc", None, [1], {"x": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_a_patch_that_breaks_an_object_is_a_finding(kind: str, tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path)
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    for path in KINDS[kind]:
        for operation in ({"op": "remove"}, *({"op": "add", "value": value} for value in VALUES)):
            patch = yaml.safe_dump([{**operation, "path": path}])
            overlay = yaml.safe_dump({**head, "patches": [{"target": {"kind": kind}, "patch": patch}]})
            workspaces.write(root, {"overlays/lab/kustomization.yaml": overlay})
            outcome = gangplan("validate", "-C", root, "--no-cache")
            assert outcome.code in (0, 1, 2), (path, operation, outcome.err)


@pytest.mark.parametrize("name", ["kustomization.yml", "Kustomization"])
def test_a_kustomization_under_another_name_is_not_ignored(name: str, tmp_path: Path) -> None:
    """kustomize reads all three names, so its author believes that the patch is in force."""
    root = workspaces.write(workspaces.stock(tmp_path), {f"overlays/lab/{name}": "kind: Component\n"})
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.place) == ("spec-file-name", f"overlays/lab/{name}")
    assert found.help == "Rename it to kustomization.yaml."
