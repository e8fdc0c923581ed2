"""A pseudo-terminal that runs gangplan: tests read its questions and type the answers."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

#: Seconds to wait for a question to appear.
PATIENCE_S = 60.0


class Terminal:
    """A gangplan process on its own pseudo-terminal; leaving the block ends it."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.ours, theirs = pty.openpty()
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gangplan", *arguments],
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb", "INPUTRC": os.devnull},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, bad: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)

    def expect(self, text: str) -> str:
        """Read until a text appears, discard everything up to its end, and return what came before it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} never came: {self.seen!r}"
            assert self._read(), f"the end came before {text!r}: {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, keys: str) -> None:
        """Type keys; Enter is \\r."""
        os.write(self.ours, keys.encode())

    def end(self) -> int:
        """Read the rest of the output and return the exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.ours], [], [], PATIENCE_S)
        if not ready:
            return False
        try:
            data = os.read(self.ours, 1 << 16)
        except OSError:  # on Linux, once the other end is closed
            return False
        self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


def _take_terminal() -> None:
    """Make this the controlling terminal of the new session, so that Ctrl-C reaches it even if the tests
    ignore it."""
    import fcntl
    import signal
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
