"""Run the processes of a run on this machine: start, output, time limit, and clean-up."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty

from gangplan.local.output import OutputHistory, OutputLine, PipeListener
from gangplan.local.pods import LocalPods
from gangplan.local.stage import LocalStage
from gangplan.records import dataclass
from gangplan.tools.lasting import (
    ProgramProcess,
    end_long_running_subprocesses,
    send_signal,
    start_long_running_subprocess,
)

# How long ranks may take to end after SIGTERM here; on the cluster it is the spec's grace period.
PATIENCE_S = 10.0
# How long the others have to fail by themselves and report why, after a worker has failed.
_HOLD_S = 3.0
# How long to wait for lines that processes wrote before they ended.
_DRAIN_S = 2.0
# Hydra's exit code if a signal ended a rank (MPICH 5.0.2; sometimes it is the signal's number), or if a proxy ends before it has reported how its ranks
# ended, as on a busy machine (seen with Intel MPI 2021.18).
_LOST = 255
OVER_TIME = 124  # the exit code of GNU coreutils' `timeout`


@dataclass(frozen=True, slots=True)
class Failure:
    """The first rank that failed: its number, its exit code (negative: a signal), and its host."""

    rank: int | None
    code: int
    host: str


@dataclass(frozen=True, slots=True)
class LocalRunResult:
    """How a run ended: exit code, output, first failure; `is_over_time` if the time limit stopped it.

    `late` are the ranks that had not ended at the time limit.
    """

    code: int
    story: OutputHistory
    failure: Failure | None
    is_over_time: bool
    is_clean: bool
    late: tuple[int, ...] = ()


def run_local_pods(
    cast: LocalPods,
    stage: LocalStage,
    limit_s: float,
    secrets: tuple[str, ...],
    show: Callable[[OutputLine], None],
) -> LocalRunResult:
    """Run all pods and read their output; no process is left when this returns or raises.

    On an interrupt (or SIGTERM, as the command line handles it), ranks get SIGTERM and `PATIENCE_S` to end,
    and KeyboardInterrupt is raised again. A second interrupt ends them at once.
    """
    players = [cast.launcher] if cast.launcher else list(cast.pods)
    listener, story = PipeListener(secrets, stage.token), OutputHistory()
    programs: list[ProgramProcess] = []
    is_over_time, is_clean = False, True
    late: tuple[int, ...] = ()

    def heard(line: OutputLine) -> None:
        story.add(line)
        show(line)

    try:
        for pod in players:
            words = [
                *stage.aside("keep.py"),
                *stage.aside("hop.py"),
                "--here",
                pod.name,
                *(stage.places.text(word) for word in pod.argv),
            ]
            one = start_long_running_subprocess(words, cwd=stage.places.folder, env=stage.env(pod))
            programs.append(one)
            assert one.stdout is not None
            assert one.stderr is not None
            listener.hear(one.stdout, pod.name, False)
            listener.hear(one.stderr, pod.name, True)
        is_over_time = not _wait_for_programs(programs, listener, heard, time.monotonic() + limit_s)
        if is_over_time:
            late = _list_local_ranks_still_running(stage)
            _ask_local_ranks_to_end(stage, listener, heard)
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            _ask_local_ranks_to_end(stage, listener, heard)
        raise
    finally:
        is_clean = _end_all_processes(programs, stage)
    _drain_output_until_closed(listener, heard, is_clean)
    codes = [one.returncode for one in programs]
    code = OVER_TIME if is_over_time else _compute_run_exit_code(codes)
    failed = failure(stage) if code else None
    return LocalRunResult(passed_on(code, failed), story, failed, is_over_time, is_clean, late)


def _end_all_processes(programs: list[ProgramProcess], stage: LocalStage) -> bool:
    """End all processes, however often the user interrupts; return whether all are gone."""
    while True:
        with suppress(KeyboardInterrupt):
            return end_long_running_subprocesses(programs, stage.mark)


def _wait_for_programs(
    programs: list[ProgramProcess],
    listener: PipeListener,
    heard: Callable[[OutputLine], None],
    deadline: float,
) -> bool:
    """Pass lines on until all programs have ended or one has failed for a while; False at the deadline."""
    while True:
        _pass_on_output_line(listener, heard)
        codes = [one.poll() for one in programs]
        if None not in codes:
            return True
        now = time.monotonic()
        if any(codes):
            deadline = min(deadline, now + _HOLD_S)
        if now >= deadline:
            return any(codes)


def _pass_on_output_line(
    listener: PipeListener, heard: Callable[[OutputLine], None], wait_s: float = 0.1
) -> bool:
    """Pass one line on if one arrives within `wait_s`; return whether one did."""
    try:
        line = listener.queue.get(timeout=wait_s)
    except Empty:
        return False
    if line is None:
        listener.open -= 1
    else:
        heard(line)
    return True


def _drain_output_until_closed(
    listener: PipeListener, heard: Callable[[OutputLine], None], is_clean: bool
) -> None:
    """Pass on the lines that pipes still hold.

    If all processes are gone, they hold an end: wait for it as long as lines come, however slow the reader is.
    """
    deadline = time.monotonic() + _DRAIN_S
    while listener.open and time.monotonic() < deadline:
        if _pass_on_output_line(listener, heard) and is_clean:
            deadline = time.monotonic() + _DRAIN_S


def _list_local_ranks_still_running(stage: LocalStage) -> tuple[int, ...]:
    """Return the ranks that have started and not ended."""
    names = (
        path.stem for path in (stage.root / "ranks").glob("*.pid") if not path.with_suffix(".code").exists()
    )
    return tuple(sorted(int(name) for name in names if name.isdigit()))


def _ask_local_ranks_to_end(
    stage: LocalStage, listener: PipeListener, heard: Callable[[OutputLine], None]
) -> None:
    """Ask the ranks to end, and give them time to save."""
    folder = stage.root / "ranks"
    numbers = {path.stem: path for path in folder.glob("*.pid")}
    send_signal([int(path.read_text()) for path in numbers.values()], signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if all((folder / f"{name}.code").exists() for name in numbers):
            break
        _pass_on_output_line(listener, heard)
    _drain_pending_output(listener, heard)


def _drain_pending_output(listener: PipeListener, heard: Callable[[OutputLine], None]) -> None:
    """Pass on what ranks wrote before they ended; others may print without end."""
    deadline = time.monotonic() + _DRAIN_S
    while time.monotonic() < deadline and _pass_on_output_line(listener, heard, 0.05):
        pass


def _compute_run_exit_code(codes: list[int]) -> int:
    """Return the exit code of a run: that of the first program that failed by itself."""
    failed = [code for code in codes if code]
    own = [code for code in failed if code not in (-signal.SIGKILL, -signal.SIGTERM)] or failed
    return _as_exit_code(own[0]) if own else 0


def passed_on(code: int, failed: Failure | None) -> int:
    """Return the exit code of a run: `code`, or that of the failed rank if its programs lost it."""
    if failed is None or code not in (_LOST, -failed.code):
        return code
    return _as_exit_code(failed.code)


def _as_exit_code(code: int) -> int:
    """Return a code as shells give it, 128 and more for a signal."""
    return code if code >= 0 else 128 - code


def failure(stage: LocalStage) -> Failure | None:
    """Return the first rank that failed, preferably not by SIGTERM or SIGKILL; None if no rank failed."""
    found = []
    for path in (stage.root / "ranks").glob("*.code"):
        code, _, host = path.read_text().partition(" ")
        if int(code):
            number = int(path.stem) if path.stem.isdigit() else None
            told = int(code) in (-signal.SIGTERM, -signal.SIGKILL)
            found.append(((told, path.stat().st_mtime_ns), Failure(number, int(code), host)))
    return min(found, key=lambda one: one[0])[1] if found else None
