"""What a TrainJob changes in the pods of its runtime is judged like the runtime itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import workspaces
from tests.workspaces import Outcome, gangplan

PLACE = "overlays/lab/kustomization.yaml"
TAG = {"name": "more", "image": {"reference": "registry.example.com/more:1"}}
HOST = {"name": "host", "hostPath": {"path": "/etc"}}
TOKEN = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
SECRET = [{"name": "DB_PASSWORD", "value": "correct-horse"}]


def patched(operation: dict[str, Any]) -> str:
    """Return the overlay with one operation on the TrainJob."""
    patch = {"target": {"kind": "TrainJob"}, "patch": yaml.safe_dump([{"op": "add", **operation}])}
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    return yaml.safe_dump({**head, "patches": [patch]})


def of_pods(spec: dict[str, Any]) -> str:
    """Return the overlay that patches the workers' pods by the TrainJob."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}
    inner = {"template": {"spec": {"replicatedJobs": [job]}}}
    value = [{"manager": "example.com/site", "trainingRuntimeSpec": inner}]
    return patched({"path": "/spec/runtimePatches", "value": value})


def judged(root: Path, overlay: str) -> Outcome:
    """Validate a workspace of a team under HIPAA with this overlay."""
    workspaces.stock(root)
    policies = "policies: {packs: [baseline, restricted, images, hipaa]}\n"
    team = (root / "specs/nlp/team.yaml").read_text() + "compliance: [hipaa]\n"
    cluster = workspaces.CLUSTER + policies
    files = {"overlays/lab/cluster.yaml": cluster, "specs/nlp/team.yaml": team}
    workspaces.write(root, {**files, PLACE: overlay})
    return gangplan("validate", "-C", root, "--no-cache")


@pytest.mark.parametrize(
    ("overlay", "rule"),
    [
        (of_pods({"volumes": [HOST]}), "pod-security"),
        (of_pods({"volumes": [TAG]}), "image-digest"),
        (of_pods({"volumes": [TOKEN]}), "service-token"),
        (patched({"path": "/spec/trainer/env", "value": SECRET}), "literal-secrets"),
        (patched({"path": "/spec/trainer/image", "value": "registry.example.com/x:1"}), "image-digest"),
    ],
)
def test_what_a_train_job_adds_to_pods_is_judged_at_its_patch(
    overlay: str, rule: str, tmp_path: Path
) -> None:
    found = {one.rule: one.place for one in judged(tmp_path, overlay).findings}
    assert rule in found
    assert found[rule].startswith(f"{PLACE}:")


@pytest.mark.parametrize(
    "first", ["abc", [1], {"x": 1}, [{"manager": "a", "trainingRuntimeSpec": "x"}]], ids=str
)
def test_a_patch_that_another_one_corrects_never_ends_in_a_traceback(first: Any, tmp_path: Path) -> None:
    """What brings the breach is found by undoing one patch after the other."""
    overlay = yaml.safe_load(of_pods({"volumes": [HOST]}))
    wrong = yaml.safe_load(patched({"path": "/spec/runtimePatches", "value": first}))
    overlay["patches"].insert(0, wrong["patches"][0])
    outcome = judged(tmp_path, yaml.safe_dump(overlay))
    assert "pod-security" in {one.rule for one in outcome.findings}, outcome.err


def test_a_train_job_that_adds_nothing_forbidden_is_accepted(tmp_path: Path) -> None:
    plain = patched({"path": "/metadata/annotations/example.com~1note", "value": "none"})
    found = [
        {one.rule for one in judged(tmp_path / str(number), overlay).findings}
        for number, overlay in enumerate((plain, of_pods({"nodeSelector": {"pool": "a100"}})))
    ]
    assert found[0] == found[1]
