"""The MPI engine under real MPIs: it prints and writes the same as one process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.reality.families import FAMILIES, UnavailableError, installed
from tests.test_determinism import many

# The code that every rank imports as it starts: rank 1 is killed once it has begun its first task.
DYING = """
import os, signal, sys, threading, time
def watch():
    while "gangplan.pipeline.runs" not in sys.modules:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
if "1" in (os.environ.get("PMI_RANK"), os.environ.get("OMPI_COMM_WORLD_RANK")):
    threading.Thread(target=watch, daemon=True).start()
"""


def mpirun(family: str, *words: str | Path, root: Path, path: Path | None = None) -> workspaces.Outcome:
    """Run a command on three ranks of a real MPI, or skip the test where the MPI or mpi4py is missing."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    try:
        prefix = installed(family) / "usr/local"
    except UnavailableError as error:
        pytest.skip(str(error))
    library = prefix / "lib" / FAMILIES[family].library
    own = {"MPI4PY_LIBMPI": str(library), "OPAL_PREFIX": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib")}
    own |= {
        "PRTE_PREFIX": str(prefix),
        "PMIX_PREFIX": str(prefix),
        "PYTHONPATH": f"{path or ''}:{workspaces.REPOSITORY}",
    }
    flags = [] if FAMILIES[family].is_hydra else ["--allow-run-as-root", "--oversubscribe"]
    done = subprocess.run(
        [prefix / "bin/mpirun", *flags, "-n", "3", sys.executable, "-m", "mpi4py.futures", *words],
        cwd=root,
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return workspaces.Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a workspace of several tasks, one of them with an error."""
    found = many(tmp_path_factory.mktemp("mpi") / "workspace", 40)
    return workspaces.write(found, {"specs/nlp/wrong.yaml": workspaces.SPEC + "retries: many\n"})


@pytest.mark.parametrize("family", ["mpich", "openmpi4", "openmpi5"])
def test_ranks_print_the_same_as_one_process(family: str, root: Path) -> None:
    one = workspaces.gangplan("validate", "-C", root, "--no-cache", "--engine", "serial", "--format", "json")
    assert one.code == Exit.INPUT
    words = ("-m", "gangplan", "validate", "--no-cache", "--engine", "mpi", "--format", "json")
    ranks = mpirun(family, *words, root=root)
    assert ranks.out == one.out, ranks.err
    assert ranks.code == one.code


@pytest.mark.parametrize("family", ["mpich", "openmpi4", "openmpi5"])
def test_a_rank_that_dies_leaves_all_files_unchanged(family: str, root: Path, tmp_path: Path) -> None:
    """Its MPI stops the other ranks and reports which one died, with its own exit code."""
    (tmp_path / "sitecustomize.py").write_text(DYING)
    before = workspaces.tree(root)
    words = ("-m", "gangplan", "render", "--no-cache", "--engine", "mpi")
    ended = mpirun(family, *words, root=root, path=tmp_path)
    assert ended.code not in (Exit.CLEAN, Exit.FINDINGS, Exit.INPUT), ended
    assert {
        path: data for path, data in workspaces.tree(root).items() if not path.startswith(".gangplan")
    } == {path: data for path, data in before.items() if not path.startswith(".gangplan")}


# Every rank writes how its garbage collector was set as it ends.
TELLING = """
import atexit, gc, os, pathlib
rank = os.environ.get("PMI_RANK")
if rank:
    file = pathlib.Path(__file__).parent / f"rank-{rank}"
    atexit.register(lambda: file.write_text(str(gc.get_threshold())))
"""


def test_the_garbage_collector_of_every_rank_is_that_of_a_command(root: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(TELLING)
    mpirun("mpich", "-m", "gangplan", "plan", "--no-cache", "--engine", "mpi", root=root, path=tmp_path)
    told = {file.name: file.read_text() for file in tmp_path.glob("rank-*")}
    assert sorted(told) == [f"rank-{number}" for number in range(3)]
    assert len(set(told.values())) == 1, told
    assert told["rank-1"] != str(gc.get_threshold()), "not that of any Python program"


# Every rank writes a file in the end if it has imported what it needs for its tasks.
TELLING_IMPORTS = """
import atexit, os, sys
rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK")
def tell():
    if "gangplan.pipeline.runs" in sys.modules:
        open(f"{os.environ['TOLD']}/{rank}", "w").close()
if rank:
    atexit.register(tell)
"""


def test_ranks_import_the_program_while_rank_0_reads_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need no task for it: this command has none."""
    (tmp_path / "sitecustomize.py").write_text(TELLING_IMPORTS)
    (tmp_path / "told").mkdir()
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    ended = mpirun("mpich", "-m", "gangplan", "explain", "rdma-fallback", root=tmp_path, path=tmp_path)
    assert ended.code == Exit.CLEAN, ended.err
    assert {path.name for path in (tmp_path / "told").iterdir()} >= {"1", "2"}
