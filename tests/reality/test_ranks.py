"""Every planned rank runs, once, on its planned host: rendered scripts, real MPIs, several hosts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests import workspaces
from tests.reality.base import ALL, running_spec, spec
from tests.reality.families import FAMILIES, Family
from tests.reality.running import PROGRAM, Run

TALK = "echo 'Welcome to the cluster'\necho 'All use is recorded' >&2\n"


@pytest.fixture(params=ALL)
def family(request: pytest.FixtureRequest) -> Family:
    """Each MPI."""
    return FAMILIES[request.param]


def own_cpus() -> str:
    """Return the CPUs that a container of this machine may use."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list"))


def test_the_program_runs_on_all_workers(family: Family, tmp_path: Path) -> None:
    """The image's logins print text; without the variable, OpenMP would count the node's CPUs, not 8 for 2
    slots."""
    text = spec(family, 2, "env: {GREETING: 'two  words, $HOME'}")
    with running_spec(tmp_path, family, text, bashrc=TALK) as run:
        assert run.end() == 0, run.story()
        run.check()
        for rank in run.ranks():
            assert rank.args == "train.py"
            assert rank.env["GREETING"] == "two  words, $HOME"
            assert rank.env["OMP_NUM_THREADS"] == "4"
            assert rank.cpus == own_cpus()


@pytest.mark.parametrize("posture", ["restricted"])
def test_a_launcher_may_run_ranks(posture: str, family: Family, tmp_path: Path) -> None:
    text = spec(family, 3, "launcher: {runsRanks: true}", f"network: {{posture: {posture}}}")
    with running_spec(tmp_path, family, text) as run:
        assert run.end() == 0, run.story()
        run.check()


@pytest.mark.parametrize(
    "name", [name if name == "intel" else pytest.param(name, marks=pytest.mark.e2e) for name in ALL]
)
def test_ranks_run_on_more_workers_than_hydras_tree_is_wide(name: str, tmp_path: Path) -> None:
    """Hydra hands all but 16 hosts to other hosts, for which the policy does not allow SSH."""
    family = FAMILIES[name]
    text = spec(family, 17, "slots: 1", "network: {posture: restricted}")
    with running_spec(tmp_path, family, text) as run:
        assert run.end() == 0, run.story()
        run.check()


def test_a_users_own_mpirun_starts_the_planned_ranks(family: Family, tmp_path: Path) -> None:
    """It starts the same ranks, and does not bind them all to one core.

    As in HPC-X and NGC images, it is on the PATH of the image, which sshd does not pass on.
    """
    option = "-n" if family.is_hydra else "-np"
    text = spec(family, 2, "slots: 1", command=f"[mpirun, {option}, 2, python, train.py]")
    with running_spec(tmp_path, family, text, prefix="/opt/hpcx/ompi") as run:
        assert run.end() == 0, run.story()
        run.check()
        assert {rank.cpus for rank in run.ranks()} == {own_cpus()}


def test_variables_of_a_users_own_script_reach_the_ranks_of_all_programs(
    family: Family, tmp_path: Path
) -> None:
    start = "mpirun -n 1 python train.py : -n 1 python train.py"
    command = f"[bash, -c, 'export A=\"two words\"; B=2 {start}']"
    with running_spec(tmp_path, family, spec(family, 2, "slots: 1", "env: {C: 3}", command=command)) as run:
        assert run.end() == 0, run.story()
        run.check()
        for rank in run.ranks():
            assert {"A": "two words", "B": "2", "C": "3"}.items() <= rank.env.items()


def test_limits_reach_the_ranks_that_set_them_themselves(family: Family, tmp_path: Path) -> None:
    start = 'mpirun -n 1 python train.py : -n 1 bash -c "ulimit -n 300; exec python train.py"'
    text = spec(family, 2, "slots: 1", command=f"[bash, -c, 'ulimit -n 200; {start}']")
    program = PROGRAM.replace("\n", '\nexport FILES="$(ulimit -n)"\n', 1)
    with running_spec(tmp_path, family, text, program=program) as run:
        assert run.end() == 0, run.story()
        run.check()
        first, second = (rank.env["FILES"] for rank in run.ranks())
        assert int(first) > 300
        assert second == "300"


