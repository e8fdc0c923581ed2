"""Sweeps for tests, and the small workspace with a sweep."""

from __future__ import annotations

from pathlib import Path

from tests.workspaces import CLUSTER, stock, write

FILE = "specs/nlp/rates.yaml"
SWEEP = """\
apiVersion: gangplan.dev/v1
kind: Sweep
parameters:
  grid:
    lr: [1e-4, 3e-4, 1e-3]
    batch: [64, 128]
maxConcurrent: 2
template:
  image: openmpi
  command: [python, train.py, "--lr=${{ parameters.lr }}", "--batch", "${{ parameters.batch }}"]
  workers: 2
  gpus: 1
  checkpoint: {to: filings}
"""
# 48 trials, ten at once, of 4 GPUs for 4 hours each.
US_05 = """\
apiVersion: gangplan.dev/v1
kind: Sweep
description: Learning rates, batch sizes and dropout of the filings model
parameters:
  grid:
    lr: [1e-5, 3e-5, 1e-4, 3e-4]
    batch: [32, 64, 128]
    dropout: [0.0, 0.1, 0.2, 0.3]
maxConcurrent: 10
template:
  image: deepspeed
  command:
    - python
    - train.py
    - --lr=${{ parameters.lr }}
    - --batch=${{ parameters.batch }}
    - --dropout=${{ parameters.dropout }}
  workers: 1
  gpus: 4
  cpu: 32
  memory: 320Gi
  timeout: 4h
  checkpoint: {to: filings}
"""
US_CLUSTER = CLUSTER.replace("a100: {count: 4,", 'a100: {count: 8, price: {perGpuHour: "1.5625"},').replace(
    "location: on-prem\n", "location: on-prem\ncurrency: USD\n"
)


def workspace(root: Path, sweep: str = SWEEP, **files: str) -> Path:
    """Write the small workspace with a sweep and further files, by path."""
    stock(root, "specs/nlp/filings.yaml")
    return write(root, {FILE: sweep, **files})


def us_05(root: Path) -> Path:
    """Write the workspace of user story US-05: 48 trials on eight nodes with eight GPUs each."""
    return workspace(root, US_05, **{"overlays/lab/cluster.yaml": US_CLUSTER})


def runs(root: Path) -> list[str]:
    """Return the names of the runs in rendered/."""
    return sorted(path.stem for path in (root / "rendered").glob("*/runs/*/*-*.yaml"))
