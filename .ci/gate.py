"""Run the stages of CI in a fixed environment, and always end with one line that gives the result and reason.

A stage is a row of a table: a command, its time limit, and patterns of the lines that say why it failed. Only
a lack of disk space or a failed set-up ends a run early; all other stages run, and all failures are listed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
#: MiB that a run needs: twice the size of packages, wheels, tools and what tests write.
ROOM_MIB = int(os.environ.get("GANGPLAN_CI_ROOM_MIB", "2000"))
#: The longest reason in the last line, in characters.
_SHOWN = 400


@dataclass(frozen=True)
class Stage:
    """One command of a run."""

    name: str
    limit_s: int
    command: tuple[str, ...]
    why: str = r"(?!)"  # lines that say why it failed; a group is the part to show
    must: bool = False  # no later stage works without it
    notes: str = r"(?!)"  # lines to show in the last line even if it passed


#: The error of make itself, for a broken Makefile or a stage without another reason.
_MAKE = r"(?:make: |Makefile:\d+: )\*\*\* (.*)"
_SET_UP = Stage("set-up", 1500, ("make", "ready"), r"set-up: (.*)", must=True)
_TESTS = r"((?:failed twice|failed|no second try): .*)"
_UNSTEADY = r"unsteady: (.*)"

GATE = (
    _SET_UP,
    Stage("demo", 300, ("make", "demo"), r"(?:error|fatal): (.*)"),
    Stage("static", 400, ("make", "--keep-going", "static"), r"make check: (.*)"),
    Stage("tests", 2900, ("make", "test"), _TESTS, notes=_UNSTEADY),
)

_HOUR_S = 3600
NIGHTLY = (
    *GATE,
    Stage("lab", 2 * _HOUR_S, ("make", "lab", "PROFILE=all"), r"lab: (.*failed.*)"),
    Stage("e2e", 4 * _HOUR_S, ("make", "e2e-matrix"), r"((?:FAILED|ERROR) .*)"),
    Stage("reality", 2 * _HOUR_S, ("make", "reality"), r"((?:FAILED|ERROR) .*)"),
    Stage("fidelity", 4 * _HOUR_S, ("make", "fidelity")),
    Stage("linters", _HOUR_S, ("make", "linters"), r"((?:FAILED|ERROR) .*)"),
    Stage("fuzz", 2 * _HOUR_S, ("make", "fuzz")),
)
RUNS: Mapping[str, tuple[Stage, ...]] = {"gate": GATE, "nightly": NIGHTLY}

#: Variables by which a user's settings or an outer make could change a result. Those of the index are kept.
_UNSET = re.compile(
    r"MAKEFLAGS|MAKELEVEL|MFLAGS|PYTHON(?:PATH|HOME|STARTUP|HASHSEED|DONTWRITEBYTECODE|WARNINGS|OPTIMIZE)"
    r"|PYTEST_\w+|HYPOTHESIS_\w+|PIP_(?:USER|TARGET|PREFIX|CONSTRAINT|NO_INDEX|REQUIRE_VIRTUALENV|REQUIRE_HASHES)"
    r"|GIT_(?!SSL_)\w+|GANGPLAN_(?!OFFLINE|LAB_|CI_)\w+|VIRTUAL_ENV|LANG|LANGUAGE|LC_\w+|COLUMNS|BASH_ENV|ENV"
)
_SET = {
    "CI": "true",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Ended(BaseException):
    """A signal asked us to end; the last line is still printed."""


@dataclass
class Run:
    """A run of stages: its failures, and the notes for the last line."""

    name: str
    temp: Path
    began: float = field(default_factory=time.monotonic)
    failed: dict[str, str] = field(default_factory=dict)  # stage -> why
    notes: list[str] = field(default_factory=list)
    stage: str = "start"

    @property
    def seconds(self) -> int:
        """Seconds since the start."""
        return int(time.monotonic() - self.began)

    def last_line(self) -> str:
        """Return the line that says how the run ended, and why."""
        if self.failed:
            why = "; ".join(f"{stage} ({reason})" for stage, reason in self.failed.items())
            return f"ci: FAILED in {why[: _SHOWN * 2]} after {self.seconds} s"
        unsteady = f"; {len(self.notes)} unsteady: {', '.join(self.notes)}" if self.notes else ""
        return f"ci: passed in {self.seconds} s{unsteady}"

    def do(self, stage: Stage) -> bool:
        """Run a stage, and return whether the next one may run."""
        self.stage = stage.name
        print(f"\n== {stage.name} ({self.seconds} s)", flush=True)
        log = self.temp / f"{stage.name}.log"
        code = _run(stage, log, environment(self.temp))
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        self.notes += told(lines, stage.notes)
        if code:
            late = [f"took longer than {stage.limit_s} s"] if code == 124 else []
            why = told(lines, stage.why) or told(lines, _MAKE) or told(lines, r"(.*\S)")[-1:]
            self.failed[stage.name] = ", ".join([*late, *why])[:_SHOWN] or f"exit code {code}"
        return not (code and stage.must)


def told(lines: list[str], pattern: str) -> list[str]:
    """Return the parts of lines that match a pattern, each once, in order."""
    found = (re.match(pattern, line) for line in lines)
    return list(
        dict.fromkeys((match[1] if match.re.groups else match[0]).strip() for match in found if match)
    )


def _run(stage: Stage, log: Path, env: Mapping[str, str]) -> int:
    """Run a command, show and log its output, and return its exit code; 124, as timeout(1), if it is late."""
    process = None
    try:
        with log.open("wb") as kept, _holding():
            process = subprocess.Popen(
                stage.command, cwd=ROOT, env=dict(env), stdin=subprocess.DEVNULL,
                stdout=kept, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        with log.open("rb") as reader:
            deadline = time.monotonic() + stage.limit_s
            while process.poll() is None and time.monotonic() < deadline:
                _show(reader.read())
                time.sleep(0.2)
            code = process.poll()
            _end(process)
            _show(reader.read())
    finally:
        if process:
            _end(process)
    return 124 if code is None else code


@contextlib.contextmanager
def _holding() -> Iterator[None]:
    """Delay signals: one that arrives while a program starts would leave it running."""
    came: list[int] = []
    ours = {number: signal.signal(number, lambda number, _: came.append(number)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _show(text: bytes) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End all processes of a stage, with SIGTERM first."""
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            if number == signal.SIGTERM:
                time.sleep(0.1)


