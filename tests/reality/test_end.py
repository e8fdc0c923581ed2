"""A run that is ended has time: SIGTERM to a pod reaches the ranks, and they may finish their work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.reality import running
from tests.reality.base import ALL, running_spec, spec
from tests.reality.families import FAMILIES, Family

SAVED = [f"saved {step}" for step in range(1, 6)]
#: The grace period of a pod: Open MPI's daemon on a drained worker stays as long as ranks elsewhere save.
END_TIMEOUT_S = 75.0


@pytest.fixture(params=ALL)
def family(request: pytest.FixtureRequest) -> Family:
    """Each MPI."""
    return FAMILIES[request.param]


@pytest.mark.parametrize(
    "ended",
    [
        "all",
        pytest.param("worker", marks=pytest.mark.e2e),
        pytest.param("launcher", marks=pytest.mark.e2e),
    ],
)
def test_ranks_finish_their_work_when_pods_are_ended(ended: str, family: Family, tmp_path: Path) -> None:
    """Pods are ended by a drained worker, a launcher whose node goes, or a deleted run (all pods at once)."""
    with running_spec(tmp_path, family, spec(family, 2, "slots: 1"), program=running.SAVER) as run:
        wait_for(run, 2)
        chosen = {"worker": run.workers[:1], "launcher": [run.launcher], "all": [*run.workers, run.launcher]}
        for host in chosen[ended]:
            host.terminate()
        for host in chosen[ended]:
            assert host.wait(END_TIMEOUT_S) != 124, f"{host.name} did not end: {run.story()}"
        ranks = ["0"] if ended == "worker" else ["0", "1"]
        for rank in ranks:
            path = run.reports / f"saved-{rank}"
            assert path.exists(), f"rank {rank} heard nothing: {run.story()}"
            assert path.read_text().splitlines()[:5] == SAVED, f"rank {rank} was killed: {run.story()}"


@pytest.mark.e2e
def test_all_ranks_of_a_run_with_retries_finish_their_work(family: Family, tmp_path: Path) -> None:
    """A drained worker fails its Job only when it has ended: until then only the launcher informs the
    others."""
    lines = ("slots: 1", "retries: 1")
    with running_spec(tmp_path, family, spec(family, 2, *lines), program=running.SAVER) as run:
        wait_for(run, 2)
        drained = run.workers[0]
        drained.terminate()
        assert drained.wait(END_TIMEOUT_S) == 143, run.story()
        for rank in ("0", "1"):
            path = run.reports / f"saved-{rank}"
            assert path.exists(), f"rank {rank} heard nothing: {run.story()}"
            assert path.read_text().splitlines()[:5] == SAVED, f"rank {rank} was killed: {run.story()}"
        # Once the Job of the workers has failed, all pods are ended.
        assert run.launcher.is_running, run.story()
        assert run.workers[1].is_running, run.story()
        began = time.monotonic()
        for host in (run.launcher, run.workers[1]):
            host.terminate()
        assert run.launcher.wait(END_TIMEOUT_S) == 143, run.story()
        assert run.workers[1].wait(END_TIMEOUT_S) == 143, run.story()
        assert time.monotonic() - began < 15, run.story()


def test_a_run_whose_workers_were_all_ended_is_not_complete(family: Family, tmp_path: Path) -> None:
    """When spot nodes go at once, ranks that save and succeed look like the end of the training."""
    with running_spec(tmp_path, family, spec(family, 2, "slots: 1"), program=running.SAVER) as run:
        wait_for(run, 2)
        for worker in run.workers:
            worker.terminate()
        assert run.launcher.wait(END_TIMEOUT_S) not in (0, 124), run.story()
        for rank in ("0", "1"):
            assert (run.reports / f"saved-{rank}").read_text().splitlines()[:5] == SAVED, run.story()


def wait_for(run: running.Run, ranks: int) -> None:
    deadline = time.monotonic() + 60
    while len(run.ranks()) < ranks:
        assert run.launcher.is_running, run.story()
        assert time.monotonic() < deadline, run.story()
        time.sleep(0.05)
