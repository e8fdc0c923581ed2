"""The training programs of the sample, without the frameworks that start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workspaces import REPOSITORY

TORCH = """
def init_process_group(backend):
    global joined
    joined = backend
    print("joined", backend)
def get_backend():
    return joined
def destroy_process_group():
    print("left")
def get_rank():
    return 0
def get_world_size():
    return 1
"""


@pytest.mark.parametrize(
    ("gpus", "ending", "code", "said"),
    [
        ("", "sys.exit(3)", 3, "joined gloo trained left"),
        ("", "raise ValueError", 1, "joined gloo trained left"),
        ("0,1", "sys.exit(0)", 0, "joined nccl trained left"),
        ("0,1", "raise ValueError", 1, "joined nccl trained"),
    ],
)
def test_ranks_of_torch_leave_their_group_when_the_program_ends(
    tmp_path: Path, gpus: str, ending: str, code: int, said: str
) -> None:
    """With real torch 2.9.1 and gloo, a program that does not ends with SIGABRT after its training.

    A rank that fails with NCCL must not wait for the others.
    """
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("")
    (tmp_path / "torch/distributed.py").write_text(TORCH)
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": gpus, "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"PYTHONPATH": f"{tmp_path}:{REPOSITORY / 'images/programs'}", "TORCHELASTIC_RUN_ID": "1"}
    program = f"import sys, parallel; parallel.ranks(); print('trained'); {ending}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split()) == (code, said.split()), done.stderr
