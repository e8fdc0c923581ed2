"""Small workspaces for tests: written from texts, driven through the command line, read back as bytes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from gangplan import cli
from gangplan.errors import Exit

REPOSITORY = Path(__file__).parents[1]
# The folders of a workspace; the sample workspace is the repository itself.
SAMPLE_PARTS = ("specs", "overlays", "images", "rendered")

SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, train.py]
workers: 4
gpus: 2
cpu: 8
memory: 32Gi
"""
TEAM = """\
apiVersion: gangplan.dev/v1
kind: Team
clusters: [lab]
claims:
  filings: {accessModes: [ReadWriteMany]}
  notes: {accessModes: [ReadWriteOnce]}
  archive: {accessModes: [ReadOnlyMany]}
  lidar-files: {accessModes: [ReadOnlyMany]}
connections:
  lidar: {endpoint: "https://s3.example.com", bucket: lidar, secret: lidar-s3}
  radar: {endpoint: "https://s3.example.com", bucket: radar, secret: lidar-s3, claim: lidar-files}
secrets: [huggingface, lidar-s3]
"""
CLUSTER = """\
apiVersion: gangplan.dev/v1
kind: Cluster
versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}
region: eu-central
location: on-prem
nodePools:
  cpu: {count: 4, cpu: 60, memory: 240Gi}
  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}}
  a100-spot: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: spot}, capacity: spot}
topology:
  - {name: rack, label: topology.example.com/rack}
  - {name: host, label: kubernetes.io/hostname}
egress:
  s3: [{cidr: 10.40.8.0/24, ports: [443]}]
teams:
  nlp: {queue: training}
"""  # noqa: E501  one line per pool
# The same cluster with room for any run: for tests that are not about quota.
WIDE_CLUSTER = CLUSTER.replace("{count: 4, cpu", "{count: 4000, cpu")
CATALOG = """\
apiVersion: gangplan.dev/v1
kind: ImageCatalog
images:
  openmpi:
    repository: registry.example.com/training/openmpi
    digest: sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee
    mpi: {implementation: OpenMPI, version: "5.0.8"}
  openmpi4:
    repository: registry.example.com/training/openmpi4
    digest: sha256:2c1f8d75f1b40f3e2d3e0b5c9b4802040604b3c2d1aa99887766554433220011
    mpi: {implementation: OpenMPI, version: "4.1.8"}
  horovod:
    repository: registry.example.com/training/horovod
    digest: sha256:3d2e9e8602c51041304f1c6dac5913151715c4d3e2bbaa998877665544331122
    framework: horovod
    mpi: {implementation: OpenMPI, version: "4.1.8"}
  deepspeed:
    repository: registry.example.com/training/deepspeed
    digest: sha256:5f40b1a824e73263526b3e8fce7b35373937e6f504ddccbbaa99887766553344
    framework: deepspeed
    mpi: {implementation: OpenMPI, version: "4.1.8"}
  pytorch:
    repository: registry.example.com/training/pytorch
    digest: sha256:6051c2b935f84374637c4f90df8c46484a48f70615eeddccbbaa998877664455
    framework: torch
  intel:
    repository: registry.example.com/hpc/intel-mpi
    digest: sha256:7162d3ca46095485748d50a1e09d57595b590817260ffeeddccbbaa998877566
    mpi: {implementation: IntelMPI, version: "2021.13", setup: /opt/intel/oneapi/setvars.sh}
  mpich:
    repository: registry.example.com/hpc/mpich
    digest: sha256:8273e4db571a6596859e61b2f1ae686a6c6a192837100ffeeddccbbaa9988677
    mpi: {implementation: MPICH, version: "4.3.2"}
"""
KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: Namespace}
  patch: |-
    - op: add
      path: /metadata/labels/site.example.com~1monitoring
      value: "true"
"""
STOCK = {
    "specs/nlp/filings.yaml": SPEC,
    "specs/nlp/team.yaml": TEAM,
    "overlays/lab/cluster.yaml": CLUSTER,
    "images/catalog.yaml": CATALOG,
}


@dataclass(frozen=True)
class Shown:
    """One finding as a reader of the text report sees it."""

    place: str
    severity: str
    rule: str
    message: str
    help: str


@dataclass(frozen=True)
class Outcome:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def findings(self) -> list[Shown]:
        """The findings of the text report, in its order; several at one place may share one help."""
        found: list[Shown] = []
        for match in reversed(list(_FINDING.finditer(self.err))):
            one = Shown(*match.groups(default=""))
            below = found[-1] if found else one
            if not one.help and (one.place, one.rule) == (below.place, below.rule):
                one = replace(one, help=below.help)
            found.append(one)
        return found[::-1]

    def errors(self) -> list[tuple[str, str]]:
        """Return place and rule of every error."""
        return [(shown.place, shown.rule) for shown in self.findings if shown.severity == "error"]


_FINDING = re.compile(
    r"^(?P<place>\S.*?): (?P<severity>error|warning|note)\[(?P<rule>[^]]+)\] (?P<message>.*)$"
    r"(?:\n  help: (?P<help>.*)$)?",
    re.MULTILINE,
)


def gangplan(*arguments: str | Path) -> Outcome:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["gangplan", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = cli.run_command_line()
    return Outcome(int(code), out.getvalue(), err.getvalue())


def gangplan_process(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Outcome:
    """Run a command line in a separate process. `env` adds to the environment of the tests."""
    done = subprocess.run(
        [sys.executable, "-m", "gangplan", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `root`, which becomes a workspace when they are those of a workspace."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def stock(root: Path, *without: str, **files: str) -> Path:
    """Create the small workspace of this module, without some of its files."""
    return write(root, {name: text for name, text in STOCK.items() if name not in without})


def begin(root: Path) -> Path:
    """Make a workspace as a new user does: team nlp on cluster lab, with the spec quickstart."""
    outcome = gangplan("init", root, "--team", "nlp", "--cluster", "lab", "-q")
    assert outcome.code == Exit.CLEAN, outcome.err
    return root


def sample(root: Path, *parts: str) -> Path:
    """Copy the sample workspace (only some of its folders, when named)."""
    for part in parts or SAMPLE_PARTS:
        shutil.copytree(REPOSITORY / part, root / part)
    return root


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, by path, as bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rendered(root: Path) -> dict[str, bytes]:
    """Return the rendered tree of a workspace."""
    return tree(root / "rendered")


def render(root: Path, *arguments: str | Path) -> Outcome:
    """Render a workspace that must be valid."""
    outcome = gangplan("render", "-C", root, *arguments)
    assert outcome.code == Exit.CLEAN, outcome.err
    return outcome
