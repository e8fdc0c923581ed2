"""Sources of other projects: read in place where `make lab` has downloaded their Go modules, never copied.

Tests that read them are part of `make e2e`: other tests must not depend on what an earlier `make lab` left.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest


@cache
def _modules() -> Path | None:
    go = shutil.which("go")
    if go is None:
        return None
    said = subprocess.run([go, "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    return Path(said.stdout.strip())


def go_module(name: str, version: str) -> Path:
    """Return the folder of a Go module at a version (`0.34.4`), or skip and say what is missing."""
    modules = _modules()
    if modules is None:
        pytest.skip("no Go toolchain: install Go (make lab downloads modules with it)")
    folder = modules / f"{name}@v{version}"
    if not folder.is_dir():
        pytest.skip(f"{name} {version} has not been downloaded (make lab)")
    return folder
