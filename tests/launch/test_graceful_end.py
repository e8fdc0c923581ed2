"""The end of a run: PID 1 of a worker as it is rendered, in a process namespace of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests import workspaces
from tests.launch.scripts import SHELLS, SHELLS_THAT_WAIT, Container, container, words_of

GRACE_S = 30
SPEC = workspaces.SPEC + f"gracePeriod: {GRACE_S}s\n"

# A server, a daemon and ranks by their names: what PID 1 tells apart is what /proc calls them. Programs are
# copies of the shell, so `own` runs a script under a name of its own.
_OWN = 'own() { name=$1; shift; cp -n /bin/sh "$FOLDER/$name"; "$FOLDER/$name" "$@"; }\n'
# A rank that saves for some seconds on SIGTERM, and one that does nothing about it.
_SAVES = """\
save() {
  for i in 0 1 2 3; do echo "line $i"; sleep 0.7; done >>"$FOLDER/saved-$1"
  echo end >>"$FOLDER/saved-$1"
  exit 0
}
trap 'save "$1"' TERM
: >"$FOLDER/up-$1"
while :; do sleep 0.1; done
"""
_DIES = ': >"$FOLDER/up-$1"\nwhile :; do sleep 0.1; done\n'


def _has_namespaces() -> bool:
    program = shutil.which("unshare")
    probe = [str(program), *_UNSHARE[1:], "true"]
    return program is not None and subprocess.run(probe, capture_output=True, check=False).returncode == 0


_UNSHARE = ["unshare", "--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child"]
pytestmark = pytest.mark.skipif(not _has_namespaces(), reason="no process namespaces here")


class Pod:
    """A first process that runs a script, and what it starts; all of it ends with the test."""

    running: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, folder: Path, shell: str, box: Container, server: str, **programs: str) -> None:
        """Start its script with a server that is a shell script; `programs` are others that it may call."""
        self.folder = folder
        (folder / "bin").mkdir(exist_ok=True)
        for name, text in programs.items():
            (folder / name).write_text(text)
        (folder / "server").write_text(_OWN + server)
        moved = dict.fromkeys(("/dev/shm/", "/etc/mpi/"), f"{folder}/")
        words = box.placed(folder / "launch", words_of(shell), moved)
        shutil.copy("/bin/sh", folder / "sshd")
        env = {"PATH": f"{folder}/bin:{os.defpath}:/usr/bin:/bin", "FOLDER": str(folder)}
        command = [*_UNSHARE, *words, f"{folder}/sshd", f"{folder}/server"]
        self.process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        self.running.append(self.process)

    def wait_for(self, *names: str) -> None:
        """Wait until all of these files are there."""
        until = time.monotonic() + 60
        while not all((self.folder / name).exists() for name in names):
            assert time.monotonic() < until, os.listdir(self.folder)
            time.sleep(0.05)

    def end(self) -> tuple[int, float, str]:
        """SIGTERM to the first process, as the kubelet sends it: exit code, seconds, standard error."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        began = time.monotonic()
        os.kill(int(children[0]), signal.SIGTERM)
        _, text = self.process.communicate(timeout=GRACE_S + 10)
        return self.process.returncode, time.monotonic() - began, text

    def saved(self, name: str) -> list[str]:
        """What a rank wrote after SIGTERM."""
        file = self.folder / f"saved-{name}"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture(autouse=True)
def nothing_outlives_its_test() -> Iterator[None]:
    """A namespace ends with `unshare`, which kills its first process; after a failed test, too."""
    yield
    while Pod.running:
        with Pod.running.pop() as process:
            process.kill()


WHOLE = [*(f"line {index}" for index in range(4)), "end"]


def pod(folder: Path, shell: str, server: str) -> Pod:
    (folder / "rendered").mkdir()
    box = container(SPEC, "node", folder / "rendered")
    return Pod(folder, shell, box, server, saves=_SAVES, dies=_DIES)


@pytest.mark.parametrize("shell", SHELLS_THAT_WAIT)
def test_ranks_under_a_daemon_save_before_the_worker_ends(tmp_path: Path, shell: str) -> None:
    """The server ends on SIGTERM by itself; as PID 1 it would take the ranks along."""
    server = 'own orted -c \'"$FOLDER/rank" "$FOLDER/saves" 0 & "$FOLDER/rank" "$FOLDER/saves" 1 & wait\'\n'
    shutil.copy("/bin/sh", tmp_path / "rank")
    run = pod(tmp_path, shell, server)
    run.wait_for("up-0", "up-1")
    code, seconds, text = run.end()
    assert (code, text) == (143, "")
    assert (run.saved("0"), run.saved("1")) == (WHOLE, WHOLE)
    assert seconds < GRACE_S - 5
    assert (tmp_path / "gangplan-ended").exists(), "what the launcher waits for"


