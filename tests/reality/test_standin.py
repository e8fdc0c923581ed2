"""Rendered runs on stand-ins for hosts, as any user may run them: every MPI, posture and kind of launcher."""

from __future__ import annotations

import dataclasses
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reality import hosts, pods, running, standin
from tests.reality.base import ALL, spec
from tests.reality.families import FAMILIES, UnavailableError

SMALL = [("default", False, 2), ("restricted", True, 3), ("isolated", False, 3)]


def has_hosts() -> bool:
    """Return whether the other tests have real hosts here, so that a few stand-ins are enough."""
    try:
        hosts.check()
    except UnavailableError:
        return False
    return True


HERE = SMALL[1:2] if has_hosts() else SMALL
WHOLE = [(posture, ranks, 3) for posture in ("default", "restricted", "isolated") for ranks in (False, True)]


@pytest.fixture(autouse=True)
def able() -> None:
    """Skip where not even a stand-in can run."""
    try:
        standin.check()
    except UnavailableError as error:
        pytest.skip(str(error))


def cluster(folder: Path, name: str, posture: str, runs_ranks: bool, workers: int) -> pods.Cluster:
    """Return the pods of a run of a family."""
    lines = ["slots: 1", f"network: {{posture: {posture}}}"]
    lines += ["launcher: {runsRanks: true}"] if runs_ranks else []
    return pods.cluster(pods.objects(folder / "workspace", spec(FAMILIES[name], workers, *lines)))


def ended(folder: Path, name: str, made: pods.Cluster, program: str = running.PROGRAM) -> running.Run:
    """Return a run that has ended, or skip with what is missing."""
    image = running.Image(FAMILIES[name], {"python": program})
    try:
        with standin.started(folder, made, image) as run:
            run.end(60)
            return run
    except UnavailableError as error:
        pytest.skip(str(error))


def check(run: running.Run) -> None:
    """Check an ended run against its plan."""
    assert run.launcher.process.returncode == 0, run.story()
    run.check()


@pytest.mark.parametrize(("posture", "runs_ranks", "workers"), HERE)
@pytest.mark.parametrize("name", ALL)
def test_planned_ranks_run(name: str, posture: str, runs_ranks: bool, workers: int, tmp_path: Path) -> None:
    check(ended(tmp_path, name, cluster(tmp_path, name, posture, runs_ranks, workers)))


@pytest.mark.reality
@pytest.mark.parametrize(("posture", "runs_ranks", "workers"), WHOLE)
@pytest.mark.parametrize("name", ALL)
def test_all_planned_ranks_run(
    name: str, posture: str, runs_ranks: bool, workers: int, tmp_path: Path
) -> None:
    check(ended(tmp_path, name, cluster(tmp_path, name, posture, runs_ranks, workers)))


@pytest.mark.parametrize("name", ["openmpi5", "mpich"])
def test_workers_that_may_not_connect_start_no_rank(name: str, tmp_path: Path) -> None:
    """This is what the stand-in is for: an MPI's daemons report to the launcher, and a policy may prevent
    it."""
    made = cluster(tmp_path, name, "default", False, 2)
    workers = {"matchLabels": {"jobset.sigs.k8s.io/replicatedjob-name": "node"}}
    shut = {
        "kind": "NetworkPolicy",
        "metadata": {"name": "shut", "namespace": made.launcher.namespace},
        "spec": {"podSelector": workers, "policyTypes": ["Egress"], "egress": []},
    }
    run = ended(tmp_path, name, dataclasses.replace(made, policies=[shut]))
    assert run.launcher.process.returncode != 0
    assert run.ranks() == []


KNOCK = """\
#!/bin/sh
export LEAKED=1
self=$(uname -n)
for number in 0 1; do
  other=${self%-*}-$number.${self%-node-*}
  said=/reports/$self-$number
  ssh -x -o BatchMode=yes "$other" 'uname -n; pwd; env' >"$said" 2>&1 || echo "code $?" >>"$said"
done
"""


@pytest.mark.parametrize(("posture", "is_open"), [("default", True), ("restricted", False)])
def test_a_login_is_clean_and_only_reaches_allowed_hosts(posture: str, is_open: bool, tmp_path: Path) -> None:
    run = ended(tmp_path, "mpich", cluster(tmp_path, "mpich", posture, False, 2), KNOCK)
    assert run.launcher.process.returncode == 0, run.story()
    names = [worker.name for worker in run.workers]
    for one, caller in enumerate(names):
        for two, called in enumerate(names):
            said = (run.reports / f"{caller}-{two}").read_text()
            if one == two or is_open:
                assert said.splitlines()[0] == called
                assert f"SSH_CONNECTION=127.0.0.1 50000 127.0.0.1 {standin.SSH_PORT}" in said
                assert "LEAKED" not in said
                assert "PMI_RANK" not in said
            else:
                assert said.endswith("port 2222: Connection refused\ncode 255\n"), said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.example.com", "true"], "Could not resolve hostname nowhere.example.com"),
        (["-o"], "option requires an argument -- o"),
        (["-Z", "host", "true"], "unknown option -- Z"),
    ],
)
def test_the_substitute_for_ssh_refuses_what_ssh_refuses(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text("host one 127.77.0.2\n")
    limit = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    done = subprocess.run(
        [sys.executable, "-I", str(standin.SSH), *words],
        env={"GANGPLAN_STANDIN": str(tmp_path / "table")},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MSGQUEUE, (standin.BASE, limit)),
    )
    assert done.returncode == 255
    assert said in done.stderr
