"""The launcher's script, run for real by the shells that images have."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from gangplan.model.exits import LAUNCH_EXITS
from tests import workspaces
from tests.launch.scripts import SHELLS, WAIT_S, Pod, container

SETUP, HOSTFILE, UNANSWERED, UNREACHED = (
    LAUNCH_EXITS[name].code for name in ("setup", "hostfile", "unanswered", "unreached")
)
ASKED = 'sh -c echo "gangplan-host $(uname -n)"'
INTEL = workspaces.SPEC.replace("image: openmpi", "image: intel") + "mpi: {licenseAcknowledged: true}\n"
SPECS = {
    "openmpi": workspaces.SPEC,
    "openmpi4": workspaces.SPEC.replace("image: openmpi", "image: openmpi4"),
    "mpich": workspaces.SPEC.replace("image: openmpi", "image: mpich"),
    "intel": INTEL,
}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """A shell that images have as /bin/sh."""
    return str(request.param)


@pytest.fixture(params=SPECS)
def pod(request: pytest.FixtureRequest, shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    """A launcher of each family."""
    monkeypatch.setattr(import_module("gangplan.generators.launch"), "WORKER_WAIT_S", WAIT_S)
    setup = 'export FROM_SETUP="yes"\necho "$UNSET_VARIABLE"\nfalse\nreturn 3\n'
    (tmp_path / "setvars.sh").write_text(setup)
    return Pod.of(tmp_path, shell, container(SPECS[request.param], folder=tmp_path))


def test_it_hands_over_to_the_command(pod: Pod) -> None:
    done = pod.start("program", "two words", "$HOME", "")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    assert pod.log[-1] == "program 3 two words $HOME "
    assert sum(line.startswith("getent hosts run-node-0-") for line in pod.log) == 4
    assert "mpirun was given an input" not in pod.log


def test_too_few_hosts(pod: Pod) -> None:
    pod.hosts([f"run-node-0-{index}.run" for index in range(3)])
    done = pod.start("program")
    assert done.returncode == HOSTFILE
    assert done.stderr == "gangplan: the hostfile names 3 workers, the plan has 4\n"
    assert not any(line.startswith(("mpirun", "program")) for line in pod.log)


def test_an_empty_hostfile(pod: Pod) -> None:
    pod.hosts([])
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (
        HOSTFILE,
        "gangplan: the hostfile names 0 workers, the plan has 4\n",
    )


def test_no_hostfile(pod: Pod) -> None:
    (pod.folder / "hostfile").unlink()
    done = pod.start("program")
    assert done.returncode != 0
    assert "hostfile" in done.stderr
    assert not any(line.startswith("program") for line in pod.log)


def test_a_host_without_an_address(pod: Pod) -> None:
    pod.fact("known", "run-node-0-0.run", "run-node-0-1.run", "run-node-0-3.run")
    done = pod.start("program")
    assert done.returncode == UNANSWERED
    assert done.stderr == f"gangplan: run-node-0-2.run does not resolve after {WAIT_S} s\n"
    assert pod.log.count("sleep 1") == WAIT_S - 1


def test_a_host_whose_address_comes_late(pod: Pod) -> None:
    pod.fact("slow-run-node-0-1.run", str(WAIT_S))
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (7, "")
    assert pod.log.count("sleep 1") == WAIT_S - 1


def test_mpi_that_stays_on_one_host(pod: Pod) -> None:
    """Open MPI 5 without its hostfile starts every rank on the launcher, and it goes unnoticed."""
    pod.fact("reached", *["run-launcher-0-0"] * 4)
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (UNREACHED, "gangplan: MPI reached 1 of 4 workers\n")
    assert not any(line.startswith("program") for line in pod.log)


def test_mpi_that_fails(pod: Pod) -> None:
    pod.fact("reached")
    pod.fact("code", "1")
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (UNREACHED, "gangplan: MPI reached 0 of 4 workers\n")


def test_mpi_that_hangs(pod: Pod) -> None:
    pod.fact("hangs")
    pod.box.change('timeout -k 10 "$gp_wait"', "timeout -k 10 0.2")
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (UNREACHED, "gangplan: MPI reached 0 of 4 workers\n")


# Families


def launch(name: str, shell: str, tmp_path: Path) -> Pod:
    """A pod of one family."""
    return Pod.of(tmp_path, shell, container(SPECS[name], folder=tmp_path))


def test_hydra_reads_its_own_hostfile(shell: str, tmp_path: Path) -> None:
    pod = launch("mpich", shell, tmp_path)
    assert pod.start("program").returncode == 7
    assert (tmp_path / "gangplan-hostfile").read_text() == "".join(
        f"run-node-0-{i}.run:2\n" for i in range(4)
    )
    check = next(line for line in pod.log if line.startswith("mpirun"))
    assert check == f"mpirun -f {tmp_path}/gangplan-hosts -n 4 -ppn 1 {ASKED}"
    # A container that is started again must not find the hosts twice.
    assert pod.start("program").returncode == 7
    assert len((tmp_path / "gangplan-hostfile").read_text().splitlines()) == 4


@pytest.mark.parametrize("looks", [False, True], ids=["", "preflight"])
@pytest.mark.parametrize(("name", "ends"), [("intel", False), ("mpich", False), ("openmpi", True)])
def test_hydra_never_meets_the_end_of_its_input(
    name: str, ends: bool, looks: bool, shell: str, tmp_path: Path
) -> None:
    """Intel MPI (2021.18) fails when it meets it while some of the programs have ended and others have not:
    of launches on 40 idle hosts, about one in fifteen. That goes for the preflight too."""
    catalog = re.sub(
        "^ +mpi: .*$", r"\g<0>\n    preflight: /usr/local/bin/look", workspaces.CATALOG, flags=re.M
    )
    spec = SPECS[name] + "preflight: true\n" * looks
    pod = Pod.of(tmp_path, shell, container(spec, folder=tmp_path, **{"images/catalog.yaml": catalog}))
    (tmp_path / "setvars.sh").write_text("")
    assert pod.start("program").returncode == 7
    said = [line for line in pod.log if line.startswith("mpirun has an input")]
    assert said == ["mpirun has an input that does not end"] * (0 if ends else 1 + looks)


def test_open_mpi_counts_nodes(shell: str, tmp_path: Path) -> None:
    pod = launch("openmpi", shell, tmp_path)
    assert pod.start("program").returncode == 7
    check = next(line for line in pod.log if line.startswith("mpirun"))
    assert check == f"mpirun -np 4 --bind-to none --map-by ppr:1:node {ASKED}; sleep 1"


@pytest.mark.parametrize(
    "text",
    [
        'export FROM_SETUP=yes\n[ -n "$UNSET" ] && echo x\nreturn 3\n',
        "FROM_SETUP=yes; export FROM_SETUP\nset +u\nfalse\n",
        "set -e\nexport FROM_SETUP=yes\nset +e\nfalse\n",
    ],
    ids=["returns 3", "ends in false", "set -e"],
)
def test_the_setup_file(text: str, shell: str, tmp_path: Path) -> None:
    """Vendors' files use unset variables, print, and return what they like."""
    pod = launch("intel", shell, tmp_path)
    (tmp_path / "setvars.sh").write_text(text)
    (tmp_path / "bin/program").write_text('#!/bin/sh\necho "FROM_SETUP=${FROM_SETUP:-no}"\n')
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "FROM_SETUP=yes\n"


