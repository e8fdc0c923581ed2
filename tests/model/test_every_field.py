"""Every field of every file is read by something: one that nothing reads is a promise to whoever writes it.

Commands run on two workspaces that between them use each feature, and note which fields of the models are
read. `price`, `networkGbps`, a storage class's `zone` and four others once were read by nobody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.spec import base, catalog, cluster, job, nodes, params, queues, team, waiver
from tests import workspaces
from tests.trace import worlds
from tests.workspaces import gangplan, write

MODULES = (base, catalog, cluster, job, nodes, params, queues, team, waiver)
# Read when the file is, or by people.
HEAD = frozenset({"api_version", "kind"})
PEOPLE = frozenset(
    {("Cluster", "description"), ("Image", "description"), ("Image", "tag"), ("ImageCatalog", "description")}
)
# Not read as attributes, with the place that reads them otherwise.
ELSEWHERE = {
    ("Connection", "type"): "there is one type; the format refuses any other",
    ("Defaults", "gpus"): "Context.choose by the field's name, for specs without it",
}
SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
command: [python, train.py]
mpi: {licenseAcknowledged: true}
extendedTimeout: true
timeout: 190h
checkpoint: {to: filings}
network: {rdma: auto}
"""
CATALOG = workspaces.CATALOG.replace(
    "setup: /opt/intel/oneapi/setvars.sh}\n",
    "setup: /opt/intel/oneapi/setvars.sh}\n    clusters: {lab: {repository: mirror.example.eu/hpc/intel}}\n",
)
HUB = (
    workspaces.CLUSTER.replace('kubernetes: "1.34.4"', 'kubernetes: "1.34.4", openshift: "4.21.0"')
    + "multiKueue: {clusters: {east: {kubeconfigSecret: east-kubeconfig}}}\n"
    + "monitoring: {allNamespaces: true}\n"
)
WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: timeout-over-limit
scope: {team: nlp}
limit: {timeout: 8d, workers: 8, gpus: 8, cpu: 100, memory: 1Ti, retries: 3}
reason: A month of training.
approver: ml-platform@example.com
expires: "2027-01-31"
"""


def fields() -> set[tuple[str, str]]:
    """Class and field of everything that a file may hold."""
    found = set()
    for module in MODULES:
        for model in vars(module).values():
            if isinstance(model, type) and issubclass(model, base.Strict):
                found |= {(model.__name__, name) for name in model.model_fields if name not in HEAD}
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Class and name of every attribute of a model that is read from here on."""
    seen: set[tuple[str, str]] = set()

    def note(self: object, name: str) -> Any:
        seen.add((type(self).__name__, name))
        return object.__getattribute__(self, name)

    monkeypatch.setattr(base.Strict, "__getattribute__", note, raising=False)
    return seen


def test_every_field_is_read(reads: set[tuple[str, str]], tmp_path: Path) -> None:
    everything, rest = tmp_path / "everything", tmp_path / "rest"
    worlds.everything(everything)
    workspaces.stock(rest)
    write(rest, {"specs/nlp/filings.yaml": SPEC, "images/catalog.yaml": CATALOG})
    write(rest, {"specs/nlp/shorter.yaml": SPEC.replace("190h", "30h")})
    write(rest, {"specs/nlp/team.yaml": workspaces.TEAM + "defaults: {image: intel}\n"})
    write(rest, {"overlays/hub/cluster.yaml": HUB, "policies/waivers/month.yaml": WAIVER})
    for root in (everything, rest):
        for command in (["validate"], ["plan"], ["cluster", "check"], ["cluster", "quota"]):
            today = ["--today", "2026-07-01"] if command == ["validate"] else []
            outcome = gangplan(*command, "-C", root, *today)
            assert outcome.code in (0, 1), outcome.err
    unread = fields() - reads - PEOPLE - ELSEWHERE.keys()
    assert not unread, "these fields do nothing: let them act, or take them out of the format"
    assert not (PEOPLE | ELSEWHERE.keys()) & (reads - {("Defaults", "gpus")}), "read after all: take it off"
