"""Real programs of other engines, in environments of their own (`make engines`), and questions to them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.workspaces import REPOSITORY

HERE = Path(__file__).parent
HOME = Path(os.environ.get("GANGPLAN_ENGINES", REPOSITORY / ".engines"))


def ask(engine: str, program: str, *words: str, given: str = "", **env: str) -> str:
    """Run a program of this folder with the Python of an engine's environment, and return its output."""
    python = HOME / engine / "bin/python"
    if not python.exists():
        pytest.skip(f"{engine} is not installed (make engines)")
    done = subprocess.run(
        [python, HERE / program, *words],
        input=given,
        env={"PATH": os.environ["PATH"], "HOME": str(Path.home()), **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
