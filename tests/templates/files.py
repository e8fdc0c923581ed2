"""Templates for tests, and the small workspace with them."""

from __future__ import annotations

from pathlib import Path

from tests.workspaces import stock, write

FILE, WIDE = "specs/nlp/tuned.yaml", "jobtemplates/wide.yaml"
SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
template: wide
parameters:
  size: 4
  rate: 1e-4
env: {NCCL_DEBUG: INFO}
"""
TEMPLATE = """\
apiVersion: gangplan.dev/v1
kind: JobTemplate
description: Whole nodes under Open MPI
parameters:
  size: {type: integer, default: 2, min: 2, max: 100, description: Workers}
  rate: {type: number, description: Learning rate}
  script: {type: string, default: train.py}
job:
  image: openmpi
  command: [python, "${{ parameters.script }}", "--lr=${{ parameters.rate }}"]
  workers: ${{ parameters.size }}
  gpus: 2
  cpu: 8
  memory: 32Gi
  env: {OMP_NUM_THREADS: 4, NCCL_DEBUG: WARN}
  checkpoint: {to: filings}
"""
# The same job as SPEC, in one file.
WRITTEN = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, train.py, --lr=1e-4]
workers: 4
gpus: 2
cpu: 8
memory: 32Gi
env: {NCCL_DEBUG: INFO, OMP_NUM_THREADS: 4}
checkpoint: {to: filings}
"""


def workspace(root: Path, spec: str = SPEC, template: str = TEMPLATE, **files: str) -> Path:
    """Write the small workspace with a platform template, a spec that uses it, and further files by path."""
    stock(root, "specs/nlp/filings.yaml")
    return write(root, {FILE: spec, WIDE: template, **files})
