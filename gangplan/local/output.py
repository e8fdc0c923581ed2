"""The output of a run's processes: each line with its rank or worker."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from queue import Queue
from typing import IO

from gangplan.records import dataclass

# A harmless warning of Open MPI's daemons over any ssh that starts fast (plm/rsh, 4.1.8; plm/ssh, 5.0.11).
_NOISE = re.compile(r"plm:(?:rsh|ssh): Warning: setpgid\(")
_TAIL = 15
_MOST_KEPT = 50_000
_MOST_KEPT_LETTERS = 20_000_000
_MOST_WAITING = 1000
_LONGEST = 65_536  # of a line, in bytes: a longer one is shown as several
_SECRET = 4  # a shorter value would hide half of the output


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line: its rank (None: a launcher or worker itself), its pod, and whether it is from stderr.

    With `is_start`, it reports that the rank has started on host `text`.
    """

    rank: int | None
    pod: str
    is_error: bool
    text: str
    is_start: bool = False


class PipeListener:
    """A reader of processes' pipes, one thread each, into one queue; None marks the end of a pipe.

    `token` is the run's, in the tags of lines; no program can print it by accident.
    """

    def __init__(self, secrets: Sequence[str], token: str) -> None:
        # The mark that tag.py puts before a line; an MPI may join several lines, or add a prefix of its own.
        self._tag = re.compile(rf"\x1e{re.escape(token)}:(\d*)(\x1d?)\x1f")
        # A full queue makes programs wait, as a pipe does.
        self.queue: Queue[OutputLine | None] = Queue(_MOST_WAITING)
        words = {word for one in secrets for word in (one, *map(str.strip, one.splitlines()))}
        self._secrets = sorted((word for word in words if len(word) >= _SECRET), key=len, reverse=True)
        self.open = 0

    def hear(self, stream: IO[bytes], pod: str, is_error: bool) -> None:
        """Read a pipe to its end, in a thread."""
        self.open += 1
        threading.Thread(target=self._read, args=(stream, pod, is_error), daemon=True).start()

    def _read(self, stream: IO[bytes], pod: str, is_error: bool) -> None:
        for raw in iter(lambda: stream.readline(_LONGEST), b""):
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            for line in () if _NOISE.search(text) else _split_output_by_rank(self._tag, text, pod, is_error):
                self.queue.put(self._hidden(line))
        self.queue.put(None)

    def _hidden(self, line: OutputLine) -> OutputLine:
        text = line.text
        for one in self._secrets:
            text = text.replace(one, "***")
        return line if text is line.text else replace(line, text=text)


def _split_output_by_rank(tag: re.Pattern[str], text: str, pod: str, is_error: bool) -> list[OutputLine]:
    """Return the line with its rank; several if an MPI has joined them."""
    parts = tag.split(text)
    found = [OutputLine(None, pod, is_error, parts[0])] if parts[0] or len(parts) == 1 else []
    for number, start, said in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        rank = int(number) if number else None
        found.append(OutputLine(rank, pod, is_error, said, bool(start)))
    return found


class OutputHistory:
    """The output so far: the last lines of each rank, and all of it for `gangplan diagnose`."""

    def __init__(self) -> None:
        self._tails: dict[int | None, deque[str]] = {}
        self._all: deque[str] = deque()
        self._size = 0
        self.ranks: dict[int, str] = {}  # by rank, the host that it has started on

    def add(self, line: OutputLine) -> None:
        """Add a line."""
        if line.rank is not None and line.is_start:
            self.ranks[line.rank] = line.text
        if line.is_start:
            return
        self._tails.setdefault(line.rank, deque(maxlen=_TAIL)).append(line.text)
        tag = f"[1,{line.rank}]<{'stderr' if line.is_error else 'stdout'}>:" if line.rank is not None else ""
        self._all.append(tag + line.text)
        self._size += len(self._all[-1])
        while len(self._all) > _MOST_KEPT or self._size > _MOST_KEPT_LETTERS:
            self._size -= len(self._all.popleft())

    def tail(self, rank: int | None) -> list[str]:
        """Return the last lines of a rank, or of everything that is not a rank."""
        return list(self._tails.get(rank, ()))

    @property
    def log(self) -> str:
        """All lines, marked as `mpirun --tag-output` marks them."""
        return "".join(f"{line}\n" for line in self._all)
