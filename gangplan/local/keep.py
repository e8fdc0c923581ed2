"""Start the first program of a pod, and leave nothing of it behind. Run by `python -I -S`, alone.

Its arguments are the folder of the run and the program. Standard input is a pipe of gangplan's: a byte in it asks for
the end, and an end without one means that gangplan was killed, so the folder is removed, too.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import sys
import time
from contextlib import suppress

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, from <linux/prctl.h>
PATIENCE_S = 5.0
KEPT_FILE = ".kept"  # a file in the folder of a run that --keep keeps


def keep() -> None:
    """Start the program, wait for its end or gangplan's, end what is left, and end as the program did."""
    folder, *words = sys.argv[1:]
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        # What loses its parent, such as a daemon with a session and an environment of its own, comes back to
        # this process.
        libc.prctl(SUBREAPER, 1, 0, 0, 0)
    wake = os.pipe()
    for end in wake:
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake[1], warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(words[0], words)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of gangplan is the one that counts
    ended: dict[int, int] = {}
    while child not in ended:
        ready = select.select([0, wake[0]], [], [])[0]
        if wake[0] in ready:
            os.read(wake[0], 4096)
        record_ended_child_processes(ended)
        if 0 in ready:
            break
    end_local_pod_processes(child, ended)
    if select.select([0], [], [], 0)[0] and not os.read(0, 1) and not os.path.exists(f"{folder}/{KEPT_FILE}"):
        shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(ended.get(child, signal.SIGKILL))
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 255)


def record_ended_child_processes(ended: dict[int, int]) -> None:
    """Note how children ended."""
    try:
        while True:
            number, status = os.waitpid(-1, os.WNOHANG)
            if not number:
                return
            ended[number] = status
    except ChildProcessError:
        return


def end_local_pod_processes(child: int, ended: dict[int, int]) -> None:
    """Kill everything below this process, and what a system without /proc has in the session of the program."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if os.path.exists("/proc/self/stat"):
            left = find_descendant_processes(os.getpid())
        else:
            left = [] if child in ended else [-child]
        for one in left:
            with suppress(OSError):  # it has ended
                os.kill(one, signal.SIGKILL)
        record_ended_child_processes(ended)
        if not left:
            return
        time.sleep(0.01)


def find_descendant_processes(top: int) -> list[int]:
    """Return the live descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", errors="replace") as file:
                    state, parent = file.read().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state not in "ZX":  # what has ended has no children any more
                children.setdefault(int(parent), []).append(int(name))
    found, rest = [], [top]
    while rest:
        below = children.get(rest.pop(), [])
        rest += below
        found += below
    return found


if __name__ == "__main__":
    keep()
