"""Claims of devices (dynamic resource allocation): RDMA devices of a pool's class are mapped, others asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.imports import sources
from tests.imports.sources import PYTORCHJOB, imported
from tests.workspaces import WIDE_CLUSTER

POOL = "labels: {pool: a100}, rdma: {resource: example.com/nic, count: 8, deviceClass: nic.example.com}"
CLAIMED = WIDE_CLUSTER.replace("labels: {pool: a100}", POOL)
# The shape of ResourceClaimTemplates in the documentation of GKE's managed DRANET.
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: nics}
spec:
  spec:
    devices:
      requests:
      - name: nic
        exactly: {deviceClassName: nic.example.com, allocationMode: ExactCount, count: 4}
---
"""
EXACT = "exactly: {deviceClassName: nic.example.com, allocationMode: ExactCount, count: 4}"
USED = "nvidia.com/gpu: 4}, claims: [{name: nic}]}"
JOB = PYTORCHJOB.replace("nvidia.com/gpu: 4}}", USED).replace(
    "          volumes:\n",
    "          resourceClaims:\n          - {name: nic, resourceClaimTemplateName: nics}\n          volumes:\n",
)


def claims_of(root: Path, text: str) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    """Import, and return the network of the spec, and what became of each leaf about claims."""
    (one,) = imported(root, "pytorchjob", text).imported
    entries = [entry for entry in one.draft.work.entries() if "laims" in entry.name]
    assert entries
    assert all(entry.where.line > 1 for entry in entries)
    return one.draft.values.get("network", {}), {entry.name: (entry.state, entry.why) for entry in entries}


MAPPED = {
    "a count": ("", "", 4),
    "all of a node": (EXACT, "exactly: {deviceClassName: nic.example.com, allocationMode: All}", "all"),
    "one": (EXACT, "exactly: {deviceClassName: nic.example.com}", 1),
    "an older API": (EXACT, "deviceClassName: nic.example.com\n        count: 2", 2),
}


@pytest.mark.parametrize("name", MAPPED)
def test_claims_of_a_pools_class_become_devices(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "WIDE_CLUSTER", CLAIMED)
    old, new, count = MAPPED[name]
    assert old in TEMPLATE
    network, found = claims_of(tmp_path, (TEMPLATE.replace(old, new) if old else TEMPLATE) + JOB)
    assert network == {"rdma": count}
    assert {state for state, _ in found.values()} == {"mapped"}


ASKED = {
    "another class": (EXACT, EXACT.replace("nic.", "gpu."), "deviceClass: gpu.example.com"),
    "a template that is not there": ("name: nics", "name: others", "ResourceClaimTemplate nics is not among the files"),
    "a claim that exists": ("resourceClaimTemplateName: nics", "resourceClaimName: nics", "a claim of its own"),
    "a selector": ("count: 4}", "count: 4, selectors: [{cel: {expression: 'true'}}]}", "says more"),
    "alternatives": (EXACT, "firstAvailable: [{name: a, deviceClassName: nic.example.com}]", "says more"),
    "two requests": (f"{EXACT}\n", f"{EXACT}\n      - {{name: more, {EXACT}}}\n", "says more"),
    "constraints": ("      requests:\n", "      constraints: [{matchAttribute: example.com/a}]\n      requests:\n", "says more"),
    "a count that is none": ("count: 4}", "count: four}", "says more"),
    "a request that is not there": ("{name: nic}]}", "{name: nic, request: other}]}", "no request of this name, only nic"),
    "two templates that differ": (
        "kind: ResourceClaimTemplate\n",
        f"kind: ResourceClaimTemplate\nmetadata: {{name: nics}}\nspec: {{spec: {{devices: {{}}}}}}\n---\n{TEMPLATE.split('metadata')[0]}",
        "says more",
    ),
    "a claim that nobody uses": (", claims: [{name: nic}]", "", "does not use this claim"),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_other_claims_are_asked_about(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "WIDE_CLUSTER", CLAIMED)
    old, new, words = ASKED[name]
    text = TEMPLATE + JOB
    assert old in text
    network, found = claims_of(tmp_path, text.replace(old, new))
    assert network == {}
    assert {state for state, _ in found.values()} == {"asked"}, found
    assert all(words in why for _, why in found.values()), found


def test_pods_that_claim_different_numbers_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run has one number for all of its workers."""
    monkeypatch.setattr(sources, "WIDE_CLUSTER", CLAIMED)
    other = TEMPLATE.replace("name: nics", "name: more").replace("count: 4", "count: 2")
    job = json.loads(json.dumps(plain.load(JOB)))  # without aliases
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["resourceClaims"][0]["resourceClaimTemplateName"] = "more"
    network, found = claims_of(tmp_path, f"{TEMPLATE}{other}{json.dumps(job)}")
    assert network == {"rdma": 2}
    assert {where.partition(".template")[0].rpartition(".")[2]: why for where, (_, why) in found.items()} == {
        "Master": "a run has one network.rdma for all pods, and it is 2 already",
        "Worker": "",
    }


def test_claims_are_asked_about_where_no_pool_has_a_class(tmp_path: Path) -> None:
    network, found = claims_of(tmp_path, TEMPLATE + JOB)
    assert network == {}
    assert {state for state, _ in found.values()} == {"asked"}


def test_a_container_may_use_no_claim_that_its_pod_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "WIDE_CLUSTER", CLAIMED)
    text = JOB.replace(
        "{name: nic, resourceClaimTemplateName: nics}", "{name: other, resourceClaimTemplateName: nics}"
    )
    _, found = claims_of(tmp_path, TEMPLATE + text)
    assert any("the pod has no claim of this name" in why for _, why in found.values())
