"""Run another program and return its output, or raise a ToolError that names it.

Only this module and `lasting.py` may import `subprocess` (an import contract checks it), so that timeouts,
missing programs and crashes are distinguished in one place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from gangplan.errors import ToolError
from gangplan.records import dataclass

#: The variables of our environment that a program gets. Any other (KUBECONFIG, GIT_*, proxies, GODEBUG...)
#: could change its output from one machine to the next; callers add what they need by name.
_KEPT = ("PATH", "HOME", "TMPDIR")

#: Messages are matched and shown, so they must not be translated.
_LOCALE = {"LC_ALL": "C", "LANG": "C"}

#: Sends every request of a Go program to a closed port of this machine: nothing may depend on the network.
NO_NETWORK: Mapping[str, str] = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}

#: For short-lived Go programs that work on a few megabytes: their heap may grow fivefold before garbage is
#: collected (twofold by default), which takes a sixth of kubeconform's time.
GO_ENVIRONMENT: Mapping[str, str] = {**NO_NETWORK, "GOGC": "400"}

#: Seconds between asking a process group to end and killing it: enough for `go` to remove its work folder.
_GRACE_S = 0.5

#: The signals that Ctrl-C, a supervisor and a closed terminal send.
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Bytes that a program may write: kubeconform's verdicts on ten thousand runs are a hundredth of that.
_MOST_BYTES = 1 << 30
#: Seconds between two checks of how much it has written.
_LOOK_S = 0.25

#: The output of a Go program that crashes: exit 2, one of these lines, then the stack of each goroutine.
_PANIC = re.compile(r"^(?:panic|fatal error|runtime error): .*$|^unexpected fault address.*$", re.MULTILINE)
_GOROUTINE = re.compile(r"^goroutine \d+.*\[", re.MULTILINE)


@dataclass(frozen=True)
class CompletedProgram:
    """The output and exit code of a program that ended by itself."""

    stdout: bytes
    stderr: str
    returncode: int


def run_program(
    argv: Sequence[str | Path],
    *,
    input: bytes | None = None,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    ok: Container[int] = (0,),
) -> CompletedProgram:
    """Run a program to its end in an environment of its own.

    It sees PATH, HOME, TMPDIR, the C locale and `env`; its standard input is `input` or empty, never ours.
    Its whole process group is ended after `timeout_s` seconds or if we are interrupted.
    Raises ToolError if it is missing, cannot be started, crashes, is killed, takes or writes too much, or
    exits with a code outside `ok`.
    """
    command = [str(part) for part in argv]
    name = Path(command[0]).name
    process: subprocess.Popen[bytes] | None = None
    with _open_subprocess_stdin(input) as stdin, contextlib.ExitStack() as open_pipes:
        try:
            with _delay_interrupts():
                process = open_pipes.enter_context(
                    _start_subprocess_session(command, name, stdin=stdin, cwd=cwd, env=env)
                )
            stdout, raw = _collect_subprocess_output(process, name, timeout_s)
        except BaseException as error:
            # An interrupt reaches only us: the program has its own session, and would go on.
            if process is not None:
                _end_subprocess_group(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise ToolError(
                f"{_format_pasteable_subprocess_command(command)} did not end within {timeout_s:g} s"
                " and was stopped",
                f"try it by hand: {_format_pasteable_subprocess_command(command)}",
            ) from None
    done = CompletedProgram(stdout, raw.decode("utf-8", "replace"), process.returncode)
    _check_subprocess_exit_status(done, command, name, ok)
    return done


@contextlib.contextmanager
def _delay_interrupts() -> Iterator[None]:
    """Delay interrupts until the end: one between a program's start and the assignment would let it go on.

    Signals that are ignored, or that end us without a handler, keep their effect. Outside the main thread
    nothing is delayed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _INTERRUPTS}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in ours:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


@contextlib.contextmanager
def _open_subprocess_stdin(data: bytes | None) -> Iterator[int | IO[bytes]]:
    """Yield the standard input of a program, as a file.

    With a time limit, a second call of `communicate` no longer feeds a pipe (CPython 3.11,
    subprocess.Popen._communicate: `if self.stdin and input`).
    """
    if data is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def _collect_subprocess_output(
    process: subprocess.Popen[bytes], name: str, timeout_s: float
) -> tuple[bytes, bytes]:
    """Return everything that a program writes until it ends.

    Raises TimeoutExpired, and ToolError if it writes too much.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left = deadline - time.monotonic()
        try:
            return process.communicate(timeout=min(left, _LOOK_S))
        except subprocess.TimeoutExpired as so_far:  # the next call returns the output so far, too
            if len(so_far.output or b"") + len(so_far.stderr or b"") > _MOST_BYTES:
                raise ToolError(f"{name} wrote more than {_MOST_BYTES >> 20} MiB and was stopped") from None
            if left <= _LOOK_S:
                raise


def _start_subprocess_session(
    command: list[str],
    name: str,
    *,
    stdin: int | IO[bytes],
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> subprocess.Popen[bytes]:
    """Start a program as leader of a new session. Raises ToolError with the reason if that fails."""
    if cwd is not None and not cwd.is_dir():
        # Popen raises the same FileNotFoundError for a missing program.
        raise ToolError(f"{name} cannot run in {cwd}: no such folder")
    try:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=_build_program_environment(env),
            start_new_session=True,
        )
    except FileNotFoundError:
        where = "was not found" if os.sep in command[0] else "is not on PATH"
        raise ToolError(
            f"{command[0]} {where}", f"`gangplan tools list` shows which programs are used; install {name}"
        ) from None
    except PermissionError:
        raise ToolError(f"{command[0]} is not executable", f"chmod +x {command[0]}") from None
    except OSError as error:
        why = "not a program for this machine" if error.errno == errno.ENOEXEC else error.strerror
        raise ToolError(f"{command[0]} cannot be started: {why}") from error


def _build_program_environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **_LOCALE, **(extra or {})}


def _end_subprocess_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group, with SIGTERM first, and close the pipes, which others may hold open."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, ending)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _check_subprocess_exit_status(
    done: CompletedProgram, command: list[str], name: str, ok: Container[int]
) -> None:
    """Raise ToolError unless the program ended by itself with an expected exit code."""
    if done.returncode < 0:
        ending = _format_signal_name(-done.returncode)
        hint = "memory may have run out" if ending == "SIGKILL" else None
        raise ToolError(f"{name} was killed by {ending}", hint)
    panic = _PANIC.search(done.stderr)
    if done.returncode == 2 and panic and _GOROUTINE.search(done.stderr):
        raise ToolError(
            f"{name} crashed: {panic.group()}",
            f"this is a bug of {name} or of what it was given; to see all of it:"
            f" {_format_pasteable_subprocess_command(command)}",
        )
    if done.returncode not in ok:
        raise ToolError(f"{name} failed with exit code {done.returncode}: {join_first_lines(done.stderr)}")


def _format_signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _format_pasteable_subprocess_command(command: list[str]) -> str:
    """Return a command in a form to paste, shortened if it is too long to read."""
    import shlex

    text = shlex.join(command)
    return text if len(text) <= 200 else text[:200] + " ..."


def join_first_lines(text: str, count: int = 3) -> str:
    """Return the first lines that are not blank, joined by semicolons; never an empty string."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[:count])[:500] or "it said nothing"
