"""The line that shows progress: only on terminals, gone at the end, never part of an answer."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from gangplan.commands.progress import INTERVAL_S, PATIENCE_S, Line, format_progress_line
from gangplan.errors import Exit
from tests import workspaces
from tests.signals import LISTENING

CLEAR = "\r\033[K"
# A child that shows its line from the first spec on, and again with every spec. At the spec HOLD_AT it waits
# for an interrupt: however slow the test is, it must not be past its last spec by then.
AT_ONCE = f"""{LISTENING}
import os, sys, time
from gangplan.commands import progress
progress.PATIENCE_S = progress.INTERVAL_S = 0
show, hold = progress.Line.tick, int(os.environ.get("HOLD_AT", 0))

def tick(line, done, total):
    show(line, done, total)
    if done == hold:
        time.sleep(60)

progress.Line.tick = tick
from gangplan.entry import main
sys.exit(main())
"""


class Screen:
    """A terminal with one line, and a clock that the test sets."""

    def __init__(self, columns: int = 80) -> None:
        self.now, self.columns = 100.0, columns
        self.texts: list[str] = []
        self.line = Line(self.texts.append, lambda: self.columns, lambda: self.now)

    def tick(self, done: int, total: int, after: float) -> None:
        self.now += after
        self.line.tick(done, total)


def test_commands_within_a_second_show_no_line() -> None:
    screen = Screen()
    for done in range(1, 11):
        screen.tick(done, 10, PATIENCE_S / 20)
    screen.line.clear()
    assert screen.texts == []


def test_the_line_is_rewritten_and_removed_with_the_last_spec() -> None:
    screen = Screen()
    screen.tick(30, 100, 2.0)
    screen.tick(31, 100, INTERVAL_S / 2)  # too soon to be read
    screen.tick(60, 100, 2.0)
    screen.tick(100, 100, 1.0)
    screen.line.clear()
    assert screen.texts == [
        f"{CLEAR}30 of 100 specs, 15 per second, 5 s left",
        f"{CLEAR}60 of 100 specs, 15 per second, 3 s left",
        CLEAR,
    ]


def test_the_line_is_never_wrapped() -> None:
    screen = Screen(columns=20)
    screen.tick(30, 100, 2.0)
    assert screen.texts == [f"{CLEAR}30 of 100 specs, 15"]


@pytest.mark.parametrize(
    ("done", "seconds", "said"),
    [
        (0, 2.0, "0 of 900 specs"),
        (3, 2.0, "3 of 900 specs, 1.5 per second, 9 min 58 s left"),
        (899, 9.0, "899 of 900 specs, 100 per second, 0 s left"),
    ],
)
def test_the_words_of_the_line_match_the_progress(done: int, seconds: float, said: str) -> None:
    assert format_progress_line(done, 900, seconds) == said


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {f"specs/nlp/job-{number}.yaml": workspaces.SPEC for number in range(40)}
    return workspaces.write(
        tmp_path_factory.mktemp("progress") / "work",
        {**workspaces.STOCK, **files, "overlays/lab/cluster.yaml": workspaces.WIDE_CLUSTER},
    )


def on_terminal(
    root: Path, *arguments: str, stop_at: bytes = b"", variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Return the exit code and all terminal output of a command; press Ctrl-C once `stop_at` shows."""
    environment = {name: text for name, text in os.environ.items() if name != "CI"}
    child, terminal = pty.fork()
    if not child:
        os.chdir(root)
        os.execve(
            sys.executable,
            [sys.executable, "-c", AT_ONCE, *arguments],
            environment | {"TERM": "xterm", **(variables or {})},
        )
    said, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            try:
                said += os.read(terminal, 65536)
            except OSError:  # the child went away
                break
            if stop_at and stop_at in said:
                os.write(terminal, b"\x03")
                stop_at = b""
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), said.decode()


def left(said: str) -> str:
    """Return what is on the screen in the end."""
    return "\n".join(line.rpartition(CLEAR)[2].rstrip("\r") for line in said.split("\n"))


@pytest.mark.parametrize("engine", [("serial",), ("process", "--jobs", "2")])
def test_a_terminal_shows_the_line_until_the_end(root: Path, engine: tuple[str, ...]) -> None:
    code, said = on_terminal(root, "validate", "--no-cache", "--engine", *engine)
    assert code == Exit.CLEAN, said
    assert f"{CLEAR}20 of 41 specs, " in said
    assert "of 41 specs" not in left(said)
    assert "checked 41 specs" in left(said)


@pytest.mark.parametrize("variables", [{"CI": "true"}, {"TERM": "dumb"}])
def test_there_is_no_line_in_ci_and_on_dumb_terminals(root: Path, variables: dict[str, str]) -> None:
    code, said = on_terminal(root, "validate", "--no-cache", "--engine", "serial", variables=variables)
    assert code == Exit.CLEAN
    assert "of 41 specs" not in said
    assert "\033[K" not in said


def test_there_is_no_line_where_standard_error_is_a_pipe(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, "validate", "--no-cache", "--format", "json"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={name: text for name, text in os.environ.items() if name != "CI"},
    )
    assert done.returncode == Exit.CLEAN, done.stderr
    assert "\033" not in done.stdout + done.stderr
    assert "of 41 specs" not in done.stderr


def test_the_line_is_not_part_of_a_kept_answer(root: Path) -> None:
    """A kept answer has the output of the command, not its progress."""
    _, first = on_terminal(root, "plan", "--engine", "serial")
    time.sleep(0.2)  # files that have just changed are not trusted
    _, second = on_terminal(root, "plan", "--engine", "serial")
    _, third = on_terminal(root, "plan", "--engine", "serial")
    assert "20 of 41 specs" in first
    assert "of 41 specs" not in third
    assert left(first) == left(second) == third.replace("\r", "")


def written(root: Path) -> dict[str, bytes]:
    """Return all files of a workspace, without the cache and the lock, which any command may leave."""
    return {path: data for path, data in workspaces.tree(root).items() if not path.startswith(".gangplan/")}


@pytest.mark.parametrize("engine", [("serial",), ("process", "--jobs", "2")])
def test_an_interrupt_leaves_neither_line_nor_files(root: Path, engine: tuple[str, ...]) -> None:
    before = written(root)
    held = {"HOLD_AT": "5"}
    words = ("render", "--no-cache", "--engine", *engine)
    code, said = on_terminal(root, *words, stop_at=b"5 of 41 specs", variables=held)
    assert code == Exit.INTERRUPTED, said
    assert left(said).strip() == "interrupted; nothing was changed"
    assert written(root) == before
