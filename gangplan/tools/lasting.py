"""Start long-running programs with pipes, each in a session of its own, and end them with their children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gangplan.errors import ToolError

ProgramProcess = subprocess.Popen[bytes]


def start_long_running_subprocess(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> ProgramProcess:
    """Start a program as leader of a new session, with `env` as its whole environment, and pipe its output.

    Its input is a pipe that ends when this process does, however that ends.
    Raises ToolError if it cannot be started.
    """
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{argv[0]} cannot be started: {error.strerror}") from error


def list_processes_with_variable(mark: str) -> list[int]:
    """Return the other live processes of this machine whose environment has `mark` (NAME=VALUE).

    Empty on a system without /proc.
    """
    wanted, found = mark.encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            if state not in "ZX" and wanted in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
    return [one for one in found if one != os.getpid()]


def end_long_running_subprocesses(programs: Sequence[ProgramProcess], mark: str) -> bool:
    """End programs; return whether they and all marked processes ended.

    A byte in their input asks them to end, and gives them ten seconds to end theirs. Then they and all marked
    processes are killed, which takes five seconds at most.
    """
    deadline = time.monotonic() + 10
    for one in programs:
        assert one.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, or was asked before
            one.stdin.write(b"e")
            one.stdin.close()
    for one in programs:
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.wait(max(0, deadline - time.monotonic()))
    deadline = time.monotonic() + 5
    while True:
        for one in programs:
            one.kill()
        left = list_processes_with_variable(mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for one in programs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(0.2)
        if not left:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)


def send_signal(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes; some may have ended already."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def find_free_port() -> int:
    """Return a port of the loopback interface on which no program listens at the moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