def environment(temp: Path) -> dict[str, str]:
    """Return the environment of stages: the same on every machine, except for the package index."""
    kept = {name: value for name, value in os.environ.items() if not _UNSET.fullmatch(name)}
    return {**kept, **_SET, "TMPDIR": str(temp)}


def cache() -> Path:
    """Return the folder that keeps wheels and tools between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gangplan"


def facts(env: Mapping[str, str]) -> str:
    """Return a line about the commit and the machine, to explain failures."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    kept = {"wheels": "wheels/all-*", "tools": "tools/*", "mpis": "reality/*", "lab": "lab/*/bin"}
    there = [f"{name} {sum(map(Path.is_dir, cache().glob(pattern)))}" for name, pattern in kept.items()]
    return (
        f"ci: commit {commit.stdout.strip() or 'unknown'}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {free_mib(ROOT)} MiB free, "
        f"kept: {', '.join(there)}"
    )


def free_mib(folder: Path) -> int:
    """Return the free MiB on the disk of a folder, which need not exist."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free >> 20


def room(run: Run) -> bool:
    """Return whether the disk has room, after removing leftovers and wheels from the cache if necessary."""
    places = {ROOT, run.temp, cache()}
    if min(map(free_mib, places)) < ROOM_MIB:
        for pattern in ("lab/.building-*", "wheels/.*", "wheels/*"):
            for left in cache().glob(pattern):
                shutil.rmtree(left, ignore_errors=True)
    short = [
        f"{free_mib(place)} MiB are free at {place}" for place in sorted(places) if free_mib(place) < ROOM_MIB
    ]
    if short:
        run.failed["room"] = f"{short[0]}, and {ROOM_MIB} are needed; this is no fault of the change"
    return not short


@contextlib.contextmanager
def temporary() -> Iterator[Path]:
    """Yield a temporary folder for this run, whose name a shell reads as one word."""
    base = os.environ.get("TMPDIR") or "/tmp"
    usable = re.fullmatch(r"[\w./-]+", base) and os.access(base, os.W_OK)
    folder = Path(tempfile.mkdtemp(prefix="ci-", dir=base if usable else "/tmp"))
    folder.chmod(0o1777)  # like /tmp: some tests try what another user may do
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_on(number: int, _: FrameType | None) -> None:
    raise Ended(signal.Signals(number).name)


def main(name: str, stages: tuple[Stage, ...]) -> int:
    """Run stages, and return 0 if all passed, else 1."""
    os.umask(0o022)
    for number in SIGNALS:
        signal.signal(number, _end_on)
    with temporary() as temp:
        run = Run(name, temp)
        try:
            print(facts(environment(temp)), flush=True)
            if room(run):
                _each(run, stages)
        except Ended as signalled:
            run.failed[run.stage] = f"ended by {signalled}"
        except Exception as error:  # noqa: BLE001  # whatever it is, the last line names it
            run.failed[run.stage] = f"the gate itself broke: {error!r}"
        print(f"\n{run.last_line()}", flush=True)
        return 1 if run.failed else 0


def _each(run: Run, stages: tuple[Stage, ...]) -> None:
    going: Callable[[Stage], bool] = run.do
    all(going(stage) for stage in stages)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], RUNS[sys.argv[1]]))
