"""Child processes that never outlive the lab, with one log file each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from . import logs

#: Seconds for a program to end when it is asked to, and when it is killed.
GRACE = 5.0
PATIENCE = 60.0

#: A program that asks the kernel to kill it with its parent, and then executes another one.
#: (Doing the same between fork and exec can lock up a process with threads.)
_BECOME = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class ProcessEndedError(RuntimeError):
    """Raised when a program of the lab ended by itself; the message shows why."""


def _mortal(command: Sequence[str | Path]) -> list[str]:
    """Return a command that ends when this process does, where the kernel can ensure that."""
    words = [str(word) for word in command]
    if sys.platform != "linux":
        return words
    return [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *words]


class Process:
    """One running program."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        """Store the program's name, process and log."""
        self.name = name
        self.log = log
        self._popen = popen

    @property
    def pid(self) -> int:
        """The process id, which is also its process group."""
        return self._popen.pid

    @property
    def running(self) -> bool:
        """Whether the program is still running."""
        return self._popen.poll() is None

    def check(self) -> None:
        """Raise ProcessEndedError with the log's relevant lines if the program has ended."""
        code = self._popen.poll()
        if code is not None:
            raise ProcessEndedError(
                f"{self.name} ended with code {code}\n{logs.relevant(self.log, anything=True)}"
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program and to all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def wait(self, seconds: float) -> bool:
        """Wait for the end, and return whether it came."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(max(seconds, 0))
            return True
        return False


class Processes:
    """The programs of one lab, in the order in which they started.

    The kernel kills a child when the *thread* that started it ends, so all are
    started from one thread that lives as long as this object.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the logs in a folder."""
        self._folder = folder
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lab")
        self._running: dict[str, Process] = {}

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> Process:
        """Start a program under a name, appending to its log."""
        process = self._starter.submit(self._start, name, command, environment).result()
        self._running[name] = process
        return process

    def _start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> Process:
        log = self._folder / f"{name}.log"
        with log.open("ab") as output:
            popen = subprocess.Popen(
                _mortal(command),
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Process(name, popen, log)

    def __getitem__(self, name: str) -> Process:
        """Return the running program with a name."""
        return self._running[name]

    def __iter__(self) -> Iterator[Process]:
        """Return an iterator over the programs in the order in which they started."""
        return iter(tuple(self._running.values()))

    def ended(self) -> list[str]:
        """Return the names of programs that ended by themselves."""
        return [process.name for process in self if not process.running]

    def check(self) -> None:
        """Raise ProcessEndedError if any program has ended by itself."""
        for process in self:
            process.check()

    def stop(self, name: str) -> None:
        """End one program, with SIGTERM first."""
        process = self._running.pop(name)
        process.signal(signal.SIGTERM)
        if not process.wait(GRACE):
            process.signal(signal.SIGKILL)
            process.wait(PATIENCE)

    def close(self) -> None:
        """End every program at once; none is left when this returns."""
        processes = tuple(self)
        self._running.clear()
        for process in processes:
            process.signal(signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        for process in processes:
            process.wait(deadline - time.monotonic())
        self._starter.shutdown()
