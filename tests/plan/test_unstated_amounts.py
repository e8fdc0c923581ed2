"""Variables with amounts that a container does not state: the kubelet gives the node's, or 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.resolve.test_other_devices import POOL

SPEC = "specs/nlp/filings.yaml"
ROOM = "env: {ROOM: {resource: %s}}"
NODES = "what its node has for all pods"
# What is written, and the message, or an empty text.
CASES = {
    "no disk": (ROOM % "limits.ephemeral-storage", f"ROOM is {NODES}: a worker states no disk"),
    "a request of no disk": (ROOM % "requests.ephemeral-storage", "ROOM is 0: a worker states no disk"),
    "a disk": (ROOM % "limits.ephemeral-storage" + "\ndisk: 9Gi", ""),
    "a disk for scratch": (ROOM % "limits.ephemeral-storage" + "\nscratch: 9Gi", ""),
    "scratch in memory": (
        ROOM % "limits.ephemeral-storage" + "\nscratch: {size: 9Gi, medium: memory}",
        f"ROOM is {NODES}: a worker states no disk",
    ),
    "memory": (ROOM % "limits.memory", ""),
    "no huge pages": (ROOM % "limits.hugepages-2Mi", "ROOM is 0: a worker states no hugePages"),
    "huge pages": (ROOM % "limits.hugepages-2Mi" + "\nhugePages: {2Mi: 4Gi}", ""),
    "other huge pages": (
        ROOM % "limits.hugepages-1Gi" + "\nhugePages: {2Mi: 4Gi}",
        "ROOM is 0: a worker states no hugePages",
    ),
    "a sidecar of a worker with disk": (
        "disk: 9Gi\nsidecars: [{name: watch, command: [w], %s}]" % (ROOM % "limits.ephemeral-storage"),
        f"ROOM is {NODES}: 'watch' states no disk",
    ),
    "a step": (
        "disk: 9Gi\nsteps: [{name: prepare, command: [p], %s}]" % (ROOM % "limits.ephemeral-storage"),
        f"ROOM is {NODES}: 'prepare' states no disk",
    ),
    "memory of a step": ("steps: [{name: prepare, command: [p], %s}]" % (ROOM % "limits.memory"), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_an_amount_that_a_container_does_not_state_is_noted(case: str, root: Path) -> None:
    lines, message = CASES[case]
    cluster = workspaces.CLUSTER.replace("gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}", POOL, 1)
    workspaces.write(root, {SPEC: f"{workspaces.SPEC}{lines}\n", "overlays/lab/cluster.yaml": cluster})
    found = list(workspaces.gangplan("validate", "-C", root).findings)
    assert [(one.rule, one.message, one.severity) for one in found] == (
        [("env-amount-unstated", message, "note")] if message else []
    )
    assert all(one.place.startswith(f"{SPEC}:") for one in found)
