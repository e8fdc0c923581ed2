"""The launcher in a pod group: it starts with its workers and waits for their SSH servers itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.model.exits import LAUNCH_EXITS
from tests import workspaces
from tests.launch.scripts import SHELLS, Container, Pod, container
from tests.launch.test_hydra import HOSTS, MPIEXEC, SPEC, hydra
from tests.launch.test_launch import SPECS

WAIT_S = 6
CLUSTER = {
    "overlays/lab/cluster.yaml": workspaces.CLUSTER.replace(', kueue: "0.19.2"', "")
    + f"gang: coscheduling\npodsReadyTimeout: {WAIT_S}s\n"
}
HOSTNAMES = [f"run-node-0-{index}.run" for index in range(4)]

# Refuses until the given number of calls for a host, as a server that is not up yet does.
_SSH = """\
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
echo "ssh $*" >>"$LOG"
read -r nothing && echo "ssh was given an input" >>"$LOG"
[ "$(grep -c "^ssh $1 " "$LOG")" -ge "$(cat "$FACTS/refuses-$1" 2>/dev/null || echo 1)" ] && exit 0
echo "ssh: connect to host $1 port 2222: Connection refused" >&2
exit 255
"""
# Time passes in sleep alone.
_DATE = """\
#!/bin/sh
echo $((1000 + $(grep -c "^sleep 1" "$LOG")))
"""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """A shell that images have as /bin/sh."""
    return str(request.param)


def launcher(folder: Path, spec: str) -> Container:
    """The launcher's container on a cluster with pod groups."""
    return container(spec, folder=folder, **CLUSTER)


@pytest.fixture(params=SPECS)
def pod(request: pytest.FixtureRequest, shell: str, tmp_path: Path) -> Pod:
    """A launcher of each family."""
    (tmp_path / "setvars.sh").write_text("")
    return with_ssh(Pod.of(tmp_path, shell, launcher(tmp_path, SPECS[request.param])))


def with_ssh(pod: Pod) -> Pod:
    """Stand-ins for the client and the clock."""
    for name, text in (("ssh", _SSH), ("date", _DATE)):
        (pod.folder / "bin" / name).write_text(text)
        (pod.folder / "bin" / name).chmod(0o755)
    return pod


def test_it_asks_every_worker_once(pod: Pod) -> None:
    done = pod.start("program", "two words")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    assert [line for line in pod.log if line.startswith("ssh")] == [f"ssh {host} true" for host in HOSTNAMES]
    assert pod.log[-1] == "program 1 two words"


def test_it_waits_for_a_server_that_comes_late(pod: Pod) -> None:
    pod.fact("refuses-run-node-0-2.run", "4")
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (7, "")
    assert pod.log.count("ssh run-node-0-2.run true") == 4
    assert pod.log.count("sleep 1") == 3
    assert pod.log[-1] == "program 0 "


def test_it_gives_up_in_time(pod: Pod) -> None:
    pod.fact("refuses-run-node-0-2.run", "99")
    done = pod.start("program")
    assert done.returncode == LAUNCH_EXITS["unanswered"].code
    assert done.stderr == (
        f"gangplan: run-node-0-2.run does not answer by SSH after {WAIT_S} s\n"
        "ssh: connect to host run-node-0-2.run port 2222: Connection refused\n"
    )
    assert pod.log.count("sleep 1") == WAIT_S
    assert not any(line.startswith(("mpirun", "program")) for line in pod.log)


def test_the_time_is_for_all_workers_together(pod: Pod) -> None:
    for host in HOSTNAMES:
        pod.fact(f"refuses-{host}", "3")
    done = pod.start("program")
    assert done.returncode == LAUNCH_EXITS["unanswered"].code
    assert pod.log.count("sleep 1") == WAIT_S


def test_names_may_come_as_late_as_servers(pod: Pod) -> None:
    pod.fact("slow-run-node-0-1.run", str(WAIT_S))
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (7, "")


def test_a_launcher_that_runs_ranks_does_not_call_itself(shell: str, tmp_path: Path) -> None:
    found = launcher(tmp_path, SPECS["openmpi"] + "launcher: {runsRanks: true}\n")
    pod = with_ssh(Pod.of(tmp_path, shell, found))
    hosts = [*HOSTNAMES[:3], "run-launcher-0-0.run"]
    pod.hosts(hosts)
    pod.fact("known", *hosts)
    (tmp_path / "bin/uname").write_text("#!/bin/sh\necho run-launcher-0-0\n")
    (tmp_path / "bin/uname").chmod(0o755)
    assert pod.start("program").returncode == 7
    assert [line for line in pod.log if line.startswith("ssh")] == [
        f"ssh {host} true" for host in HOSTNAMES[:3]
    ]


def test_without_a_pod_group_nothing_is_asked(shell: str, tmp_path: Path) -> None:
    found = container(SPECS["openmpi"], folder=tmp_path)
    assert not any("ssh-wait" in option for option in found.options)
    pod = with_ssh(Pod.of(tmp_path, shell, found))
    assert pod.start("program").returncode == 7
    assert not any(line.endswith(" true") for line in pod.log)


@pytest.mark.skipif(not MPIEXEC.is_file(), reason="no MPICH next to this python")
def test_every_rank_runs_with_the_real_mpich(tmp_path: Path) -> None:
    pod, argv, env = hydra(tmp_path / "plain")
    (tmp_path / "gang").mkdir()
    pod.box = launcher(tmp_path / "gang", SPEC)
    pod.env = env
    done = pod.start(*argv)
    assert done.returncode == 0, done.stderr
    assert sorted(line.split(" on ")[0] for line in done.stdout.splitlines()) == [
        f"rank {rank} of 6" for rank in range(6)
    ]
    # Asked one by one first, then called by MPI.
    assert pod.log[: len(HOSTS)] == HOSTS