FABRIC = ", rdma: {resource: rdma/ib, count: 8, network: [fabric/a, fabric/b]%s}"
CARDS = ', hcas: [mlx5_0, "mlx5_1:2"]'
EXCHANGE = """\
import sys
from mpi4py import MPI
world, got = MPI.COMM_WORLD, bytearray(3_000_000)
there, back = (world.rank + 2) % world.size, (world.rank - 2) % world.size
world.Sendrecv(bytes([world.rank]) * len(got), dest=there, recvbuf=got, source=back)
sys.stdout.write(f"{got[-1]} reached {world.rank}\\n")
"""


def on_a_fabric(
    folder: Path, family: Family, cards: str = "", runs_ranks: bool = False, **more: Any
) -> AbstractContextManager[Run]:
    """Run three workers with two networks besides eth0, each with an address and no other host."""
    pool = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
    cluster = workspaces.WIDE_CLUSTER.replace(pool, pool + FABRIC % cards, 1)
    launcher = ["launcher: {runsRanks: true}"] if runs_ranks else []
    text = spec(family, 3, "network: {rdma: required, posture: restricted}", *launcher)
    return running_spec(folder, family, text, files={"overlays/lab/cluster.yaml": cluster}, **more)


def test_variables_of_the_fabric_reach_every_rank(family: Family, tmp_path: Path) -> None:
    with on_a_fabric(tmp_path, family, CARDS) as run:
        assert run.end() == 0, run.story()
        run.check()
        for rank in run.ranks():
            assert rank.env["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1:2"
            assert rank.env["NCCL_SOCKET_IFNAME"] == "=eth0"
            assert rank.env["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:2"


@pytest.mark.parametrize("runs_ranks", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_messages_avoid_networks_that_lead_nowhere(runs_ranks: bool, family: Family, tmp_path: Path) -> None:
    """By default, Open MPI 4 and Intel MPI hang here and Open MPI 5 gives up: they try every interface."""
    with on_a_fabric(tmp_path, family, runs_ranks=runs_ranks, with_python={"train.py": EXCHANGE}) as run:
        assert run.end() == 0, run.story()
        said = sorted(line for line in run.launcher.out.splitlines() if " reached " in line)
        assert said == sorted(f"{rank} reached {(rank + 2) % 6}" for rank in range(6))


KNOCK = """\
#!/bin/sh
while read -r address name _; do
  case $name in
  *-node-0-*)
    answer=closed
    timeout 5 bash -c ": </dev/tcp/$address/2222" 2>/dev/null && answer=open
    echo "${name%%.*} $answer"
    ;;
  esac
done </etc/hosts | sort -u >"/reports/knocks-$(uname -n)"
"""


@pytest.mark.e2e
@pytest.mark.parametrize("name", ALL)
def test_ranks_run_on_forty_hosts(name: str, tmp_path: Path) -> None:
    """The launcher reaches each worker directly: the postures would block a way through another worker."""
    text = spec(FAMILIES[name], 40, "slots: 1", "network: {posture: isolated}")
    with running_spec(tmp_path, FAMILIES[name], text) as run:
        assert run.end(300) == 0, run.story()
        run.check()


@pytest.mark.parametrize(("posture", "answer"), [("default", "open"), ("restricted", "closed")])
def test_hosts_admit_the_connections_that_policies_allow(posture: str, answer: str, tmp_path: Path) -> None:
    """This tests the harness itself: a worker reaches the SSH port of the other worker as the posture
    says."""
    text = spec(FAMILIES["openmpi4"], 2, f"network: {{posture: {posture}}}")
    with running_spec(tmp_path, FAMILIES["openmpi4"], text, program=KNOCK) as run:
        assert run.end() == 0, run.story()
        for worker in run.workers:
            knocks = dict(
                line.split() for line in (run.reports / f"knocks-{worker.name}").read_text().splitlines()
            )
            assert knocks.pop(worker.name) == "open"
            assert list(knocks.values()) == [answer]
