"""Rendered MPIJobs with real MPIs on several hosts: as the MPI operator starts them, every planned rank
runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.reality import running
from tests.reality.base import ALL, running_spec, spec
from tests.reality.families import FAMILIES, Family
from tests.reality.test_end import END_TIMEOUT_S, SAVED, wait_for

OPERATOR = workspaces.WIDE_CLUSTER.replace('trainer: "2.3.0", kueue', 'mpiOperator: "0.8.2", kueue')
FILES = {"overlays/lab/cluster.yaml": OPERATOR}
#: Variables that only the launcher has, and that no rank elsewhere may see.
OF_THE_LAUNCHER = ("K_MPI_JOB_ROLE", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")


@pytest.fixture(params=ALL)
def family(request: pytest.FixtureRequest) -> Family:
    """Each MPI."""
    return FAMILIES[request.param]


def test_every_planned_rank_runs_on_its_planned_host(family: Family, tmp_path: Path) -> None:
    """Ranks have the spec's environment and none of the launcher's own variables."""
    text = spec(family, 2, "env: {GREETING: 'two  words, $HOME'}")
    with running_spec(tmp_path, family, text, files=FILES) as run:
        assert run.end() == 0, run.story()
        run.check()
        assert run.launcher.name.endswith("-launcher")
        for rank in run.ranks():
            assert rank.args == "train.py"
            assert rank.env["GREETING"] == "two  words, $HOME"
            assert not [name for name in OF_THE_LAUNCHER if name in rank.env]


def test_ranks_run_in_the_restricted_posture(family: Family, tmp_path: Path) -> None:
    text = spec(family, 3, "network: {posture: restricted}")
    with running_spec(tmp_path, family, text, files=FILES) as run:
        assert run.end() == 0, run.story()
        run.check()


def test_a_launcher_may_run_ranks(family: Family, tmp_path: Path) -> None:
    """The operator's hostfile names it first, by a name that its own MPI does not know."""
    text = spec(family, 3, "launcher: {runsRanks: true}", "network: {posture: restricted}")
    with running_spec(tmp_path, family, text, files=FILES) as run:
        assert run.end() == 0, run.story()
        run.check()


def test_a_users_own_mpirun_starts_the_planned_ranks(family: Family, tmp_path: Path) -> None:
    option = "-n" if family.is_hydra else "-np"
    text = spec(family, 2, "slots: 1", command=f"[mpirun, {option}, 2, python, train.py]")
    with running_spec(tmp_path, family, text, files=FILES) as run:
        assert run.end() == 0, run.story()
        run.check()


@pytest.mark.e2e
@pytest.mark.parametrize("name", ALL)
def test_ranks_run_on_seventeen_hosts(name: str, tmp_path: Path) -> None:
    """These are more than Hydra starts at once; in the isolated posture only the launcher may open SSH."""
    text = spec(FAMILIES[name], 17, "slots: 1", "network: {posture: isolated}")
    with running_spec(tmp_path, FAMILIES[name], text, files=FILES) as run:
        assert run.end(300) == 0, run.story()
        run.check()


def test_ranks_of_a_stopped_run_finish_their_work(family: Family, tmp_path: Path) -> None:
    """All pods of a stopped run are ended, and each rank saves all its work."""
    with running_spec(
        tmp_path, family, spec(family, 2, "slots: 1"), files=FILES, program=running.SAVER
    ) as run:
        wait_for(run, 2)
        for host in (*run.workers, run.launcher):
            host.terminate()
        for host in (*run.workers, run.launcher):
            assert host.wait(END_TIMEOUT_S) != 124, f"{host.name} did not end: {run.story()}"
        for rank in ("0", "1"):
            assert (run.reports / f"saved-{rank}").read_text().splitlines()[:5] == SAVED, run.story()
