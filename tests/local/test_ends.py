"""How a run ends while its programs go on: the time limit, a failed rank."""

from __future__ import annotations

from pathlib import Path

from tests.local.base import plain_workspace, run


def test_the_time_limit_ends_a_run_that_prints_without_end(tmp_path: Path) -> None:
    program = "import time\nwhile True:\n    print('tick', flush=True)\n    time.sleep(0.03)\n"
    done = run(plain_workspace(tmp_path, program), "--timeout", "3s")
    assert done.code == 124, done.err
    assert "stopped: the time limit of 3s is over" in done.err


def test_a_failed_rank_ends_a_run_whose_others_print_without_end(tmp_path: Path) -> None:
    program = "import os, sys, time\nif os.environ['NODE_RANK'] == '0':\n    sys.exit(7)\n"
    program += "while True:\n    print('tick', flush=True)\n    time.sleep(0.03)\n"
    done = run(plain_workspace(tmp_path, program), "--timeout", "10m")
    assert done.code == 7, done.err
    assert "failed: rank 0 on worker 0 ended with exit code 7" in done.err


def test_lines_that_a_program_wrote_before_its_end_are_all_shown(tmp_path: Path) -> None:
    program = "for number in range(5000):\n    print('line', number)\n"
    done = run(plain_workspace(tmp_path, program, workers=1))
    assert done.code == 0, done.err
    assert done.out.count("[0] line ") == 5000
