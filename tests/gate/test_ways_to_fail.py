"""The real `.ci/run` in a checkout with little more than its set-up: each way to fail is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gate.index import pin
from tests.gate.modules import CI
from tests.gate.test_environment import BACKEND
from tests.workspaces import REPOSITORY

PROJECT = (
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    '[project]\nname = "gangplan"\nversion = "0"\n'
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create a checkout whose only package would come from the cache of wheels."""
    root = tmp_path / "checkout"
    shutil.copytree(CI, root / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "Makefile", root)
    (root / "constraints.txt").write_text(pin())
    (root / "constraints-alone.txt").write_text("# nothing\n")
    (root / "constraints-run.txt").write_text(pin())
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(PROJECT)
    return root


def last_line(root: Path, **variables: str) -> str:
    """Run `.ci/run` in a checkout, and return its last line."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "GANGPLAN_"))}
    given = {"XDG_CACHE_HOME": str(root.parent / "cache"), "PYTHON": sys.executable, **variables}
    done = subprocess.run(
        ["bash", root / ".ci/run"],
        env={**kept, **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def _prepend(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text + (root / name).read_text())


WAYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "conflict in the pins": (
        _prepend("constraints.txt", "<<<<<<< HEAD\n"),
        r"set-up \(the pins are not whole, constraints.txt:1: a conflict mark of Git: .*\)",
    ),
    "a pin without a hash": (
        _prepend("constraints.txt", "other==1\n"),
        r"set-up \(the pins are not whole, constraints.txt:1: other==1 has no hash; run: make constraints\)",
    ),
    "a package without a version": (
        _prepend("constraints.txt", "other\n"),
        r"set-up \(the pins are not whole, constraints.txt:1: 'other' is no package .*\)",
    ),
    "conflict in the Makefile": (
        _prepend("Makefile", "<<<<<<< HEAD\n"),
        r"set-up \(missing separator.  Stop.\)",
    ),
    "conflict in pyproject.toml": (
        _prepend("pyproject.toml", "<<<<<<< HEAD\n"),
        r"set-up \(pyproject.toml cannot be read: .*line 1.*\)",
    ),
    "pyproject.toml is not there": (
        lambda root: (root / "pyproject.toml").unlink(),
        r"set-up \(No rule to make target 'pyproject.toml', needed by '.venv/.ready'.  Stop.\)",
    ),
    "no room for an environment": (
        lambda root: (root / ".venv").write_text("in the way"),
        r"set-up \(python -m venv failed \(\d+ MiB are free\): .*\)",
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_each_failure_of_set_up_is_named_in_the_last_line(name: str, checkout: Path) -> None:
    change, says = WAYS[name]
    change(checkout)
    assert re.fullmatch(rf"ci: FAILED in {says} after \d+ s", last_line(checkout))


def test_a_disk_without_room_is_named_in_the_last_line(checkout: Path) -> None:
    assert re.fullmatch(
        r"ci: FAILED in room \(\d+ MiB are free at .*\) after \d+ s",
        last_line(checkout, GANGPLAN_CI_ROOM_MIB="999999999"),
    )


def test_a_python_that_does_not_start_is_named_in_the_last_line(checkout: Path) -> None:
    assert last_line(checkout, PYTHON="no-such-python") == (
        "ci: FAILED in start after 0 s: no-such-python is no Python 3.11 or later; set PYTHON=python3.12"
    )
