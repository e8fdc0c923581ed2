"""Real MPI programs, each family in a folder of its own: two Open MPIs cannot share one environment.

The wheels are installed at first use, at the pinned hashes of `wheels/`, into the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gangplan.tools.provision import is_offline
from tests.lab.folders import exclusive

WHEELS = Path(__file__).with_name("wheels")
#: An install of all wheels takes half a minute on a slow line; ten times that is a line in trouble.
INSTALL_TIMEOUT_S = 300


class UnavailableError(Exception):
    """Something that the machine does not have and cannot get: the reason of a skip."""


@dataclass(frozen=True)
class Family:
    """An MPI, and the image of the small workspace that says it holds it."""

    name: str
    image: str
    extra: str = ""  # what its specs need beside

    @property
    def library(self) -> str:
        """The file name of its MPI library."""
        return "libmpi.so.12" if self.is_hydra else "libmpi.so.40"

    @property
    def is_hydra(self) -> bool:
        """Whether its mpirun is Hydra's."""
        return self.name in ("mpich", "intel")


FAMILIES = {
    "openmpi4": Family("openmpi4", "openmpi4"),
    "openmpi5": Family("openmpi5", "openmpi"),
    "mpich": Family("mpich", "mpich"),
    "intel": Family("intel", "intel", "mpi: {licenseAcknowledged: true}\n"),
}


def folder() -> Path:
    """The folder of what is fetched for these tests."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gangplan" / "reality"


@cache
def installed(name: str) -> Path:
    """The tree of a family, its programs in `usr/local/bin`. UnavailableError where it cannot be had."""
    requirements = WHEELS / f"{name}.txt"
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    target = folder() / f"{name}-{key}"
    if not target.is_dir():
        with exclusive(folder() / f"{name}.lock"):
            if not target.is_dir():
                _install(requirements, target)
    return target


def _install(requirements: Path, target: Path) -> None:
    if is_offline():
        raise UnavailableError(
            f"{requirements.stem} is not installed, and GANGPLAN_OFFLINE forbids to fetch it"
        )
    if sys.platform != "linux":
        raise UnavailableError("the wheels with MPI programs are for Linux")
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]
    words += ["--no-deps", "--ignore-installed", "--only-binary=:all:", "--no-compile", "--require-hashes"]
    try:
        done = subprocess.run(
            [sys.executable, *words, "--prefix", str(fresh / "usr/local"), "-r", str(requirements)],
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{requirements.stem} was not installed in {INSTALL_TIMEOUT_S} s") from error
    if done.returncode:
        raise UnavailableError(f"{requirements.stem} cannot be installed: {done.stderr.strip()[-300:]}")
    fresh.rename(target)
