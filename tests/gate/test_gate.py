"""The gate's last line always says how it ended and why."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gate.modules import CI, load
from tests.workspaces import REPOSITORY

gate = load("gate")
Stage = gate.Stage

# A gate with the stages of a test.
PROGRAM = """\
import sys
sys.path.insert(0, {ci!r})
import gate
from gate import Stage
sys.exit(gate.main("test", ({stages})))
"""


# The same on a machine so busy that a stage runs long before the gate knows of it.
SLOW = """\
import subprocess, time
class Slow(subprocess.Popen):
    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        time.sleep(2)
subprocess.Popen = Slow
"""


def sh(name: str, script: str, *, limit_s: int = 60, **more: object) -> str:
    """Return a stage that is a shell script, as source text."""
    return repr(Stage(name, limit_s, ("sh", "-c", script), **more)) + ","


def start(*stages: str, before: str = "", **variables: str) -> subprocess.Popen[str]:
    """Start a gate with stages."""
    program = before + PROGRAM.format(ci=str(CI), stages="".join(stages))
    return subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True
    )


def run(*stages: str, **variables: str) -> tuple[int, list[str]]:
    """Run a gate with stages; return its exit code and lines."""
    with start(*stages, **variables) as process:
        out, _ = process.communicate(timeout=100)
    return process.returncode, out.splitlines()


def test_a_passed_gate_says_how_long_it_took() -> None:
    code, lines = run(sh("one", "echo fine"), sh("two", "true"), GIT_DIR="/nowhere")
    assert code == 0
    assert re.fullmatch(
        r"ci: commit (?!unknown)\w+, Python 3[\d.]+, \d+ cores, load [\d.]+, \d+ MiB free, kept: .*", lines[0]
    )
    assert "fine" in lines
    assert re.fullmatch(r"ci: passed in \d+ s", lines[-1])


def test_every_failed_stage_is_named_with_its_reasons() -> None:
    code, lines = run(
        sh("static", "echo 'make check: lint found problems'; echo 'make check: types do not fit'; exit 2",
           why="make check: (.*)"),
        sh("tests", "echo 'failed twice: tests/x.py::test_y'; exit 1", why="(failed twice: .*)"),
        sh("quiet", "exit 7"),
        sh("made", "echo 'make: *** [Makefile:9: x] Error 1'; echo; exit 2", why="no such line"),
        sh("said", "echo one; echo two; echo; exit 2"),
        sh("fine", "true"),
    )  # fmt: skip
    assert code == 1
    assert re.fullmatch(
        r"ci: FAILED in static \(lint found problems, types do not fit\); "
        r"tests \(failed twice: tests/x.py::test_y\); quiet \(exit code 7\); "
        r"made \(\[Makefile:9: x\] Error 1\); said \(two\) after \d+ s",
        lines[-1],
    )


def test_a_required_stage_that_fails_ends_the_gate() -> None:
    code, lines = run(
        sh("set-up", "echo 'set-up: the index failed 5 times'; exit 2", why="set-up: (.*)", must=True),
        sh("tests", "echo never"),
    )
    assert code == 1
    assert "never" not in lines
    assert re.fullmatch(r"ci: FAILED in set-up \(the index failed 5 times\) after \d+ s", lines[-1])


def test_an_unsteady_test_is_named_although_all_passed() -> None:
    code, lines = run(sh("tests", "echo 'unsteady: tests/x.py::test_y'", notes="unsteady: (.*)"))
    assert code == 0
    assert re.fullmatch(r"ci: passed in \d+ s; 1 unsteady: tests/x.py::test_y", lines[-1])


def test_a_stage_has_a_time_limit_and_leaves_no_process(tmp_path: Path) -> None:
    """Its whole process group ends, also processes that ignore SIGTERM."""
    script = (
        f"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.1; done' & wait"
    )
    code, lines = run(sh("hangs", script, limit_s=2), sh("next", "echo next"))
    assert code == 1
    assert "next" in lines
    assert re.fullmatch(r"ci: FAILED in hangs \(took longer than 2 s\) after \d+ s", lines[-1])
    assert _gone(int((tmp_path / "pid").read_text()))


def test_background_processes_end_with_their_stage(tmp_path: Path) -> None:
    code, _ = run(sh("leaves", f"sleep 600 & echo $! >{tmp_path}/pid"))
    assert code == 0
    assert _gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("before", ["", SLOW], ids=["known", "starting"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_gate_with_a_last_line(number: signal.Signals, before: str, tmp_path: Path) -> None:
    with start(sh("long", f"echo $$ >{tmp_path}/pid; exec sleep 600"), before=before) as process:
        for _ in range(600):
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
                break
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.fullmatch(rf"ci: FAILED in long \(ended by {number.name}\) after \d+ s", out.splitlines()[-1])
    assert _gone(int((tmp_path / "pid").read_text()))


def test_a_full_disk_is_not_blamed_on_the_change(tmp_path: Path) -> None:
    """What earlier runs left in the cache is deleted first."""
    left = tmp_path / "gangplan/lab/.building-x"
    kept = tmp_path / "gangplan/tools/kustomize"
    for folder in (left, kept):
        folder.mkdir(parents=True)
    variables = {"GANGPLAN_CI_ROOM_MIB": "999999999", "XDG_CACHE_HOME": str(tmp_path)}
    code, lines = run(sh("tests", "echo never"), **variables)
    assert code == 1
    assert "never" not in lines
    assert re.fullmatch(
        r"ci: FAILED in room \(\d+ MiB are free at .*, and 999999999 are needed; "
        r"this is no fault of the change\) after \d+ s",
        lines[-1],
    )
    assert (left.exists(), kept.exists()) == (False, True)


def test_a_missing_command_is_named() -> None:
    code, lines = run(repr(Stage("none", 9, ("no-such-program",))) + ",")
    assert code == 1
    assert lines[-1].startswith("ci: FAILED in none (the gate itself broke: FileNotFoundError(")


def test_stages_do_not_inherit_user_settings(tmp_path: Path) -> None:
    """They do not inherit those of a surrounding make either, but keep the way to the package index."""
    strange = {
        "MAKEFLAGS": "k", "PYTHONPATH": "/nowhere", "PYTEST_ADDOPTS": "--collect-only", "PIP_USER": "1",
        "PIP_NO_INDEX": "1", "GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "LANG": "de_DE.UTF-8",
        "LC_NUMERIC": "de_DE.UTF-8", "HYPOTHESIS_PROFILE": "default", "PYTHONHASHSEED": "1",
        "BASH_ENV": "/nowhere", "GANGPLAN_TODAY": "2030-01-01",
    }  # fmt: skip
    kept = {"PIP_INDEX_URL": "https://example.com/simple", "GIT_SSL_CAINFO": "/some", "HOME": "/some"}
    blank = tmp_path / "with a blank"
    blank.mkdir()
    code, lines = run(sh("env", "env; umask"), TMPDIR=str(blank), **strange, **kept)
    assert code == 0
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    assert not {name for name in strange if name in seen}
    assert {name: seen[name] for name in kept} == kept
    assert (seen["CI"], seen["LC_ALL"], seen["TZ"]) == ("true", "C.UTF-8", "UTC")
    assert re.fullmatch(r"/tmp/ci-\w+", seen["TMPDIR"])
    assert not Path(seen["TMPDIR"]).exists(), "it is removed at the end"
    assert "0022" in lines


def test_an_old_python_is_named_in_the_last_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for script in ("run", "nightly"):
        done = subprocess.run(
            ["bash", CI / script],
            env={**os.environ, "PYTHON": str(old)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1] == (
            f"ci: FAILED in start after 0 s: {old} is no Python 3.11 or later; set PYTHON=python3.12"
        )


@pytest.mark.parametrize("name", gate.RUNS)
def test_every_stage_is_a_target_of_the_makefile(name: str) -> None:
    for stage in gate.RUNS[name]:
        target = next(word for word in stage.command[1:] if not word.startswith("-"))
        done = subprocess.run(
            ["make", "-n", target], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_limits_of_all_stages_add_up_to_less_than_90_minutes() -> None:
    """A run that is stopped from outside has no last line."""
    assert sum(stage.limit_s for stage in gate.GATE) <= 5100


def test_the_reasons_of_the_real_programs_are_found() -> None:
    """The table searches for what each stage of the gate prints when it fails."""
    said = {
        "set-up": ("set-up: pip refuses constraints.txt: no", "pip refuses constraints.txt: no"),
        "demo": ("fatal: there is no folder specs/", "there is no folder specs/"),
        "static": (
            "make check: types do not fit; correct the lines above",
            "types do not fit; correct the lines above",
        ),
        "tests": ("failed twice: tests/x.py::test_y[a b]", "failed twice: tests/x.py::test_y[a b]"),
    }
    for stage in gate.GATE:
        line, reason = said[stage.name]
        assert gate.told(["noise", line, line], stage.why) == [reason]


def _gone(pid: int) -> bool:
    """Return whether a process ends within ten seconds (a zombie has ended)."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False
