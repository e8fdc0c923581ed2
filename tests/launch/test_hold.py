"""With retries: a launcher whose command failed holds on; one whose worker goes tells the others."""

from __future__ import annotations

import signal
import subprocess
import time
from importlib import import_module
from pathlib import Path

import pytest

from gangplan.model.exits import LAUNCH_EXITS
from tests.launch.scripts import SHELLS, SHELLS_THAT_WAIT, WAIT_S, Pod, container
from tests.launch.test_launch import SPECS

HOLD_S = 20
# Sessions: one that waits until its host has to end, one that asks PID 1 of a host to end its ranks.
_SSH = """\
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
case $2 in
*USR1*) echo "asked $1" >>"$LOG"; sleep 0.2; echo "ended $1" >>"$LOG" ;;
*gangplan-asked*) [ ! -e "$FACTS/told-$1" ] || echo gangplan-interrupted ;;
*gangplan-told*) echo "watched $1" >>"$LOG"; until [ -e "$FACTS/told-$1" ]; do sleep 0.1; done ;;
esac
"""
_WORKS = """\
#!/bin/sh
echo "works" >>"$LOG"
trap '' TERM
until [ -e "$FACTS/fails" ]; do sleep 0.1; done
exit 7
"""
HOSTS = [f"run-node-0-{index}.run" for index in range(4)]


@pytest.fixture(params=SHELLS_THAT_WAIT)
def pod(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    """A launcher with retries, whose hosts answer."""
    monkeypatch.setattr(import_module("gangplan.generators.launch"), "WORKER_WAIT_S", WAIT_S)
    monkeypatch.setattr(import_module("gangplan.generators.launch"), "HOLD_S", HOLD_S)
    found = container(SPECS["openmpi"] + "retries: 1\n", folder=tmp_path)
    pod = Pod.of(tmp_path, str(request.param), found)
    return with_ssh(pod)


def with_ssh(pod: Pod) -> Pod:
    """Stand-ins for the client and for programs that work, or end well at once."""
    for name, text in {"ssh": _SSH, "works": _WORKS, "right": "#!/bin/sh\nexit 0\n"}.items():
        (pod.folder / "bin" / name).write_text(text)
        (pod.folder / "bin" / name).chmod(0o755)
    return pod


def wait_for(pod: Pod, process: subprocess.Popen[bytes], line: str, times: int = 1) -> None:
    """Wait until the stubs have seen something so often."""
    until = time.monotonic() + 15
    while pod.log.count(line) < times:
        assert process.poll() is None, pod.log
        assert time.monotonic() < until, pod.log
        time.sleep(0.05)


def seconds_of(process: subprocess.Popen[bytes]) -> float:
    """How long a process still takes."""
    began = time.monotonic()
    process.wait(timeout=60)
    return time.monotonic() - began


def test_a_failure_is_held_and_keeps_its_code(pod: Pod) -> None:
    pod.box.change(f"--hold={HOLD_S}", "--hold=2")
    began = time.monotonic()
    done = pod.start("program")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    assert 2 <= time.monotonic() - began < 10


def test_a_sigterm_ends_the_hold_at_once_with_the_commands_code(pod: Pod) -> None:
    with pod.begun("program") as process:
        wait_for(pod, process, "program 0 ")
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert seconds_of(process) < 3
        assert process.returncode == 7


def test_a_command_that_succeeds_is_not_held(pod: Pod) -> None:
    began = time.monotonic()
    assert pod.start("right").returncode == 0
    assert time.monotonic() - began < HOLD_S / 2


def test_workers_that_mpi_does_not_reach_may_be_going(pod: Pod) -> None:
    pod.box.change(f"--hold={HOLD_S}", "--hold=2")
    pod.fact("reached", "run-node-0-0")
    began = time.monotonic()
    assert pod.start("program").returncode == LAUNCH_EXITS["unreached"].code
    assert time.monotonic() - began >= 2


def test_when_a_worker_is_taken_away_the_others_are_asked_at_once(pod: Pod) -> None:
    """A checkpoint may need all ranks; the Job of the workers tells the others only when one has ended."""
    pod.box.change("; do gp_pass; done", "; do sleep 0.1; done")
    with pod.begun("works") as process:
        for host in HOSTS:
            wait_for(pod, process, f"watched {host}")
        assert not any(line.startswith("asked") for line in pod.log)
        pod.fact(f"told-{HOSTS[1]}")
        for host in HOSTS:
            wait_for(pod, process, f"ended {host}")
        pod.fact(f"told-{HOSTS[2]}")
        time.sleep(7)
        assert process.poll() is None, "it holds on until the worker's Job has failed"
        process.send_signal(signal.SIGTERM)
        assert seconds_of(process) < 3
        assert process.returncode == 143
        assert sum(line.startswith("asked") for line in pod.log) == len(HOSTS)


def test_a_connection_that_breaks_says_nothing(pod: Pod) -> None:
    (pod.folder / "bin/ssh").write_text('#!/bin/sh\necho broken >>"$LOG"\nexit 255\n')
    with pod.begun("works") as process:
        wait_for(pod, process, "broken", len(HOSTS))
        time.sleep(1)
        assert process.poll() is None
        pod.fact("fails")
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        assert seconds_of(process) < 3
        assert process.returncode == 7


@pytest.mark.parametrize("shell", SHELLS)
def test_without_retries_nothing_is_held_or_watched(shell: str, tmp_path: Path) -> None:
    found = container(SPECS["openmpi"], folder=tmp_path)
    assert not any("hold" in option for option in found.options)
    pod = with_ssh(Pod.of(tmp_path, shell, found))
    pod.fact(f"told-{HOSTS[1]}")
    pod.fact("fails")
    began = time.monotonic()
    assert pod.start("works").returncode == 7
    assert time.monotonic() - began < 5
    assert not any(line.startswith(("watched", "asked")) for line in pod.log)


def test_a_command_that_succeeds_after_a_worker_had_to_end_fails(pod: Pod) -> None:
    """Its ranks saved and ended well: the run has to go on, and is not complete."""
    pod.box.change(f"--hold={HOLD_S}", "--hold=1")
    pod.fact(f"told-{HOSTS[3]}")
    (pod.folder / "bin/ssh").write_text(
        _SSH.replace('*gangplan-told*) echo "watched $1" >>"$LOG"', "*gangplan-told*) exit 255")
    )
    done = pod.start("right")
    assert done.returncode == 143
    assert (
        done.stderr
        == f"gangplan: {HOSTS[3]} was told to end before the command ended; the run is not complete\n"
    )


@pytest.mark.parametrize("retries", [0, 1])
def test_a_worker_of_torch_holds_on_too(retries: int, tmp_path: Path) -> None:
    """Its own Job goes by the first pod that has failed: one that is taken away must have ended by then."""
    spec = SPECS["openmpi"].replace("image: openmpi", "image: pytorch") + f"retries: {retries}\n"
    pod = Pod.of(tmp_path, SHELLS[0], container(spec, "node", tmp_path))
    with pod.begun("program") as process:
        time.sleep(2)
        assert (process.poll() is None) == bool(retries)
        process.send_signal(signal.SIGTERM)
        assert seconds_of(process) < 3
        assert process.returncode == 7
