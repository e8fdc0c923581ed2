"""The wheel, built without network from a copy of what is committed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.workspaces import REPOSITORY

LINKED = ("generators", "validate", "templates", "policies")


def build(folder: Path) -> Path:
    """The wheel in a new folder; a skip by name where it cannot be built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout: the wheel cannot be built from what is committed")
    source, out = folder / "source", folder / "out"
    wanted = ("gangplan/", *(f"{name}/" for name in LINKED), "pyproject.toml", "README.md", "LICENSE")
    for name in listed.stdout.split("\0"):
        if name.startswith(wanted) and (REPOSITORY / name).exists():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (REPOSITORY / name).is_symlink():
                target.symlink_to((REPOSITORY / name).readlink())
            else:
                target.write_bytes((REPOSITORY / name).read_bytes())
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no pip: the wheel cannot be built")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    subprocess.run([*pip, "wheel", *options, "-w", str(out), str(source)], check=True, timeout=120)
    (built,) = out.glob("gangplan-*.whl")
    assert built.name.endswith("-py3-none-any.whl")
    return built
