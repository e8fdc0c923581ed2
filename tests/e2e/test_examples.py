"""The API server accepts the platform of every example without a warning and leaves it unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.source import load_objects
from tests import plain
from tests.e2e.drift import drift
from tests.e2e.story import ROOT
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
EXAMPLES = ROOT / "tests/examples"


def line(version: str) -> str:
    """Return `0.19` of `0.19.2`."""
    return ".".join(version.split(".")[:2])


def trees() -> list[tuple[str, str]]:
    """Return example and cluster of each one whose Kueue and Trainer the lab has."""
    profile = fixtures.chosen()
    found = []
    for file in sorted(EXAMPLES.glob("*/input/overlays/*/cluster.yaml")):
        versions = plain.load(file.read_text())["versions"]
        same = [
            line(versions.get(name, "0.0")) == line(getattr(profile, name)) for name in ("kueue", "trainer")
        ]
        if all(same):
            found.append((file.parents[3].name, file.parent.name))
    return found


def test_platforms_are_accepted_without_warnings_or_changes(lab: Lab) -> None:
    found: dict[str, list[str]] = {}
    kinds: set[str] = set()
    for example, cluster in trees():
        for body in _cluster_scoped(render_example(example) / cluster):
            kinds.add(body["kind"])
            answer = lab.client.apply(body, dry_run=True)
            lines = [*answer.warnings, *drift(body, answer.object)]
            if lines:
                found[f"{example}/{cluster}: {body['kind']}/{body['metadata']['name']}"] = lines
    assert not found
    if fixtures.chosen().name == "new":
        assert {
            *("AdmissionCheck", "ClusterQueue", "Cohort", "MultiKueueCluster", "MultiKueueConfig"),
            *("ProvisioningRequestConfig", "ResourceFlavor", "Topology", "PriorityClass", "ClusterRole"),
            "WorkloadPriorityClass",
        } <= kinds


def _cluster_scoped(tree: Path) -> list[dict[str, Any]]:
    return [
        body
        for path in sorted((tree / "platform").glob("*.yaml"))
        for body in load_objects(path.read_text())
        if "namespace" not in body["metadata"]
    ]
