"""Make `.venv` from the pinned packages: `run` for running gangplan (make demo), `all` for tests, too.

Wheels are cached by pins and Python, and installed without a network. So only the first set-up of a machine
needs a package index, and a refused request costs a wait, not a failure.
The last line of a failure starts with `set-up:` and names its cause: the pins, the index or the machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

PINS = {"run": ("constraints-run.txt",), "all": ("constraints.txt", "constraints-alone.txt")}
#: Packages in this file are installed without their dependencies, for the reason that the file gives.
ALONE = "constraints-alone.txt"
OLDEST = (3, 11)

#: Seconds before each try: an index that restarts or limits requests answers again within minutes.
WAITS_S = (0, 5, 20, 60, 120)
#: Seconds for one call of pip: 70 MB at 1 Mbit/s. If it takes longer, there is no second try.
FETCH_S = 600
#: Seconds that pip waits for a silent index: with RETRIES and WAITS_S, all tries end before the gate's limit.
ANSWER_S = 30
#: How often pip itself tries again within seconds.
RETRIES = 3
#: Cached sets of wheels for each name in PINS: for this branch and another one.
KEPT = 2

#: Errors of pip for which a retry cannot help: the pins are wrong, or the disk is full.
_FINAL = re.compile(
    r"Invalid requirement|DO NOT MATCH THE HASHES|pinned with =="
    r"|Hashes are required|from versions: [^n]|Errno 28"
)
_CONFLICT = re.compile(r"<{7}|={7}|>{7}|\|{7}")
_PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?==[\w.!+-]+( ; [^\\]+)?$")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}$")


class SetupError(Exception):
    """The environment cannot be made; the message is the last line that people see."""


def problems(name: str, text: str) -> list[str]:
    """Return what in a pins file is not a package with one version and hashes, as `file:line: what`."""
    found, open_pin = [], ""
    for number, raw in enumerate([*text.splitlines(), "end==0"], 1):
        line = raw.strip().removesuffix("\\").strip()
        where = f"{name}:{number}"
        if _HASH.match(line):
            open_pin = ""
        elif _CONFLICT.match(line):
            found.append(f"{where}: a conflict mark of Git: merge the file again, or run: make constraints")
        elif _PINNED.match(line):
            if open_pin:
                found.append(open_pin)
            open_pin = f"{where}: {line.partition(' ')[0]} has no hash; run: make constraints"
        elif line and not line.startswith("#"):
            found.append(f"{where}: '{line[:60]}' is no package with one version; run: make constraints")
    return found


def wheels(pins: str, root: Path) -> Path:
    """Return the folder of wheels for a set of pins and this Python, in `.venv` if there can be no cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gangplan/wheels"
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError:
        base = root / ".venv/wheels"
    for_whom = (sys.implementation.cache_tag, sysconfig.get_platform())
    digest = hashlib.sha256(repr(for_whom).encode())
    for name in PINS[pins]:
        digest.update((root / name).read_bytes())
    return base / f"{pins}-{digest.hexdigest()[:12]}"


