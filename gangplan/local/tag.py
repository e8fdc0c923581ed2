"""Start the program of a rank, and mark each of its lines with the rank. Run by `python -I -S`, alone.

Its arguments are the folder of the run, its token and the program. Each line keeps its destination, with the
token and the number of the rank between two control characters in front (output.py reads them); process id and exit
code are written into the folder.
"""

from __future__ import annotations

import os
import select
import signal
import sys

# Variables with the number of a rank: Open MPI, PMIx (Open MPI 5), Hydra, torchrun, then a worker that starts
# the program once.
NUMBERS = "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK", "GANGPLAN_WORKER"
# One write of up to this many bytes into a pipe is never interleaved with another (POSIX, PIPE_BUF).
MOST = 4000


def tag_rank_output() -> None:
    """Start the program, pass on what it prints, and end as it ends."""
    folder, token, *words = sys.argv[1:]
    rank = next((os.environ[name] for name in NUMBERS if name in os.environ), "")
    host = os.environ.get("GANGPLAN_HOST") or os.uname().nodename
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if child == 0:
        os.dup2(pipes[0][1], 1)
        os.dup2(pipes[1][1], 2)
        for pair in pipes:
            os.close(pair[0])
            os.close(pair[1])
        try:
            os.execvp(words[0], words)
        except OSError as error:
            os.write(2, f"{words[0]}: {error.strerror}\n".encode())
            os._exit(127 if error.errno == 2 else 126)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: os.kill(child, got))
    note(folder, rank, "pid", str(child))
    head = f"\x1e{token}:{rank}".encode()
    write(1, b"%s\x1d\x1f%s\n" % (head, host.encode()))
    for pair in pipes:
        os.close(pair[1])
    copy({pipes[0][0]: 1, pipes[1][0]: 2}, head + b"\x1f")
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    note(folder, rank, "code", f"{code} {host}")
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 255)


def note(folder: str, rank: str, what: str, value: str) -> None:
    """Write a fact about a rank, atomically."""
    path = os.path.join(folder, "ranks", f"{rank or 'alone'}.{what}")
    with open(path + ".new", "w") as file:
        file.write(value)
    os.replace(path + ".new", path)


def copy(streams: dict[int, int], head: bytes) -> None:
    """Pass lines on from pipes (keys) to descriptors (values), with `head` before each, until all pipes have
    ended."""
    held = dict.fromkeys(streams, b"")
    while streams:
        for one in select.select(list(streams), [], [])[0]:
            data = os.read(one, 65536)
            lines = (held[one] + data).split(b"\n")
            held[one] = lines.pop() if data else b""
            if not data and lines == [b""]:
                lines = []
            while len(held[one]) > MOST:
                lines.append(held[one][:MOST])
                held[one] = held[one][MOST:]
            for line in lines:
                for start in range(0, len(line) or 1, MOST):
                    write(streams[one], head + line[start : start + MOST] + b"\n")
            if not data:
                del streams[one]


def write(to: int, data: bytes) -> None:
    """Write everything, as long as the reader is there."""
    try:
        while data:
            data = data[os.write(to, data) :]
    except OSError:
        pass


if __name__ == "__main__":
    tag_rank_output()
