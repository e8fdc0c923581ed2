"""A small cluster with runs of every posture, and their worlds as the proofs get them."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.validate import proofs
from gangplan.validate.world import BuiltRun, World
from tests.workspaces import CATALOG, CLUSTER, write

SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: {image}
command: [python, train.py]
workers: {workers}
gpus: 2
cpu: 8
memory: 32Gi
network: {network}
"""
TEAM = """\
apiVersion: gangplan.dev/v1
kind: Team
clusters: [lab]
"""
TEAMS = "  nlp: {queue: training}\n  cv: {queue: training}\n"
RDMA = "  ib: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: h100-80gb, count: 8}, labels: {pool: ib},"
RDMA += " rdma: {resource: rdma/ib, count: 8, network: default/ib-fabric}}\n"
EGRESS = "  s3: [{cidr: 10.40.8.0/24, ports: [443]}]\n"
WEB = "  web: [{cidr: 0.0.0.0/0, excluding: [10.0.0.0/8, 169.254.0.0/16], ports: [80, 443]}]\n"
SPECS = {
    "wide": {"image": "openmpi", "workers": 4, "network": "{posture: default, egress: [s3]}"},
    "tight": {"image": "openmpi", "workers": 4, "network": "{posture: restricted, egress: [s3, web]}"},
    "sealed": {"image": "openmpi", "workers": 2, "network": "{posture: isolated}"},
    "torch": {"image": "pytorch", "workers": 3, "network": "{posture: restricted, egress: [s3]}"},
    "lone": {"image": "pytorch", "workers": 1, "network": "{posture: default}"},
    "fabric": {"image": "openmpi", "workers": 2, "network": "{posture: restricted, rdma: required}"},
}


def workspace(root: Path, **more: str) -> Path:
    """Write the workspace, with `more` files by path."""
    cluster = CLUSTER.replace("  nlp: {queue: training}\n", TEAMS).replace(EGRESS, EGRESS + WEB)
    cluster = cluster.replace("topology:\n", RDMA + "topology:\n", 1)
    files = {"overlays/lab/cluster.yaml": cluster, "images/catalog.yaml": CATALOG}
    files |= {f"specs/{team}/team.yaml": TEAM for team in ("nlp", "cv")}
    for name, values in SPECS.items():
        text = SPEC.format(**values)
        files[f"specs/nlp/{name}.yaml"] = text + "placement: {nodePool: ib}\n" if name == "fabric" else text
    return write(root, {**files, **more})


def worlds(root: Path) -> dict[str, tuple[World, BuiltRun]]:
    """Return the world and run of every spec, by name, as the proofs get them while specs are expanded."""
    seen: dict[str, tuple[World, BuiltRun]] = {}

    def keep(world: World, run: BuiltRun) -> list[object]:
        seen[run.unit.job.name] = (world, run)
        return []

    with mock.patch.object(proofs, "PROOFS", {"keep": keep}):
        result = preview_render(Request(root, engine="serial", jobs=1))
    assert not result.has_errors, result.findings
    return seen
