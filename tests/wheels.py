"""The wheel, built without network from a copy of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workspaces import REPOSITORY

LINKED = ("generators", "validate", "templates", "policies")


def copied(source: Path, *wanted: str) -> None:
    """Copy the files of this checkout under `wanted`, or all; skip the test outside of Git and say why."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout: it is not known what is committed")
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith(wanted or "") and os.path.lexists(REPOSITORY / name):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target, follow_symlinks=False)


def build(folder: Path) -> Path:
    """Build the wheel in a new folder, or skip the test and say why it cannot be built."""
    source, out = folder / "source", folder / "out"
    copied(source, "gangplan/", *(f"{name}/" for name in LINKED), "pyproject.toml", "README.md", "LICENSE")
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no pip: the wheel cannot be built")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    subprocess.run([*pip, "wheel", *options, "-w", str(out), str(source)], check=True, timeout=120)
    (built,) = out.glob("gangplan-*.whl")
    assert built.name.endswith("-py3-none-any.whl")
    return built
