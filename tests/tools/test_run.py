"""Running other programs: what they see, and the error for each way to fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import ToolError
from gangplan.tools.run import run_program
from tests.signals import LISTENING
from tests.tools.programs import fake


def gone(pid: int) -> bool:
    """Return whether a process ends within ten seconds (a zombie has ended)."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            if not Path("/proc/self/stat").exists():
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    return True
                time.sleep(0.02)
                continue
            return True
        time.sleep(0.02)
    return False


def pids(folder: Path) -> list[int]:
    """Return the process ids that the hanging fake has recorded."""
    for _ in range(500):
        if (folder / "pids").exists():
            return [int(word) for word in (folder / "pids").read_text().split()]
        time.sleep(0.01)
    raise AssertionError("the fake never started")


@contextmanager
def ended(folder: Path) -> Iterator[list[int]]:
    """Yield the process ids of the hanging fake, which ignores polite signals, and kill them in the end."""
    started = pids(folder)
    try:
        yield started
    finally:
        for pid in started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_output_and_code_are_returned(tmp_path: Path) -> None:
    program = fake("replay", "kustomize", tmp_path, stdout="kind: Job\n", stderr="a warning", code="1")
    done = run_program([program], timeout_s=10, ok=(0, 1))
    assert (done.stdout, done.stderr, done.returncode) == (b"kind: Job\n", "a warning", 1)


def test_the_environment_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/me/.kube/config")
    monkeypatch.setenv("GODEBUG", "http2client=0")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    seen = run_program(
        [sys.executable, "-c", "import os; print(*os.environ)"], timeout_s=10, env={"GOGC": "400"}
    )
    names = set(seen.stdout.decode().split())
    assert {"PATH", "LC_ALL", "GOGC"} <= names
    assert not {"KUBECONFIG", "GODEBUG"} & names


def test_standard_input_is_never_ours() -> None:
    script = "from gangplan.tools.run import run_program; print(run_program(['cat'], timeout_s=10).stdout)"
    done = subprocess.run([sys.executable, "-c", script], input=b"secret", stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"b''\n"


def test_input_is_passed_completely() -> None:
    text = b"x" * (1 << 20)
    assert run_program(["cat"], input=text, timeout_s=10).stdout == text


def test_unread_input_is_not_an_error(tmp_path: Path) -> None:
    program = fake("replay", "kustomize", tmp_path, stdout="done")
    assert run_program([program], input=b"x" * (1 << 20), timeout_s=10).stdout == b"done"


def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no-such-program is not on PATH") as caught:
        run_program(["no-such-program"], timeout_s=10)
    assert caught.value.help
    with pytest.raises(ToolError, match="kustomize was not found"):
        run_program([tmp_path / "kustomize"], timeout_s=10)


def test_a_missing_folder_is_not_reported_as_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no such folder"):
        run_program(["cat"], timeout_s=10, cwd=tmp_path / "absent")


def test_a_file_that_is_not_executable_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "kustomize"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(ToolError, match="is not executable") as caught:
        run_program([program], timeout_s=10)
    assert caught.value.help == f"chmod +x {program}"


def test_a_file_that_is_not_a_program_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "kustomize"
    program.write_bytes(b"\x7fELF but of another machine")
    program.chmod(0o755)
    with pytest.raises(ToolError, match="not a program for this machine"):
        run_program([program], timeout_s=10)


def test_an_unexpected_exit_code_is_an_error(tmp_path: Path) -> None:
    program = fake("replay", "kustomize", tmp_path, stderr="\nError: no\nmore\n", code="3")
    with pytest.raises(ToolError, match="kustomize failed with exit code 3: Error: no; more"):
        run_program([program], timeout_s=10)


def test_a_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    program = fake("hang", "kustomize", tmp_path)
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"did not end within 0.5 s and was stopped"):
        run_program([program, "build"], timeout_s=0.5)
    with ended(tmp_path) as left:
        assert time.monotonic() - started < 60, "the program sleeps for minutes"
        assert all(gone(pid) for pid in left)


@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN])
def test_an_interrupt_ends_the_whole_group(tmp_path: Path, inherited: signal.Handlers) -> None:
    """This is true even if the tests run in the background of a shell and inherited an ignored interrupt."""
    program = fake("hang", "kustomize", tmp_path)
    call = f"run_program([{str(program)!r}], timeout_s=60)"
    script = f"{LISTENING}from gangplan.tools.run import run_program; {call}"
    before = signal.signal(signal.SIGINT, inherited)
    try:
        ours = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with ours, ended(tmp_path) as started:
        ours.send_signal(signal.SIGINT)
        _, stderr = ours.communicate(timeout=60)
        assert b"KeyboardInterrupt" in stderr
        assert all(gone(pid) for pid in started)


def test_an_interrupt_during_the_start_ends_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake("hang", "kustomize", tmp_path)

    class Slow(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.extend(pids(tmp_path))
            signal.raise_signal(signal.SIGINT)

    started: list[int] = []
    monkeypatch.setattr(subprocess, "Popen", Slow)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_program([program], timeout_s=60)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert started
    with ended(tmp_path):
        assert all(gone(pid) for pid in started)


def test_a_program_killed_by_a_signal_is_reported() -> None:
    script = "import os; os.kill(os.getpid(), 9)"
    with pytest.raises(ToolError, match="was killed by SIGKILL") as caught:
        run_program([sys.executable, "-c", script], timeout_s=10)
    assert caught.value.help == "memory may have run out"


def test_a_go_panic_is_a_crash_even_if_the_code_is_expected(tmp_path: Path) -> None:
    program = fake("crash", "kubeconform", tmp_path)
    with pytest.raises(ToolError, match="kubeconform crashed: panic: interface conversion") as caught:
        run_program([program], timeout_s=10, ok=range(256))
    assert "bug of kubeconform" in (caught.value.help or "")


def test_the_word_panic_alone_is_not_a_crash(tmp_path: Path) -> None:
    program = fake("replay", "kustomize", tmp_path, stderr="panic: don't", code="2")
    assert run_program([program], timeout_s=10, ok=(2,)).returncode == 2


def test_a_slow_reader_gets_all_of_its_input() -> None:
    """The input is more than a pipe holds, and the program takes longer than the first look at its output."""
    program = "import sys, time; time.sleep(0.6); sys.stdout.write(str(len(sys.stdin.buffer.read())))"
    done = run_program([sys.executable, "-c", program], input=b"x" * 1_000_000, timeout_s=20)
    assert done.stdout == b"1000000"
