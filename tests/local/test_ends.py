"""How a run ends while its programs go on: the time limit, a failed rank, signals."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.local.base import Done, plain_workspace, processes, run, start

# Prints without end, and ignores SIGTERM.
STUBBORN = """\
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"asked\\n"))
print("deaf", flush=True)
while True:
    print("tick", flush=True)
    time.sleep(0.02)
"""

# Starts a process that has neither the session nor the environment of the run.
ESCAPE = """\
import subprocess, sys, time
null = subprocess.DEVNULL
code = "import os, time; os.fork() and os._exit(0); os.setsid(); print(os.getpid(), flush=True); "
code += "os.close(1); time.sleep(3600)"
words = ["env", "-i", sys.executable, "-c", code]
escaped = subprocess.Popen(words, stdin=null, stdout=subprocess.PIPE, stderr=null)
sys.stdout.write(f"escaped as {escaped.stdout.readline().decode()}")
sys.stdout.flush()
"""

# The time limit is over when all three ranks have printed a line and the second has ended.
LATE = """\
from gangplan.local import play
def wait(programs, listener, heard, deadline):
    steps = []
    while len(steps) < 3 or programs[1].poll() is None:
        def hear(line):
            heard(line)
            steps.extend(["step"] * ("step" in line.text))
        play._pass_on_output_line(listener, hear)
    return False
play._wait_for_programs = wait
"""


def wait_for_line(process: subprocess.Popen[str], text: str) -> str:
    """Read the output of a run up to a line that has a text, and return the line."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"{text} was never printed")


@pytest.mark.parametrize("pause", ["time.sleep(0.03)", "pass"])
def test_the_time_limit_ends_a_run_that_prints_without_end(tmp_path: Path, pause: str) -> None:
    program = f"import time\nwhile True:\n    print('tick', flush=True)\n    {pause}\n"
    done = run(plain_workspace(tmp_path, program), "--timeout", "3s")
    assert done.code == 124, done.err
    assert "stopped: the time limit of 3s is over" in done.err


def test_after_the_time_limit_the_ranks_that_had_not_ended_are_shown(tmp_path: Path) -> None:
    program = "import os, time\nprint('step', os.environ['NODE_RANK'], flush=True)\n"
    program += "if os.environ['NODE_RANK'] != '1':\n    time.sleep(3600)\n"
    process, scratch = start(plain_workspace(tmp_path, program, workers=3), setup=LATE)
    done = Done(process, scratch, 120)
    assert done.code == 124, done.err
    end = done.err.partition("stopped: ")[2]
    assert end.splitlines()[1:] == [
        "  had not ended: ranks 0, 2",
        "  last lines of rank 0 on worker 0:",
        "    step 0",
        "  last lines of rank 2 on worker 2:",
        "    step 2",
    ]


def test_a_failed_rank_ends_a_run_whose_others_print_without_end(tmp_path: Path) -> None:
    program = "import os, sys, time\nif os.environ['NODE_RANK'] == '0':\n    sys.exit(7)\n"
    program += "while True:\n    print('tick', flush=True)\n    time.sleep(0.03)\n"
    done = run(plain_workspace(tmp_path, program), "--timeout", "10m")
    assert done.code == 7, done.err
    assert "failed: rank 0 on worker 0 ended with exit code 7" in done.err


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_nothing_is_left_when_gangplan_is_killed(tmp_path: Path) -> None:
    program = ESCAPE + "time.sleep(3600)\n"
    process, scratch = start(plain_workspace(tmp_path, program))
    escaped = [int(wait_for_line(process, "escaped").split()[-1]) for _ in range(2)]
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (processes(scratch) or list(scratch.iterdir())):
        time.sleep(0.1)
    assert processes(scratch) == []
    assert list(scratch.iterdir()) == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in escaped)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_a_process_with_a_session_and_environment_of_its_own_is_ended(tmp_path: Path) -> None:
    done = run(plain_workspace(tmp_path, ESCAPE + "sys.exit(3)\n"))
    assert done.code == 3, done.err
    escaped = re.findall(r"escaped as (\d+)", done.out)
    assert len(escaped) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in escaped)


@pytest.mark.parametrize("name", ["two words", "it's", 'a"b', "$HOME", "a;b", "a:b"])
def test_a_temporary_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    root = plain_workspace(tmp_path / "w", "open('new', 'w')\nprint('well')\n", workers=1)
    asked = tmp_path / name
    asked.mkdir()
    done = run(root, env={"TMPDIR": str(asked)})
    assert (done.code, "[0] well\n" in done.out) == (0, True), done.err
    assert list(asked.iterdir()) == []
    assert "the run's folder is in /" in done.err


def test_lines_that_a_program_wrote_before_its_end_are_all_shown(tmp_path: Path) -> None:
    program = "for number in range(5000):\n    print('line', number)\n"
    done = run(plain_workspace(tmp_path, program, workers=1))
    assert done.code == 0, done.err
    assert done.out.count("[0] line ") == 5000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_kills_programs_that_ignore_it_and_print(tmp_path: Path, number: signal.Signals) -> None:
    patient = "import gangplan.local.play; gangplan.local.play.PATIENCE_S = 1\n"
    process, scratch = start(plain_workspace(tmp_path, STUBBORN), setup=patient)
    wait_for_line(process, "deaf")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert processes(scratch) == []
    assert list(scratch.glob("gangplan-run-*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_kills_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """The ranks' ten seconds are an hour here, so that only the second signal can end the run."""
    patient = "import gangplan.local.play; gangplan.local.play.PATIENCE_S = 3600\n"
    process, scratch = start(plain_workspace(tmp_path, STUBBORN), setup=patient)
    wait_for_line(process, "deaf")
    process.send_signal(number)
    wait_for_line(process, "asked")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert processes(scratch) == []
    assert list(scratch.glob("gangplan-run-*")) == []
