"""The first process of a container next to the program: SIGTERM ends it; its exit code is the command's."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from gangplan.template import render_script
from tests.launch.test_graceful_end import _UNSHARE, pytestmark

__all__ = ["pytestmark"]
SCRIPT = render_script("launch/beside.sh.j2", {})
ENDLESS = ': >"$0"; while :; do sleep 0.1; done'
SAVING = 'trap "sleep 1; exit 7" TERM; : >"$0"; while :; do sleep 0.1; done'


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*_UNSHARE, *words], text=True, stderr=subprocess.PIPE)


def end(process: subprocess.Popen[str], seconds: float) -> int | None:
    """The exit code after SIGTERM to the first process, as the kubelet sends it; None if it goes on."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    subprocess.run(["kill", "-TERM", children[0]], check=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        process.kill()
        process.wait()


def wait_for(file: Path) -> None:
    until = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("script", [ENDLESS, SAVING])
def test_a_finished_run_is_not_held(script: str, tmp_path: Path) -> None:
    """By a program that handles no SIGTERM, either: the kernel would hand it none as first process."""
    file = tmp_path / "up"
    process = start("/bin/sh", "-c", SCRIPT, "metrics", "sh", "-c", script, str(file))
    wait_for(file)
    code = end(process, 5)
    assert code == (7 if script == SAVING else 128 + signal.SIGTERM)


def test_without_the_shell_it_would_be(tmp_path: Path) -> None:
    file = tmp_path / "up"
    process = start("sh", "-c", ENDLESS, str(file))
    wait_for(file)
    assert end(process, 2) is None


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_that_of_the_command(code: int) -> None:
    words = ["/bin/sh", "-c", SCRIPT, "setup-1", "sh", "-c", f"exit {code}"]
    assert subprocess.run([*_UNSHARE, *words], check=False).returncode == code
