"""Thirty faults of thirty kinds in one workspace: thirty findings in one run, one each, at their lines.

Removing one fault removes exactly its finding: no fault hides another, and none is reported twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.standing import base
from tests.workspaces import gangplan, write

HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\n"
GOOD = "image: openmpi\ncommand: [python, train.py]\nworkers: 2\ngpus: 4\n"
FAR = base.CLUSTER.replace("eu-central", "eu-west")
TEAM = "apiVersion: gangplan.dev/v1\nkind: Team\nnamespace: team-{0}\nclusters: [{1}]\n"
FAKE_TOKEN = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"


@dataclass(frozen=True)
class Fault:
    """A fault: the file with it, the file without it (None: no file), and where it is reported."""

    file: str
    bad: str
    good: str | None
    place: str
    rule: str


def spec(name: str, lines: str, place: str, rule: str, team: str = "cv", body: str = GOOD) -> Fault:
    """Return a fault in its own spec."""
    return Fault(f"specs/{team}/{name}.yaml", f"{HEAD}{body}{lines}", None, place, rule)


def cluster(name: str, old: str, new: str, place: str, rule: str) -> Fault:
    """Return a fault in its own cluster, which has its own teams."""
    good = FAR.replace("  cv:\n", f"  {name}:\n").replace("  nlp:\n", f"  {name}-b:\n")
    good = good.replace("  research:\n", f"  {name}-c:\n")
    assert old in good
    return Fault(f"overlays/{name}/cluster.yaml", good.replace(old, new, 1), good, place, rule)


def without(line: str) -> str:
    """Return a good spec without one of its lines."""
    return "".join(kept for kept in GOOD.splitlines(keepends=True) if not kept.startswith(line))


FAULTS = (
    spec("unknown-field", "wrokers: 2\n", "7:1", "spec-unknown-field"),
    spec("wrong-type", "slots: many\n", "7:8", "spec-type"),
    spec("wrong-unit", "memory: 32GB\n", "7:9", "spec-value"),
    spec("no-command", "", "1:1", "spec-missing-field", body=without("command")),
    spec("no-yaml", "env: {A: [}\n", "7:11", "yaml-syntax"),
    spec("key-twice", "gpus: 2\n", "7:1", "yaml-duplicate-key"),
    spec("image", "image: openmp\n", "6:8", "image-unknown", body=without("image")),
    spec("cluster", "clusters: [labs]\n", "7:12", "cluster-unknown"),
    spec("pool", "placement: {nodePool: a10}\n", "7:23", "pool-unknown"),
    spec("model", "gpu: {model: a100-8gb}\n", "7:14", "gpu-model-unknown"),
    spec("claim", "data: {filings: /data}\n", "7:8", "claim-unknown"),
    spec(
        "level", "placement: {nodePool: h100, topology: {required: rak}}\n", "7:50", "topology-level-unknown"
    ),
    spec("egress", "network: {egress: [s3]}\n", "7:20", "egress-unknown"),
    spec("rdma", "network: {rdma: required}\n", "7:17", "rdma-missing"),
    spec("too-long", "timeout: 30h\n", "7:10", "timeout-not-extended"),
    spec("far-too-long", "timeout: 200h\nextendedTimeout: true\n", "7:10", "timeout-over-limit"),
    spec("too-many", "workers: 65\n", "6:10", "workers-over-limit", body=without("workers")),
    spec("count", "command: [mpirun, -np, '3', x]\n", "6:24", "ranks-mismatch", body=without("command")),
    spec("intel", "image: intel\n", "6:8", "licence-not-acknowledged", body=without("image")),
    spec("family", "mpi: {implementation: MPICH}\n", "7:23", "mpi-mismatch"),
    spec("x" * 60, "", "1:1", "name-too-long"),
    spec("token", f"env: {{HF_TOKEN: {FAKE_TOKEN}}}\n", "7:17", "secret-literal"),
    spec("secret", "secrets: {env: {A: other/key}}\n", "7:20", "secret-unknown"),
    spec("too-large", "workers: 40\n", "6:10", "over-quota", body=without("workers")),
    spec("priority", "priority: high\n", "7:11", "priority-not-allowed", team="nlp"),
    spec("no-quota", "placement: {nodePool: a100}\n", "7:23", "pool-not-allowed", team="research"),
    cluster("circle", "company: {}", "company: {parent: labs}", "15:21", "cohort-cycle"),
    cluster("pair", 'kueue: "0.19.2"', 'kueue: "0.16.1"', "3:59", "version-pair"),
    cluster(
        "sums",
        "a100: {gpus: 16}, h100: {gpus: 32}",
        "a100: {gpus: 24}, h100: {gpus: 32}",
        "29:29",
        "quota-over-capacity",
    ),
    cluster("cap", "hardQuota: {gpus: 40}", "hardQuota: {gpus: 32}", "25:23", "hard-quota-below-queue"),
)


def workspace(root: Path, left_out: Fault | None = None) -> Path:
    """Create the workspace with all faults but one."""
    base.workspace(root)
    for fault in FAULTS:
        text = fault.good if fault is left_out else fault.bad
        if text is not None:
            write(root, {fault.file: text})
        if fault.file.startswith("overlays/"):
            name = fault.file.split("/")[1]
            teams = {
                f"specs/{team}/team.yaml": TEAM.format(team, name)
                for team in (name, f"{name}-b", f"{name}-c")
            }
            write(root, teams)
    return root


def found(root: Path) -> list[tuple[str, str]]:
    """Return place and rule of every finding of any severity."""
    outcome = gangplan("validate", "-C", root, "--fail-on", "note")
    assert outcome.code != 0 or not outcome.findings
    return sorted((shown.place, shown.rule) for shown in outcome.findings)


def expected(left_out: Fault | None = None) -> list[tuple[str, str]]:
    """Return the expected findings."""
    return sorted((f"{fault.file}:{fault.place}", fault.rule) for fault in FAULTS if fault is not left_out)


def test_thirty_faults_give_thirty_findings(tmp_path: Path) -> None:
    assert len(FAULTS) == len({fault.rule for fault in FAULTS}) == 30
    assert found(workspace(tmp_path)) == expected()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_removing_a_fault_removes_only_its_finding(fault: Fault, tmp_path: Path) -> None:
    assert found(workspace(tmp_path, left_out=fault)) == expected(left_out=fault)
