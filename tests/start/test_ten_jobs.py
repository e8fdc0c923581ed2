"""Ten typical jobs, each created by one `new job`: no errors or warnings, and no longer than written by
hand."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import gangplan, write

AMD = """\
  rocm-pytorch:
    repository: registry.example.com/training/pytorch-rocm
    digest: sha256:e2b41a6f0d9c85734c1be2f7a9603d5844d0f1c2b3a4958677665544332211aa
    framework: torch
    rocm: "6.4"
  horovod:
    repository: registry.example.com/training/horovod
    digest: sha256:a1b41a6f0d9c85734c1be2f7a9603d5844d0f1c2b3a4958677665544332211bb
    framework: horovod
    cuda: "12.8"
    mpi: {implementation: OpenMPI, version: "5.0.8"}
"""
TEAM = """\
claims:
  images: {accessModes: [ReadWriteMany], size: 1Ti}
  labels: {accessModes: [ReadWriteMany], size: 10Gi}
  checkpoints: {accessModes: [ReadWriteMany], size: 1Ti}
secrets: [huggingface]
"""
# The arguments of `gangplan new job`, and the fields that the file has after apiVersion and kind.
JOBS: Mapping[str, tuple[str, str]] = {
    "torch": (
        "vit --image pytorch --command 'python train.py' --workers 2 --gpus 4 --memory 64Gi --timeout 4h",
        "image: pytorch\ncommand: [python, train.py]\nworkers: 2\ngpus: 4\nmemory: 64Gi\ntimeout: 4h\n",
    ),
    "deepspeed": (
        "llm --image deepspeed --command 'python train.py --deepspeed ds.json' --workers 2 --gpus 4 --cpu 16 --memory 200Gi",
        "image: deepspeed\ncommand: [python, train.py, --deepspeed, ds.json]\nworkers: 2\ngpus: 4\ncpu: 16\nmemory: 200Gi\n",
    ),
    "horovod": (
        "resnet --image horovod --command 'python train.py' --workers 2 --gpus 4 --memory 64Gi",
        "image: horovod\ncommand: [python, train.py]\nworkers: 2\ngpus: 4\nmemory: 64Gi\n",
    ),
    "a simulation by MPI": (
        "flow --image openmpi --command './solve --steps 1000' --workers 2 --slots 8 --cpu 8 --memory 16Gi",
        "image: openmpi\ncommand: [./solve, --steps, 1000]\nworkers: 2\nslots: 8\ncpu: 8\nmemory: 16Gi\n",
    ),
    "CPU only": (
        "prepare --image openmpi --command 'python prepare.py' --workers 1 --cpu 8 --memory 16Gi --timeout 1h",
        "image: openmpi\ncommand: [python, prepare.py]\nworkers: 1\ncpu: 8\nmemory: 16Gi\ntimeout: 1h\n",
    ),
    "AMD": (
        "vit --image rocm-pytorch --command 'python train.py' --workers 2 --gpus 8 --memory 64Gi --clusters amd",
        "clusters: [amd]\nimage: rocm-pytorch\ncommand: [python, train.py]\nworkers: 2\ngpus: 8\nmemory: 64Gi\n",
    ),
    "two clusters": (
        "vit --image pytorch --command 'python train.py' --workers 1 --gpus 8 --memory 64Gi --clusters lab,cloud",
        "clusters: [lab, cloud]\nimage: pytorch\ncommand: [python, train.py]\nworkers: 1\ngpus: 8\nmemory: 64Gi\n",
    ),
    "a checkpoint": (
        "vit --image pytorch --command 'python train.py' --workers 2 --gpus 4 --memory 64Gi --checkpoint-to checkpoints",
        "image: pytorch\ncommand: [python, train.py]\nworkers: 2\ngpus: 4\nmemory: 64Gi\ncheckpoint: {to: checkpoints}\n",
    ),
    "a secret": (
        "vit --image pytorch --command 'python train.py' --workers 2 --gpus 4 --memory 64Gi --secrets-env HF_TOKEN=huggingface/token",
        "image: pytorch\ncommand: [python, train.py]\nworkers: 2\ngpus: 4\nmemory: 64Gi\nsecrets:\n  env: {HF_TOKEN: huggingface/token}\n",
    ),
    "several data sets": (
        "vit --image pytorch --command 'python train.py' --workers 2 --gpus 4 --memory 64Gi --data images=/data --data labels=/labels",
        "image: pytorch\ncommand: [python, train.py]\nworkers: 2\ngpus: 4\nmemory: 64Gi\ndata: {images: /data, labels: /labels}\n",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the sample of `init` with an AMD cluster, two more images and claims of a team."""
    root = tmp_path_factory.mktemp("ten") / "jobs"
    assert gangplan("init", root, "--sample", "--sync", "none").code == Exit.CLEAN
    other = root.parent / "amd"
    flags = ("--team", "nlp", "--cluster", "amd", "--accelerator", "amd", "--sync", "none")
    assert gangplan("init", other, *flags).code == Exit.CLEAN
    amd = (other / "overlays/amd/cluster.yaml").read_text()
    catalog = (root / "images/catalog.yaml").read_text() + AMD
    team = (root / "specs/nlp/team.yaml").read_text()
    lines = [line for line in team.splitlines() if not line.startswith(("claims:", "  ", "secrets:"))]
    assert any(line.startswith("clusters:") for line in lines)
    kept = "\n".join("clusters: [lab]" if line.startswith("clusters:") else line for line in lines)
    files = {"overlays/amd/cluster.yaml": amd, "images/catalog.yaml": catalog}
    return write(root, files | {"specs/nlp/team.yaml": f"{kept}\n{TEAM}"})


@pytest.mark.parametrize("name", JOBS)
def test_one_command_writes_a_short_valid_job(name: str, jobs: Path) -> None:
    command, fields = JOBS[name]
    words = shlex.split(command)
    file = jobs / f"specs/nlp/{words[0]}.yaml"
    file.unlink(missing_ok=True)
    outcome = gangplan("new", "job", *words, "--team", "nlp", "-C", jobs)
    assert outcome.code == Exit.CLEAN, outcome.err
    head, _, written = file.read_text().partition("kind: TrainingJob\n")
    assert written == fields
    assert head.count("\n") == 2
    checked = gangplan("validate", file, "-C", jobs)
    assert checked.code == Exit.CLEAN, checked.err
    assert [one for one in checked.findings if one.severity != "note"] == [], checked.err
    file.unlink()
