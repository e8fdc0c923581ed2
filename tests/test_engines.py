"""Engines: results come in order, few tasks are under way, and a task that kills workers is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.engines import FEWEST_IN_TASK, MOST_IN_TASK, split_into_worker_tasks
from gangplan.engines.held import TASKS_AHEAD
from gangplan.engines.process import ProcessEngine
from gangplan.errors import ToolError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are not forked here")


@given(size=st.integers(0, 2000), workers=st.integers(1, 64))
def test_shares_cover_everything_once_and_shrink(size: int, workers: int) -> None:
    tasks = split_into_worker_tasks(range(size), workers)
    assert [one for task in tasks for one in task] == list(range(size))
    sizes = [len(task) for task in tasks]
    assert all(FEWEST_IN_TASK <= one <= MOST_IN_TASK for one in sizes[:-1])
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    # No task is larger than half of what each worker has left when the task begins.
    for done, one in zip(accumulate(sizes, initial=0), sizes, strict=False):
        assert one <= max(FEWEST_IN_TASK, (size - done) // (2 * workers))


def test_results_come_in_order() -> None:
    def call(worker: int, task: int) -> int:
        return worker * task

    globals()["call"] = call
    call.__qualname__ = "call"
    assert list(ProcessEngine(3).map(call, range(40), 2)) == [2 * task for task in range(40)]


def noted(folder: Path, task: int) -> int:
    """Leave a file for each task that is run."""
    (folder / str(task)).touch()
    return task


def test_few_tasks_are_under_way(tmp_path: Path) -> None:
    """Tasks do not pile up: a reader that waits stops the workers."""
    results = ProcessEngine(2).map(noted, range(100), tmp_path)
    for taken in range(1, 11):
        next(results)
        assert len(list(tmp_path.iterdir())) <= taken + 2 * TASKS_AHEAD
    results.close()  # type: ignore[attr-defined]


def dying(folder: Path, task: int) -> int:
    """Run a task whose worker is killed, the first time or always."""
    if task == 7 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if task == 13 and (folder / "always").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def test_a_worker_that_dies_once_changes_no_result(tmp_path: Path) -> None:
    assert list(ProcessEngine(2).map(dying, range(30), tmp_path)) == list(range(30))
    assert (tmp_path / "died").exists()


def test_a_task_that_kills_its_worker_twice_is_named(tmp_path: Path) -> None:
    (tmp_path / "always").touch()
    results = ProcessEngine(2).map(dying, range(30), tmp_path, "file-{}".format)
    assert [next(results) for _ in range(13)] == list(range(13))
    with pytest.raises(ToolError, match=r"died twice at file-13 \(killed, or out of memory\); nothing"):
        next(results)


@pytest.mark.skipif(not Path("/proc").exists(), reason="children are counted in /proc")
def test_no_worker_is_left_behind(tmp_path: Path) -> None:
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    before = set(own.read_text().split())
    results = ProcessEngine(2).map(noted, range(100), tmp_path)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert set(own.read_text().split()) <= before


WAITING = """
import os, signal, sys, time
from gangplan.engines.process import ProcessEngine

def work(worker, task):
    if task:
        os.kill(os.getppid(), signal.SIGUSR1)
        time.sleep(60)
    return task

def tell(*_):
    time.sleep(0.5)  # the other worker is done and waits
    os.killpg(0, signal.SIGINT)

os.setpgid(0, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGUSR1, tell)
try:
    list(ProcessEngine(2).map(work, [0, 1], None))
except KeyboardInterrupt:
    sys.exit("interrupted")
"""


def test_waiting_workers_end_in_silence(tmp_path: Path) -> None:
    """Ctrl-C reaches all processes of a terminal, but only the command prints something."""
    (tmp_path / "waiting.py").write_text(WAITING)
    done = subprocess.run(
        [sys.executable, "waiting.py"], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (1, "interrupted\n")
