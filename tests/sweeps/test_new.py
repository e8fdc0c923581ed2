"""`gangplan new sweep`: a job becomes a sweep and keeps its comments and the spelling of its values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sweeps.files import US_CLUSTER
from tests.workspaces import gangplan, stock, write

JOB = """\
# The model of the filings.
apiVersion: gangplan.dev/v1
kind: TrainingJob
name: tune
# Has the filings inside.
image: deepspeed
# What each rank runs.
command: [python, train.py, --lr=3e-4, --batch, 64, --fp16]
workers: 1   # one node
gpus: 4
env: {WARMUP: 1e-3}
timeout: 4h
checkpoint: {to: filings}
queue: training
run: 3
"""
NEW = ("new", "sweep", "rates", "--from", "specs/nlp/tune.yaml", "--max-concurrent", "10")
GRID = ("-p", "lr=1e-5,3e-5,1e-4,3e-4", "-p", "batch=32,64,128", "-p", "dropout=0.0,0.1,0.2,0.3")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write the small workspace with a job."""
    stock(tmp_path, "specs/nlp/filings.yaml")
    return write(tmp_path, {"specs/nlp/tune.yaml": JOB, "overlays/lab/cluster.yaml": US_CLUSTER})


def test_a_job_becomes_a_sweep(root: Path) -> None:
    outcome = gangplan(*NEW, *GRID, "-C", root)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[1] == (
        "  on lab: 48 trials, 10 at once, at most 20h, 768 GPU-hours, 1200.00 USD"
    )
    assert (
        (root / "specs/nlp/rates.yaml").read_text()
        == """\
apiVersion: gangplan.dev/v1
kind: Sweep
parameters:
  grid:
    lr: [1e-5, 3e-5, 1e-4, 3e-4]
    batch: [32, 64, 128]
    dropout: [0.0, 0.1, 0.2, 0.3]
maxConcurrent: 10
template:
  # Has the filings inside.
  image: deepspeed
  # What each rank runs.
  command:
    - python
    - train.py
    - "--lr=${{ parameters.lr }}"
    - --batch
    - "${{ parameters.batch }}"
    - --fp16
    - "--dropout=${{ parameters.dropout }}"
  workers: 1   # one node
  gpus: 4
  env: {WARMUP: 1e-3}
  timeout: 4h
  checkpoint: {to: filings}
  run: 3
"""
    )


def test_a_field_of_the_job_is_swept_as_a_field(root: Path) -> None:
    """As `new template` reads the same name; a flag of the command comes first."""
    outcome = gangplan(*NEW, "-p", "workers=1,2", "-p", "gpus=2,4", "-p", "lr=1e-5,1e-4", "-C", root)
    assert outcome.code == 0, outcome.err
    text = (root / "specs/nlp/rates.yaml").read_text()
    assert '  workers: "${{ parameters.workers }}"   # one node\n  gpus: "${{ parameters.gpus }}"\n' in text
    assert "--workers" not in text
    assert '- "--lr=${{ parameters.lr }}"' in text


def test_a_one_line_command_gets_its_parameters_at_the_end(root: Path) -> None:
    line = "command: [python, train.py, --lr=3e-4, --batch, 64, --fp16]"
    write(root, {"specs/nlp/tune.yaml": JOB.replace(line, "command: python train.py")})
    outcome = gangplan(*NEW, "-p", "lr=1,2", "--dry-run", "-C", root)
    assert outcome.code == 0, outcome.err
    assert 'command: "python train.py --lr=${{ parameters.lr }}"' in outcome.out
    assert not (root / "specs/nlp/rates.yaml").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-p", "lr"), "--parameter lr has no values"),
        (("-p", "lr=1,,2"), "--parameter lr=1,,2 has no values"),
        (("-p", "lr=1", "-p", "lr=2"), "--parameter lr is there twice"),
        (("-p", "lr=1,1.0"), "1.0 is the same value as 1"),
    ],
)
def test_invalid_parameters_are_refused_and_nothing_is_written(
    flags: tuple[str, ...], words: str, root: Path
) -> None:
    outcome = gangplan(*NEW, *flags, "-C", root)
    assert outcome.code == 2
    assert words in outcome.err
    assert not (root / "specs/nlp/rates.yaml").exists()


def test_an_existing_file_is_not_overwritten(root: Path) -> None:
    write(root, {"specs/nlp/rates.yaml": JOB.replace("name: tune\n", "")})
    outcome = gangplan(*NEW, "-p", "lr=1", "-C", root)
    assert outcome.code == 2
    assert "specs/nlp/rates.yaml exists" in outcome.err


def test_only_a_spec_can_be_swept(root: Path) -> None:
    flags = [one if one != "specs/nlp/tune.yaml" else "specs/nlp/team.yaml" for one in NEW]
    assert gangplan(*flags, "-p", "lr=1", "-C", root).code == 2
