"""What is read of a run's output: secrets, the ranks of lines, and how much waits to be shown."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from gangplan.local.output import OutputHistory, OutputLine, PipeListener
from tests.local.base import plain_workspace, run


def test_each_line_of_a_secret_is_hidden(tmp_path: Path) -> None:
    root = plain_workspace(
        tmp_path, "import os\nprint(os.environ['KEY'], repr(os.environ['KEY']))\n", workers=1
    )
    spec = root / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text() + "secrets: {env: {KEY: huggingface/token}}\n")
    done = run(root, env={"KEY": "line-one\n  line-two\r\nabc\n"})
    assert done.code == 0, done.err
    assert done.out.splitlines()[1:3] == ["[0] ***", "[0]   ***"]
    assert "line-" not in done.out + done.err
    assert "[0] abc\n" in done.out  # too short: the same letters are in other words


def test_a_program_cannot_write_the_tag_of_a_rank(tmp_path: Path) -> None:
    program = "print('\\x1e7\\x1fspoof')\nprint('\\x1dspoof')\nprint('\\x1e7\\x1d\\x1fspoof')\n"
    done = run(plain_workspace(tmp_path, program, workers=1))
    assert done.code == 0, done.err
    assert done.out.count("started") == 1
    assert "[7]" not in done.out
    assert done.out.splitlines()[1:] == [
        "[0] \\x1e7\\x1fspoof",
        "[0] \\x1dspoof",
        "[0] \\x1e7\\x1d\\x1fspoof",
    ]


class Endless(io.RawIOBase):
    """A pipe of a program that prints without end; it counts what is read."""

    count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        self.count += len(buffer)
        buffer[:] = b"x" * (len(buffer) - 1) + b"\n" if self.has_lines else b"x" * len(buffer)
        return len(buffer)

    def __init__(self, has_lines: bool) -> None:
        self.has_lines = has_lines


@pytest.mark.parametrize("has_lines", [True, False])
def test_the_queue_of_unread_lines_has_a_limit(has_lines: bool) -> None:
    listener, pipe = PipeListener((), "token"), Endless(has_lines)
    assert listener.queue.maxsize > 0
    listener.hear(io.BufferedReader(pipe), "worker-0", False)  # type: ignore[arg-type]
    deadline = time.monotonic() + 60
    while not listener.queue.full() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert listener.queue.full()
    before = pipe.count
    assert before < 200e6
    listener.queue.get(timeout=60)  # the reader goes on
    while pipe.count == before and time.monotonic() < deadline:
        time.sleep(0.01)
        listener.queue.get(timeout=60)
    assert pipe.count > before


def test_the_history_has_a_limit() -> None:
    story = OutputHistory()
    for number in range(100):
        story.add(OutputLine(0, "worker-0", False, f"{number} " + "x" * 1_000_000))
    assert 1_000_000 < len(story.log) < 25_000_000
    assert "\n[1,0]<stdout>:99 x" in story.log
