"""Wrong calls of MPI, and processes that abort themselves: what real MPIs print, and the cause.

The programs are mpi_ends.cc and mpi_ends.py. `--update` records it into tests/diagnose/recorded/mpi.yaml.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.diagnose.samples import Sample, keep, neutral
from tests.reality.base import ALL
from tests.reality.families import FAMILIES, Family, UnavailableError, installed
from tests.reality.test_diagnose import first, version

SOURCE = Path(__file__).with_name("mpi_ends.cc")
TIMEOUT_S = 60
#: How often a program runs at most until it is heard.
RUNS = 10
CAUSES = {
    "truncate": "mpi-sizes",
    "allreduce": "mpi-sizes",
    "peer": "mpi-misuse",
    "before-init": "mpi-misuse",
    "init": "mpi-init",
    "throw": "aborted",
    "free": "aborted",
    "python-truncate": "mpi-sizes",
    "python-peer": "mpi-misuse",
    "python-null": "mpi-misuse",
    "python-final": "mpi-misuse",
}
#: What makes the start of each MPI fail: no such transport.
UNSTARTED = {
    "openmpi4": {"OMPI_MCA_pml": "ucx"},
    "openmpi5": {"OMPI_MCA_pml": "ucx"},
    "intel": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "psm3"},
}


def environment(name: str, tree: Path, how: str) -> dict[str, str]:
    """Return the variables with which an MPI runs from its tree, two ranks on one machine."""
    top = tree / "usr/local"
    found = {"PATH": f"{top}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{top}/lib", "HOME": "/root"}
    found |= dict.fromkeys(("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX", "I_MPI_ROOT"), str(top))
    found |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "I_MPI_FABRICS": "shm"}
    found |= {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    # The wheel of mpi4py fits several MPIs, and finds this machine's unless told.
    found["MPI4PY_MPIABI"] = "mpich" if FAMILIES[name].is_hydra else "openmpi"
    found["FI_PROVIDER_PATH"] = f"{top}/opt/mpi/libfabric/lib/prov"
    return found | (UNSTARTED[name] if how == "init" else {})


def run_until_heard(run: list[str], env: dict[str, str]) -> str:
    """Run a program of MPI and return what it says.

    The mpirun of Open MPI 4.1.8 loses the message of ranks that end together now and then (5 of 60 runs), and
    says nothing but that it did; MPICH 5.0.2's says nothing at all (4 of 60). Such a run is repeated, because
    there is nothing in it to find.
    """
    for _ in range(RUNS):
        said = subprocess.run(
            run,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # as in a pod's log: what is said first stands first
            text=True,
            env=env,
            timeout=TIMEOUT_S,
            check=False,
        ).stdout
        if said.strip() and ("show_help.c" not in said or "MPI_ER" in said):
            break
    return said


def python() -> list[str]:
    """Return the command of the program that calls mpi4py."""
    pytest.importorskip("mpi4py")
    return [sys.executable, str(SOURCE.with_suffix(".py"))]


def built(family: Family, tree: Path, program: Path, env: dict[str, str]) -> list[str]:
    """Build the C++ program with the library of an MPI, and return its command."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    header = next(installed("mpich" if family.is_hydra else family.name).rglob("mpi.h"))
    words = ["-w", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", f"-I{header.parent}", str(SOURCE)]
    library = tree / "usr/local/lib" / family.library
    words += ["-o", str(program), str(library), "-Wl,--allow-shlib-undefined"]
    subprocess.run(["g++", *words], check=True, capture_output=True, env=env)
    return [str(program)]


@pytest.mark.parametrize("how", CAUSES)
@pytest.mark.parametrize("name", ALL)
def test_the_end_of_a_program_of_mpi_is_found(
    how: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if how == "init" and name not in UNSTARTED:
        pytest.skip(f"{name} takes another transport")
    if name == "intel" and how == "allreduce":
        pytest.skip("Intel MPI ends with SIGPIPE, without a word")
    family = FAMILIES[name]
    try:
        tree = installed(name)
        env = environment(name, tree, how)
        program = python() if how.startswith("python-") else built(family, tree, tmp_path / "ends", env)
    except UnavailableError as error:
        pytest.skip(str(error))
    # Two mpiruns of Open MPI 4 at a time make the same folder, and one of them fails.
    said = run_until_heard(["mpirun", "-np", "2", *program, how], {**env, "TMPDIR": str(tmp_path)})
    (tmp_path / "saved").mkdir()
    assert first(tmp_path / "saved", said) == CAUSES[how], said
    if request.config.getoption("--update"):
        text = neutral(said, {tmp_path: "/scratch"})
        keep(
            "mpi",
            Sample(f"{name}, {how}", CAUSES[how], version(family), "tests/reality/test_mpi_ends.py", text),
        )