def test_a_rank_that_dies_at_once_does_not_end_the_others(tmp_path: Path) -> None:
    """A daemon that reports it has all others killed, so it stands still. This one kills them itself."""
    ranks = '"$FOLDER/rank" "$FOLDER/dies" 1 & one=$!; "$FOLDER/rank" "$FOLDER/saves" 0 & two=$!'
    daemon = f"{ranks}; wait $one; kill -9 $two; wait"
    shutil.copy("/bin/sh", tmp_path / "rank")
    run = pod(tmp_path, "/bin/sh", f"own prted -c '{daemon}'\n")
    run.wait_for("up-0", "up-1")
    run.end()
    assert run.saved("0") == WHOLE


def test_a_shell_between_passes_it_on(tmp_path: Path) -> None:
    """`bash run.sh` as the rank: the shell gets the signal and does not pass it on."""
    (tmp_path / "run.sh").write_text('"$FOLDER/rank" "$FOLDER/saves" 0\n')
    shutil.copy("/bin/sh", tmp_path / "rank")
    run = pod(tmp_path, "/bin/sh", "own hydra_pmi_proxy -c '/bin/sh \"$FOLDER/run.sh\" & wait'\n")
    run.wait_for("up-0")
    run.end()
    assert run.saved("0") == WHOLE


def test_children_of_a_rank_are_its_own(tmp_path: Path) -> None:
    """A data loader that is killed makes the trainer fail while it saves."""
    handler = 'kill -0 $loader && echo alive >"$FOLDER/saved-0"; exit 0'
    loader = '"$FOLDER/loader" "$FOLDER/dies" loader & loader=$!'
    rank = f"{loader}\ntrap '{handler}' TERM\n{_DIES.replace('$1', '0')}"
    for name in ("rank", "loader"):
        shutil.copy("/bin/sh", tmp_path / name)
    (tmp_path / "parent").write_text(rank)
    run = pod(tmp_path, "/bin/sh", 'own orted -c \'"$FOLDER/rank" "$FOLDER/parent" & wait\'\n')
    run.wait_for("up-0", "up-loader")
    run.end()
    assert run.saved("0") == ["alive"]


def test_without_a_daemon_it_is_what_sessions_started(tmp_path: Path) -> None:
    """Horovod with gloo and DeepSpeed's pdsh start ranks by SSH alone."""
    shutil.copy("/bin/sh", tmp_path / "rank")
    run = pod(tmp_path, "/bin/sh", '"$FOLDER/sshd" -c \'"$FOLDER/rank" "$FOLDER/saves" 0 & wait\'\n')
    run.wait_for("up-0")
    run.end()
    assert run.saved("0") == WHOLE


def test_a_worker_that_is_taken_alone_does_not_wait(tmp_path: Path) -> None:
    """The launcher and its session go on; with a whole grace period of waiting a drain would take as long."""
    shutil.copy("/bin/sh", tmp_path / "rank")
    daemon = '"$FOLDER/rank" "$FOLDER/saves" 0 & while :; do sleep 0.1; done'
    session = f'cp -n /bin/sh "$FOLDER/orted"; "$FOLDER/orted" -c \'{daemon}\''
    (tmp_path / "session").write_text(session)
    run = pod(tmp_path, "/bin/sh", '"$FOLDER/sshd" "$FOLDER/session"\n')
    run.wait_for("up-0")
    code, seconds, _ = run.end()
    assert (code, run.saved("0")) == (143, WHOLE)
    assert seconds < GRACE_S - 5, "well before the kubelet kills it"


def test_a_worker_without_ranks_ends_at_once(tmp_path: Path) -> None:
    """The usual end: the launcher is done, and JobSet deletes the workers."""
    run = pod(tmp_path, "/bin/sh", ': >"$FOLDER/up"\nwhile :; do sleep 0.1; done\n')
    run.wait_for("up")
    code, seconds, _ = run.end()
    assert code == 143
    assert seconds < 20, "of a grace period of 120 s"


def _ask(run: Pod) -> int:
    """What the launcher does over SSH when its own pod ends; returns the first process."""
    children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
    (run.folder / "gangplan-asked").touch()
    os.kill(int(children[0]), signal.SIGUSR1)
    return int(children[0])


