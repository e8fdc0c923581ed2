"""Variables that read labels of their pods are reported where no pod has the label, whatever would add it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.promise.patched import verdict, workspace

FIELDS = {"image": "openmpi", "workers": 4, "gpus": 2, "cpu": 8, "memory": "32Gi"}
ADDED = [
    {"op": "add", "path": f"{role}/template/spec/template/metadata/labels/site", "value": "north"}
    for role in ("WORKERS", "LAUNCHERS")
]
BOTH = ["the launcher", "the workers"]
# The label, patches of the runtime, and the pods that do not have it.
CASES: dict[str, tuple[str, list[dict[str, Any]], list[str]]] = {
    "a label that nobody writes": ("site", [], BOTH),
    "a label of another controller": ("training.kubeflow.org/replica-index", [], BOTH),
    "a label that the overlay adds": ("site", ADDED, []),
    "a label that it adds to the workers": ("site", ADDED[:1], ["the launcher"]),
    "a label of the run": ("gangplan.dev/team", [], []),
    "a label of its Job": ("batch.kubernetes.io/job-completion-index", [], []),
    "a label of its JobSet": ("jobset.sigs.k8s.io/restart-attempt", [], []),
}  # fmt: skip
TOUCH = {"op": "add", "path": "/metadata/annotations/example.com~1seen", "value": "yes"}


@pytest.mark.parametrize("name", CASES)
def test_variables_from_missing_labels_are_reported(name: str, tmp_path: Path) -> None:
    label, patch, roles = CASES[name]
    root = workspace(tmp_path, {**FIELDS, "env": {"PLACE": {"field": f"metadata.labels['{label}']"}}})
    found = verdict(root, "TrainingRuntime", patch or [TOUCH])
    told = [one.message for one in found.findings if one.rule == "env-field-empty"]
    assert bool(told) == bool(roles)
    for one in told:
        assert f"their pods have no label '{label}'" in one
        assert any(f"PLACE would be empty in {role}:" in one for role in roles)
