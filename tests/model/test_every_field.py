"""Every field of every file is read by the code: an unread field would be an empty promise to its author.

Commands run on two workspaces that together use each feature, and the test records which fields of the models
are read. `price`, `networkGbps`, a storage class's `zone` and four others were once read by no code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.spec import base, catalog, cluster, job, nodes, params, prices, queues, sweep, team, waiver
from tests import workspaces
from tests.trace import worlds
from tests.workspaces import gangplan, write

MODULES = (base, catalog, cluster, job, nodes, params, prices, queues, sweep, team, waiver)
# Read when the file is read, or by people.
HEAD = frozenset({"api_version", "kind"})
PEOPLE = frozenset(
    {
        ("Cluster", "description"),
        ("Image", "description"),
        ("Sweep", "description"),
        ("Image", "tag"),
        ("ImageCatalog", "description"),
        ("ImageScan", "report"),
        ("ImageScan", "tool"),
    }
)
# Not read as attributes, with the code that reads them in another way.
ELSEWHERE = {
    ("Cluster", "context"): "gangplan.live, which needs an API server (tests/live)",
    ("Sweep", "template"): "the sweep's document, which knows its places (gangplan.spec.sweep_files)",
    (
        "TrainingJob",
        "template",
    ): "what fills the document in (gangplan.spec.filled_document)",
    ("TrainingJob", "parameters"): "the same",
    ("Defaults", "gpus"): "Context.choose by the field's name, for specs without it",
}
WEEKLY = 'schedule: {cron: "0 4 * * sun", concurrency: forbid}\n'
AFTER = "data: {scans: /scans}\nafter: [shorter]\nmodel: {name: scans, version: v1}\n"
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
CATALOG = """\
apiVersion: gangplan.dev/v1
kind: ImageCatalog
images:
  intel:
    repository: registry.example.com/hpc/intel-mpi
    digest: sha256:7162d3ca46095485748d50a1e09d57595b590817260ffeeddccbbaa998877566
    mpi: {implementation: IntelMPI, version: "2021.13", setup: /opt/intel/oneapi/setvars.sh}
    clusters: {lab: {repository: mirror.example.eu/hpc/intel}}
    scan: {date: 2020-01-01}
    licence: MIT
    owner: hpc@example.com
requirements: {owner: true, licences: [MIT], scanDays: 90, tier: certified}
tiers:
- {tier: tested, framework: mpi, frameworkVersion: "1", mpi: IntelMPI, mpiVersion: "2021", cuda: "12", rocm: "6", gpus: [h100]}
"""  # noqa: E501  one line per row
HUB = (
    workspaces.CLUSTER.replace('kubernetes: "1.34.4"', 'kubernetes: "1.34.4", openshift: "4.21.0"')
    + "multiKueue: {clusters: {east: {kubeconfigSecret: east-kubeconfig}}}\n"
    + "monitoring: {allNamespaces: true}\n"
)
GCS = "egress:\n  gcs: [{cidr: 199.36.153.8/30, ports: [443]}]\n"
CLOUD = "workloadIdentity: {provider: gcp, egress: [s3]}\n"
BUCKET = """\
defaults: {image: intel}
identity: {gcp: {serviceAccount: team-nlp@example-project.iam.gserviceaccount.com}}
"""
SCANS = "connections:\n  scans: {type: gcs, bucket: example-scans, mount: gcsfuse, readOnly: true}\n"
SWEEP = """\
apiVersion: gangplan.dev/v1
kind: Sweep
name: rates
parameters:
  grid: {lr: [1e-4, 3e-4]}
  list: [{lr: 1e-3}]
  random: {samples: 2, seed: 1, of: {lr: {min: 1e-5, max: 1e-2, scale: log}}}
maxConcurrent: 2
results: {file: ./rates.csv, metric: loss, goal: maximize, keep: 9}
template: {command: [python, train.py, "--lr=${{ parameters.lr }}"], mpi: {licenseAcknowledged: true}}
"""
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
    """Return class and field of everything that a file may hold."""
    found = set()
    for module in MODULES:
        for model in vars(module).values():
            if isinstance(model, type) and issubclass(model, base.Strict):
                found |= {(model.__name__, name) for name in model.model_fields if name not in HEAD}
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Return a set that collects class and name of every attribute of a model that is read from now on."""
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
    budget = "monthlyBudget: {amount: 0, action: Warn}"
    accounts = "serviceAccounts: {sweeps: {token: true, reason: It reads runs.}}"
    own = f"nlp: {{{budget}, queue: training, {accounts}}}"
    wide = workspaces.CLUSTER.replace("nlp: {queue: training}", own).replace("egress:\n", GCS) + CLOUD
    pool = "cpu: {price: {perCpuHour: 1}, numa: {policy: restricted}, count: 4,"
    wide = wide.replace("cpu: {count: 4,", pool)
    wide += "schedules: {client: intel, egress: [s3]}\npipelines: {engine: job}\n"
    write(
        rest,
        {
            "overlays/lab/cluster.yaml": wide,
            "specs/nlp/team.yaml": workspaces.TEAM.replace("connections:\n", SCANS) + BUCKET,
        },
    )
    write(
        rest,
        {
            "specs/nlp/sweep.yaml": SPEC.replace("190h", "31h") + "serviceAccount: sweeps\n" + WEEKLY,
            "specs/nlp/folder.yaml": SPEC.replace("190h", "32h") + AFTER,
        },
    )
    lab = {"overlays/look/cluster.yaml": workspaces.CLUSTER.replace("region:", "environment: dev\nregion:")}
    until = 'clusters: [look]\ndebug: {until: "2026-07-02"}\n'
    write(rest, {**lab, "specs/nlp/looked.yaml": SPEC.replace("190h", "32h") + until})
    write(rest, {"overlays/hub/cluster.yaml": HUB, "policies/waivers/month.yaml": WAIVER})
    write(rest, {"specs/nlp/rates.yaml": SWEEP, "specs/nlp/rates.csv": "trial,loss\n"})
    for root in (everything, rest):
        for command in (["validate"], ["plan"], ["cluster", "check"], ["cluster", "quota"]):
            today = ["--today", "2026-07-01"] if command == ["validate"] else []
            outcome = gangplan(*command, "-C", root, *today)
            assert outcome.code in (0, 1), outcome.err
    unread = fields() - reads - PEOPLE - ELSEWHERE.keys()
    assert not unread, "these fields do nothing: let them act, or take them out of the format"
    assert not (PEOPLE | ELSEWHERE.keys()) & (reads - {("Defaults", "gpus")}), "read after all: take it off"
