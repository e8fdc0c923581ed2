"""The training programs of the sample, without the frameworks that start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.workspaces import REPOSITORY

TORCH = """
def init_process_group(backend):
    print("joined", backend)
def destroy_process_group():
    print("left")
def get_rank():
    return 0
def get_world_size():
    return 1
"""


def test_ranks_of_torch_leave_their_group_when_the_program_ends(tmp_path: Path) -> None:
    """With real torch 2.9.1 and gloo, a program that does not ends with SIGABRT after its training."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("")
    (tmp_path / "torch/distributed.py").write_text(TORCH)
    env = {name: text for name, text in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    env |= {"PYTHONPATH": f"{tmp_path}:{REPOSITORY / 'images/programs'}", "TORCHELASTIC_RUN_ID": "1"}
    env |= {"PYTHONDONTWRITEBYTECODE": "1"}
    program = "import sys, parallel; parallel.ranks(); print('trained'); sys.exit(3)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split()) == (3, ["joined", "gloo", "trained", "left"]), done.stderr