def fetch(python: Path, pins: str, root: Path, folder: Path) -> None:
    """Download the wheels of a set of pins; the folder appears whole or not at all. Raises SetupError."""
    part = folder.with_name(f".{folder.name}.{os.getpid()}")
    part.mkdir(parents=True, exist_ok=True)
    try:
        for name in PINS[pins]:
            deps = ["--no-deps"] if name == ALONE else []
            _try(python, ["download", "--require-hashes", *deps, "--dest", str(part), "-r", name], root)
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another make was faster
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    for old in _others(folder, pins)[KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


def _others(folder: Path, pins: str) -> list[Path]:
    """Return the other cached sets of the same name, the newest first."""
    found = [path for path in folder.parent.glob(f"{pins}-*") if path != folder]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _try(python: Path, words: Sequence[str], root: Path) -> None:
    """Run pip until it succeeds or a retry cannot help. Raises SetupError."""
    said = ""
    for number, wait in enumerate(WAITS_S, 1):
        if wait:
            print(f"try {number} of {len(WAITS_S)} in {wait} s", file=sys.stderr, flush=True)
            time.sleep(wait)
        try:
            code, said = _pip(
                python, ["--timeout", str(ANSWER_S), "--retries", str(RETRIES), *words], root, FETCH_S
            )
        except subprocess.TimeoutExpired:
            raise SetupError(
                f"the package index gave no answer in {FETCH_S} s; the pins are not to blame"
            ) from None
        if code == 0:
            return
        if _FINAL.search(said):
            raise SetupError(f"pip refuses {words[-1]}: {_reason(said)}")
    raise SetupError(
        f"the package index failed {len(WAITS_S)} times; the pins are not to blame: {_reason(said)}"
    )


def _reason(said: str) -> str:
    """Return the most informative line of pip's output."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it said nothing"])[0][:300]


def _pip(python: Path, words: Sequence[str], root: Path, limit_s: float) -> tuple[int, str]:
    """Run pip, show its output, and return its exit code and output."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    done = subprocess.run(
        command,
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit_s,
        check=False,
    )
    sys.stderr.write(done.stdout)
    return done.returncode, done.stdout


def virtual(root: Path) -> Path:
    """Return the Python of `.venv`, which is made if it is missing or incomplete. Raises SetupError."""
    python = root / ".venv/bin/python"
    if python.exists():
        probe = subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True, check=False)
        if probe.returncode == 0:
            return python
        print(".venv has no working pip: made anew", file=sys.stderr, flush=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(root / ".venv")],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        free = shutil.disk_usage(root).free >> 20
        raise SetupError(f"python -m venv failed ({free} MiB are free): {_reason(made.stdout + made.stderr)}")
    return python


def install(python: Path, pins: str, root: Path, folder: Path) -> None:
    """Install cached wheels, verified by hash, and gangplan itself, without network. Raises SetupError."""
    offline = ["install", "--no-index", "--find-links", str(folder)]
    for name in PINS[pins]:
        deps = ["--no-deps"] if name == ALONE else []
        code, said = _pip(python, [*offline, "--require-hashes", *deps, "-r", name], root, FETCH_S)
        if code:
            raise SetupError(f"the kept wheels cannot be installed: {_reason(said)}")
    code, said = _pip(python, [*offline, "--no-deps", "--no-build-isolation", "-e", "."], root, FETCH_S)
    if code:
        raise SetupError(f"gangplan itself cannot be installed: {_reason(said)}")


def make(pins: str, root: Path) -> None:
    """Make the environment. Raises SetupError."""
    wrong = [
        line for name in PINS[pins] for line in problems(name, (root / name).read_text(encoding="utf-8"))
    ]
    if wrong:
        raise SetupError("\n".join(["the pins are not whole", *wrong]))
    import tomllib  # Python 3.11 and later, which main() has checked

    try:
        tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except ValueError as error:
        raise SetupError(f"pyproject.toml cannot be read: {error}") from None
    python, folder = virtual(root), wheels(pins, root)
    was_kept = folder.is_dir()
    if not was_kept:
        fetch(python, pins, root, folder)
    try:
        install(python, pins, root, folder)
    except SetupError as error:
        if not was_kept:
            raise
        print(f"{error}; fetched once more", file=sys.stderr, flush=True)
        shutil.rmtree(folder)
        fetch(python, pins, root, folder)
        install(python, pins, root, folder)


def main(pins: str) -> int:
    """Make the environment of the checkout that contains this file; return an exit code."""
    if sys.version_info < OLDEST:
        print("set-up: gangplan needs Python 3.11 or later; set PYTHON=python3.12", file=sys.stderr)
        return 3
    root = Path(__file__).resolve().parent.parent
    try:
        make(pins, root)
    except SetupError as error:
        for line in str(error).splitlines():
            print(f"set-up: {line}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
