"""Images with a Python of this machine and the packages that it has, too large to fetch for a test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.reality import running


def python_with(package: str) -> Path:
    """Return the Python that a variable such as GANGPLAN_TORCH names; skip the test without it."""
    variable = f"GANGPLAN_{package.upper()}"
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no Python with {package}")
    return Path(named)


def image(python: Path, files: Mapping[str, str], *scripts: str) -> running.Image:
    """Return an image with this Python, its packages, files, and scripts such as torchrun."""
    code = "import sys, sysconfig; print(sys.base_prefix, sysconfig.get_path('platlib'),"
    code += " 'python%d.%d' % sys.version_info[:2])"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    base, site, name = told.split()
    binds = {"/opt/python": Path(base), "/opt/site": Path(site), "/opt/bin": python.parent}
    start = "#!/bin/sh\nexport PYTHONHOME=/opt/python PYTHONPATH=/opt/site LD_LIBRARY_PATH=/opt/python/lib\n"
    start += f"exec /opt/python/bin/{name} -B"
    shims = {"python": f'{start} "$@"\n'}
    shims |= {one: f'{start} /opt/bin/{one} "$@"\n' for one in scripts}
    return running.Image(None, {**shims, **files}, binds=binds)