def test_a_setup_file_that_exits_is_named(shell: str, tmp_path: Path) -> None:
    pod = launch("intel", shell, tmp_path)
    (tmp_path / "setvars.sh").write_text("exit 4\n")
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (4, f"gangplan: {tmp_path}/setvars.sh ended the launch\n")


def test_a_setup_file_that_is_absent_is_named(shell: str, tmp_path: Path) -> None:
    pod = launch("intel", shell, tmp_path)
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (SETUP, f"gangplan: {tmp_path}/setvars.sh is not in the image\n")


def test_deepspeed_carries_the_environment(shell: str, tmp_path: Path) -> None:
    spec = (
        workspaces.SPEC.replace("image: openmpi", "image: deepspeed").replace("[python,", "[deepspeed,")
        + "env: {PLAIN: a, SPACED: two  words, DOLLAR: $HOME, BACK: 'a\\tb\\n', EMPTY: ''}\n"
        + "labels: {project: filings}\n"
    )
    found = container(spec, folder=tmp_path)
    env = found.env
    pod = Pod.of(tmp_path, shell, found, env)
    assert pod.start("program").returncode == 7
    carried = dict(line.split("=", 1) for line in (tmp_path / ".deepspeed_env").read_text().splitlines())
    assert carried == {
        name: env[name] for name in ("PLAIN", "SPACED", "DOLLAR", "BACK", "EMPTY", "OMP_NUM_THREADS")
    }
