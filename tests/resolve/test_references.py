"""Every name that a file uses: findings suggest the nearest one, and name another team that declares it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan

SPEC, TEAM, CLUSTER = "specs/nlp/filings.yaml", "specs/nlp/team.yaml", "overlays/lab/cluster.yaml"
VISION = """\
apiVersion: gangplan.dev/v1
kind: Team
claims: {frames: {accessModes: [ReadWriteMany]}}
connections: {cameras: {endpoint: "https://s3.example.com", bucket: cameras, secret: cameras-s3}}
secrets: [labelbox]
"""
TYPOS = {
    "team": (CLUSTER, "  nlpp: {queue: training}\n", "team-unknown", "'nlp'"),
    "image": (SPEC, ("image: openmpi", "image: opnmpi"), "image-unknown", "'openmpi'"),
    "claim": (SPEC, "data: {filing: /data}\n", "claim-unknown", "'filings'"),
    "connection": (SPEC, "data: {lidr: env}\n", "claim-unknown", "'lidar'"),
    "checkpoint": (SPEC, "checkpoint: {to: filing}\n", "claim-unknown", "'filings'"),
    "claim of a connection": (TEAM, ("claim: lidar-files", "claim: lidar-file"), "claim-unknown", "'lidar-files'"),
    "secret": (SPEC, "secrets: {env: {T: hugingface/token}}\n", "secret-unknown", "'huggingface/token'"),
    "secret as files": (SPEC, "secrets: {files: {hugingface: /s}}\n", "secret-unknown", "'huggingface'"),
    "cluster of a spec": (SPEC, "clusters: [labs]\n", "cluster-unknown", "'lab'"),
    "cluster of a team": (TEAM, ("clusters: [lab]", "clusters: [labb]"), "cluster-unknown", "'lab'"),
    "node pool": (SPEC, "placement: {nodePool: a10}\n", "pool-unknown", "'a100'"),
    "pool of a quota": (CLUSTER, ("nlp: {queue: training}", "nlp: {queue: training, quota: {a10: {gpus: 8}}}"), "pool-unknown", "'a100'"),
    "GPU model": (SPEC, "gpu: {model: a100-8gb}\n", "gpu-model-unknown", "'a100-80gb'"),
    "topology level": (SPEC, "placement: {topology: {required: rac}}\n", "topology-level-unknown", "'rack'"),
    "cohort": (CLUSTER, ("nlp: {queue: training}", "nlp: {queue: training, cohort: compny}\ncohorts: {company: {}}"), "cohort-unknown", "'company'"),
    "endpoint": (SPEC, "network: {egress: [s33]}\n", "egress-unknown", "s3"),
    "priority": (SPEC, "priority: hgh\n", "spec-value", "high"),
    "priority of the cluster": (SPEC, "priority: critical\n", "priority-unknown", "high"),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPOS)
def test_the_nearest_name_is_suggested(name: str, root: Path) -> None:
    file, change, rule, near = TYPOS[name]
    text = (root / file).read_text()
    if isinstance(change, tuple):
        assert change[0] in text
        text = text.replace(*change, 1)
    else:
        text += change
    (root / file).write_text(text)
    outcome = gangplan("validate", "-C", root)
    told = [shown for shown in outcome.findings if shown.rule == rule]
    assert told, outcome.err
    assert near in f"{told[0].message} {told[0].help}"
    assert told[0].place.startswith(f"{file}:")


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("data: {frames: /data}\n", "claim-unknown"),
        ("data: {cameras: env}\n", "claim-unknown"),
        ("checkpoint: {to: frames}\n", "claim-unknown"),
        ("secrets: {env: {T: labelbox/token}}\n", "secret-unknown"),
    ],
)
def test_a_name_of_another_team_is_reported_with_its_team(line: str, rule: str, root: Path) -> None:
    workspaces.write(root, {"specs/vision/team.yaml": VISION, SPEC: workspaces.SPEC + line})
    (told,) = gangplan("validate", "-C", root).findings
    assert told.rule == rule
    assert "Team vision declares it" in told.help


def test_a_name_that_another_team_has_too_is_accepted(root: Path) -> None:
    """Another team may have a claim of the same name."""
    workspaces.write(root, {"specs/vision/team.yaml": VISION.replace("frames", "filings")})
    workspaces.write(root, {SPEC: workspaces.SPEC + "data: {filings: /data}\n"})
    assert gangplan("validate", "-C", root).findings == []
