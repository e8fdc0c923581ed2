"""The progress of a long command: one line on a terminal, rewritten in place and removed at the end.

It is written to the terminal itself and not to `sys.stderr`: what goes there is the command's answer, which
may be stored and given again (gangplan/incremental/answers.py).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

#: Seconds before a line is shown: shorter work needs none.
PATIENCE_S = 1.0
#: Seconds between two lines: people do not read faster, and a remote terminal is slow.
INTERVAL_S = 0.1

#: Called with the number of specs that are done, and of all.
Tick = Callable[[int, int], None]
_CLEAR = "\r\033[K"


@contextmanager
def show_progress_on_terminal() -> Iterator[Tick | None]:
    """Yield a function to call when a spec is done; None if there is no terminal: in pipes, files and CI.

    The line is removed however the block ends.
    """
    terminal = _find_terminal_for_progress_line()
    if terminal is None:
        yield None
        return
    line = Line(
        lambda text: _write_to_terminal(terminal, text),
        lambda: _count_terminal_columns(terminal),
        time.monotonic,
    )
    try:
        yield line.tick
    finally:
        line.clear()


class Line:
    """A line that shows the share of specs that are done, their rate, and the time left.

    `write` writes a text to the terminal, `columns` returns its width, `clock` is in seconds.
    """

    __slots__ = ("clock", "columns", "is_shown", "next", "start", "write")

    def __init__(
        self, write: Callable[[str], object], columns: Callable[[], int], clock: Callable[[], float]
    ) -> None:
        self.write, self.columns, self.clock = write, columns, clock
        self.start = clock()
        self.next = self.start + PATIENCE_S
        self.is_shown = False

    def tick(self, done: int, total: int) -> None:
        """Show that `done` of `total` specs are done; remove the line after the last one."""
        now = self.clock()
        if done >= total:
            self.clear()
        elif now >= self.next:
            self.next = now + INTERVAL_S
            self.is_shown = True
            # A line as wide as the terminal would wrap, and its first half would remain.
            self.write(f"{_CLEAR}{format_progress_line(done, total, now - self.start)[: self.columns() - 1]}")

    def clear(self) -> None:
        """Remove the line."""
        if self.is_shown:
            self.is_shown = False
            self.write(_CLEAR)


def format_progress_line(done: int, total: int, seconds: float) -> str:
    """Format progress as `120 of 1000 specs, 40 per second, 22 s left`."""
    rate = done / seconds if seconds > 0 else 0.0
    if not rate:
        return f"{done} of {total} specs"
    left = round((total - done) / rate)
    minutes = f"{left // 60} min " if left >= 60 else ""
    return (
        f"{done} of {total} specs, {rate:.{0 if rate >= 10 else 1}f} per second, {minutes}{left % 60} s left"
    )


def _find_terminal_for_progress_line() -> int | None:
    """Return the descriptor of standard error if it is a terminal that somebody may watch."""
    stream = sys.__stderr__
    if stream is None or os.environ.get("CI") or os.environ.get("TERM") == "dumb":
        return None
    with suppress(OSError, ValueError):
        if stream.isatty():
            return stream.fileno()
    return None


def _write_to_terminal(terminal: int, text: str) -> None:
    with suppress(OSError):  # a closed terminal stops no command
        os.write(terminal, text.encode("ascii"))


def _count_terminal_columns(terminal: int) -> int:
    with suppress(OSError):
        return os.get_terminal_size(terminal).columns or 80
    return 80
