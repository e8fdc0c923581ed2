"""Real MPI programs, each family in a separate folder: two Open MPIs cannot share one environment.

The wheels are installed at the pinned hashes of `wheels/` into the cache: by `make ready`, or at first use.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gangplan.tools.provision import is_offline
from tests.lab.folders import exclusive

WHEELS = Path(__file__).with_name("wheels")
#: Installing all wheels takes half a minute on a slow line; three times that means a line in trouble.
INSTALL_TIMEOUT_S = 90
#: Seconds for which a failed fetch is not repeated, by this process or another.
REMEMBERED_S = 600


class UnavailableError(Exception):
    """Raised for something that the machine lacks and cannot get: the reason of a skip."""


@dataclass(frozen=True)
class Family:
    """An MPI, and the image of the small workspace that is declared to have it."""

    name: str
    image: str
    extra: str = ""  # what its specs also need

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
    """Return the folder of what is fetched for these tests."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gangplan" / "reality"


def fetched(target: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, made once; a failure is remembered, so that no other test waits for it.

    Raises UnavailableError where it cannot be made.
    """
    reason = target if target.is_dir() else _made(target, make)
    if isinstance(reason, str):
        raise UnavailableError(reason)
    return target


@cache
def _made(target: Path, make: Callable[[Path], None]) -> str | None:
    """Make a folder, or return why it cannot be made. One process makes it while the others wait."""
    try:
        return _locked(target, make)
    except OSError as error:  # the cache may not be writable
        return f"{target.name}: {error}"


def _locked(target: Path, make: Callable[[Path], None]) -> str | None:
    noted = target.with_name(f"{target.name}.failed")
    with exclusive(target.with_name(f"{target.name}.lock")):
        if target.is_dir():
            return None
        if noted.is_file() and time.time() - noted.stat().st_mtime < REMEMBERED_S:
            return noted.read_text(encoding="utf-8")
        try:
            make(target)
        except UnavailableError as error:
            noted.write_text(str(error), encoding="utf-8")
            return str(error)
        noted.unlink(missing_ok=True)
        return None


def installed(name: str) -> Path:
    """Return the tree of a family, with its programs in `usr/local/bin`.

    Raises UnavailableError where it cannot be installed.
    """
    return fetched(folder() / f"{name}-{_digest(name)}", _install)


def forget() -> None:
    """Forget failed fetches, so that they are repeated at once."""
    for noted in folder().glob("*.failed"):
        noted.unlink(missing_ok=True)


@cache
def _digest(name: str) -> str:
    return hashlib.sha256((WHEELS / f"{name}.txt").read_bytes()).hexdigest()[:12]


def _install(target: Path) -> None:
    requirements = WHEELS / f"{target.name.rpartition('-')[0]}.txt"
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