@pytest.mark.parametrize("shell", SHELLS_THAT_WAIT)
def test_a_worker_that_the_launcher_asks_ends_its_ranks_and_stays(tmp_path: Path, shell: str) -> None:
    """Were it the first to fail, JobSet would go by that, and not by why the launcher's pod was ended."""
    server = 'own orted -c \'"$FOLDER/rank" "$FOLDER/saves" 0 & wait\'\nwhile :; do sleep 0.1; done\n'
    shutil.copy("/bin/sh", tmp_path / "rank")
    run = pod(tmp_path, shell, server)
    run.wait_for("up-0")
    _ask(run)
    run.wait_for("gangplan-ended")
    assert run.saved("0") == WHOLE
    time.sleep(1)
    assert run.process.poll() is None
    code, seconds, _ = run.end()
    assert code == 143
    assert seconds < GRACE_S - 5


def test_ranks_get_one_sigterm_when_both_ask(tmp_path: Path) -> None:
    """A second SIGTERM ends many programs while they save."""
    twice = "trap 'echo told >>\"$FOLDER/saved-0\"; sleep 4 & wait; exit 0' TERM\n"
    (tmp_path / "counts").write_text(twice + ': >"$FOLDER/up-0"\nwhile :; do sleep 0.1; done\n')
    shutil.copy("/bin/sh", tmp_path / "rank")
    run = pod(tmp_path, "/bin/sh", 'own orted -c \'"$FOLDER/rank" "$FOLDER/counts" & wait\'\n')
    run.wait_for("up-0")
    _ask(run)
    time.sleep(1)
    code, _, _ = run.end()
    assert code == 143
    assert run.saved("0") == ["told"]


def test_a_server_that_fails_is_the_workers_end(tmp_path: Path) -> None:
    run = pod(tmp_path, "/bin/sh", "exit 5\n")
    assert run.process.wait(60) == 5


def test_orphans_are_reaped(tmp_path: Path) -> None:
    look = 'grep -l "^State:.Z" /proc/[0-9]*/status >"$FOLDER/zombies" 2>/dev/null'
    server = f'"$FOLDER/sshd" -c "sleep 0.2 & exit"\nsleep 1.5\n{look}\n: >"$FOLDER/looked"\n'
    run = pod(tmp_path, "/bin/sh", server)
    run.wait_for("looked")
    run.process.wait(60)
    assert (tmp_path / "zombies").read_text() == ""


# torch

# As torchrun does (elastic/multiprocessing/api.py, _close), but after half a second instead of 30: told to
# end, or with a rank that failed, it tells the others and then kills them.
_TORCHRUN = """\
#!{python}
import os, signal, subprocess, sys, time
folder = os.environ["FOLDER"]
words = [[folder + "/rank", folder + "/" + kind] for kind in sys.argv[1:]]
ranks = [subprocess.Popen([*one, str(rank)]) for rank, one in enumerate(words)]
def close(*_):
    for rank in ranks:
        rank.terminate()
    time.sleep(0.5)
    for rank in ranks:
        rank.kill()
    sys.exit(1)
signal.signal(signal.SIGTERM, close)
while any(rank.poll() is None for rank in ranks):
    if any(rank.poll() for rank in ranks):
        close()
    time.sleep(0.05)
"""


@pytest.mark.parametrize("kinds", [["saves", "saves"], ["saves", "dies"]], ids=["all save", "rank 0 saves"])
@pytest.mark.parametrize("before", ["", "-u -W ignore "], ids=["", "options"])
@pytest.mark.parametrize("shell", SHELLS_THAT_WAIT)
def test_torchrun_does_not_cut_a_checkpoint_off(
    shell: str, before: str, kinds: list[str], tmp_path: Path
) -> None:
    text = SPEC.replace("image: openmpi", "image: pytorch")
    box = container(text, "node", tmp_path / "rendered")
    python = tmp_path / "python3"  # no image has it at a path with a blank
    python.symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "torchrun").write_text(_TORCHRUN.replace("{python}", str(python)))
    (tmp_path / "torchrun").chmod(0o755)
    shutil.copy("/bin/sh", tmp_path / "rank")
    server = f'{python} {before}"$FOLDER/torchrun" {" ".join(kinds)} # torchrun\n'
    run = Pod(tmp_path, shell, box, server, saves=_SAVES, dies=_DIES)
    run.wait_for("up-0", "up-1")
    code, seconds, _ = run.end()
    assert code == 143
    for rank, kind in enumerate(kinds):
        assert run.saved(str(rank)) == (WHOLE if kind == "saves" else [])
    assert seconds < GRACE_S - 5, "well before the kubelet kills it"


def test_the_command_of_torch_ends_as_it_ended(tmp_path: Path) -> None:
    text = SPEC.replace("image: openmpi", "image: pytorch")
    box = container(text, "node", tmp_path / "rendered")
    for shell in SHELLS:
        words = box.placed(tmp_path / "launch", words_of(shell), {})
        for code in (0, 7):
            done = subprocess.run([*words, "sh", "-c", f"exit {code}"], check=False)
            assert done.returncode == code
