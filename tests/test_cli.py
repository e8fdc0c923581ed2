"""The command line as people and scripts use it: exit codes, help, colours, closed pipes, start-up."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, PlainSerializer
from pydantic_core import PydanticSerializationError

from gangplan import __version__
from gangplan.engines.process import ProcessEngine
from gangplan.engines.serial import SerialEngine
from gangplan.errors import INTERRUPTED, Exit
from gangplan.report.escape import escape_own_line
from tests import workspaces
from tests.signals import LISTENING
from tests.workspaces import gangplan, gangplan_process, render, write

HEAVY = ("typer", "click", "pydantic", "yaml", "jinja2", "jsonschema", "jsonschema_rs", "asyncio", "mpi4py")
COMMANDS = {
    "render": (
        "--check",
        "--output",
        "--cluster",
        "--team",
        "--engine",
        "--jobs",
        "--workspace",
        "[FILE]...",
    ),
    "validate": ("--format", "--fail-on", "--cluster", "--team", "--workspace", "[FILE]..."),
    "plan": ("--format", "--cluster", "--team", "--workspace", "[FILE]..."),
    "why": ("--workspace", "--cluster", "SPEC"),
    "cluster": ("check", "kueue-config"),
    "schema": ("print",),
    "tools": ("list", "install"),
}


# Start-up


def modules(*arguments: str) -> set[str]:
    """Return the top-level modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gangplan", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}


def test_the_version_imports_nothing_heavy() -> None:
    assert modules("--version") & set(HEAVY) == set()


def test_the_version_is_printed() -> None:
    assert gangplan_process("--version").out == f"gangplan {__version__}\n"
    assert gangplan("--version") == workspaces.Outcome(0, f"gangplan {__version__}\n", "")


def test_the_printed_schema_needs_no_yaml_and_no_templates() -> None:
    assert modules("schema", "print", "spec") & {"jinja2", "jsonschema_rs", "mpi4py"} == set()


# Help


def test_help_lists_every_command() -> None:
    outcome = gangplan("--help")
    assert outcome.code == Exit.CLEAN
    for command in COMMANDS:
        assert re.search(rf"^  {command} +[A-Z]", outcome.out, re.MULTILINE), command
    assert "docs" not in re.findall(r"^  (\w+) ", outcome.out, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_lists_its_options(command: str) -> None:
    outcome = gangplan(command, "--help")
    assert outcome.code == Exit.CLEAN
    for word in COMMANDS[command]:
        assert word in outcome.out
    assert "gangplan.dev" not in outcome.out
    assert "<" not in outcome.out  # no Python type


def test_calling_without_a_command_points_to_the_help() -> None:
    outcome = gangplan()
    assert "gangplan --help" in outcome.err
    assert outcome.code == Exit.INPUT


# Exit codes


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["validate"], 0),
        (["validate", "--format", "xml"], 2),
        (["validate", "--fail-on", "fatal"], 2),
        (["plan"], 0),
        (["plan", "--format", "yaml"], 2),
        (["why", "specs/nlp/filings.yaml"], 0),
        (["why"], 2),
        (["render", "--nothing"], 2),
        (["sing"], 2),
        (["cluster", "check"], 0),
        (["cluster", "check", "--as", "kueue=0.18"], 0),
        (["cluster", "check", "--as", "kueue=0.16"], 1),
        (["cluster", "check", "--as", "kueue=new"], 2),
        (["cluster", "check", "--as", "queue=1.0"], 2),
        (["cluster", "check", "--cluster", "nowhere"], 2),
        (["cluster", "kueue-config"], 0),
        (["cluster"], 2),
        (["schema", "print", "spec"], 0),
        (["schema", "print", "job"], 2),
        (["schema"], 2),
        (["tools", "install", "helm"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_commands_exit_with_the_documented_code(
    arguments: list[str], code: int, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    outcome = gangplan(*arguments)
    assert outcome.code == code
    if code == Exit.INPUT and len(arguments) > 1:
        assert outcome.err.startswith("fatal: ")
        assert "\n  help: " in outcome.err or "known: " in outcome.err
        assert outcome.out == ""


def test_a_folder_outside_a_workspace_is_refused(tmp_path: Path) -> None:
    outcome = gangplan("validate", "-C", tmp_path)
    assert outcome.code == Exit.INPUT
    assert outcome.err.startswith("fatal: nothing was checked: this is not a gangplan workspace")
    assert gangplan("validate", "-C", tmp_path / "nowhere").code == Exit.INPUT


@pytest.mark.parametrize(("level", "code"), [("error", 0), ("warning", 1), ("note", 1)])
def test_fail_on_sets_the_level_that_fails(level: str, code: int, root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "slots: 4\n"})
    outcome = gangplan("validate", "-C", root, "--fail-on", level)
    assert [(shown.severity, shown.rule) for shown in outcome.findings] == [("warning", "slots-not-gpus")]
    assert outcome.code == code
    failed = f"; failed by --fail-on {level}" if code else ""
    assert outcome.out.endswith(f": 1 warning{failed}\n")


def test_an_internal_error_is_reported_as_a_bug(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gangplan.pipeline.render.load_workspace", lambda *given: 1 / 0)
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.ENVIRONMENT
    assert f"a bug in gangplan {__version__}: ZeroDivisionError" in outcome.err
    assert "Traceback" in outcome.err


def test_an_interrupt_changes_nothing_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gangplan.pipeline.render.load_workspace", interrupted)
    outcome = gangplan("render", "-C", root)
    assert (outcome.code, outcome.err) == (Exit.INTERRUPTED, "interrupted; nothing was changed\n")


def test_an_interrupt_inside_a_serializer_is_still_an_interrupt(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pydantic turns the interrupt into an error of its own, which was reported as our bug."""

    def interrupted(value: int) -> str:
        raise KeyboardInterrupt

    class Model(BaseModel):
        value: Annotated[int, PlainSerializer(interrupted)] = 1

    with pytest.raises(PydanticSerializationError):
        Model().model_dump()
    monkeypatch.setattr("gangplan.pipeline.render.load_workspace", lambda *given: Model().model_dump())
    outcome = gangplan("render", "-C", root)
    assert (outcome.code, outcome.err) == (Exit.INTERRUPTED, "interrupted; nothing was changed\n")


INSIDE_MODEL = f"""{LISTENING}
import ctypes, functools, operator, sys
from pydantic.plugin import _schema_validator as plugin

build, press = plugin.SchemaValidator, functools.partial(ctypes.CDLL(None)["raise"], SIGNAL)

def pressed(*given, **named):
    if "'pattern'" not in repr(given):
        return build(*given, **named)
    # `map` calls both without a Python instruction between them, so that the signal waits for pydantic-core.
    return list(map(operator.call, (press, functools.partial(build, *given, **named))))[1]

plugin.SchemaValidator = pressed
from gangplan import cli
sys.exit(cli.run_command_line())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_models_are_built_is_not_lost(root: Path, number: int) -> None:
    """pydantic-core prints it, drops it, and goes on with a wrong pattern."""
    code = INSIDE_MODEL.replace("SIGNAL", str(int(number)))
    command = [sys.executable, "-c", code, "render", "-C", root]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (Exit.INTERRUPTED, "interrupted; nothing was changed\n")


@pytest.mark.parametrize("engine", ["serial", "process"])
def test_an_interrupt_at_the_end_of_the_engine_is_not_lost(
    engine: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python drops an interrupt in a generator that it collects, so the engine ends before its results do."""

    def interrupted(*given: object) -> Iterator[object]:
        try:
            yield from real(*given)
        finally:
            raise KeyboardInterrupt

    kind = {"serial": SerialEngine, "process": ProcessEngine}[engine]
    real = kind.map
    monkeypatch.setattr(kind, "map", interrupted)
    outcome = gangplan("render", "-C", root, "--no-cache", "--engine", engine, "--jobs", "2")
    assert (outcome.code, outcome.err) == (Exit.INTERRUPTED, INTERRUPTED)


AT_PLACE = f"""{LISTENING}
import sys
from gangplan import entry
from gangplan.incremental import answers

def stop(*given):
    raise KeyboardInterrupt

answers.PLACE = stop
sys.exit(entry.main())
"""


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("build_question_for_cached_answer", Exit.INTERRUPTED, INTERRUPTED),
        ("Question.answer", Exit.INTERRUPTED, INTERRUPTED),
        ("Question.keep", Exit.CLEAN, ""),  # all is done
    ],
)
def test_an_interrupt_next_to_the_command_shows_no_traceback(
    place: str, code: Exit, said: str, root: Path
) -> None:
    command = [sys.executable, "-c", AT_PLACE.replace("PLACE", place), "render", "-q", "-C", root]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)
    assert (root / "rendered").exists() == (code == Exit.CLEAN)


INSIDE_EXEC = """
import sys
from gangplan import cli
from gangplan.pipeline import render

def stop(*given):
    exec("raise KeyboardInterrupt")  # as in namedtuple, which many modules use

render.load_workspace = stop
sys.exit(cli.run_command_line())
"""


def test_an_interrupt_inside_exec_keeps_the_exit_code(root: Path, tmp_path: Path) -> None:
    """CPython would end the program by SIGINT, regardless of its exit code."""
    (tmp_path / "stopped.py").write_text(INSIDE_EXEC)
    command = [sys.executable, "-m", "stopped", "render", "-C", root]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (Exit.INTERRUPTED, "interrupted; nothing was changed\n")


@pytest.mark.parametrize("engine", ["serial", "process"])
def test_a_terminated_command_removes_its_temporary_files(engine: str, root: Path, tmp_path: Path) -> None:
    """Send SIGTERM, as a cancelled CI job does: to the command alone (0), or also to its workers (1)."""
    for with_group in (0, 1):
        folder = tmp_path / f"tmp{with_group}"
        folder.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "gangplan", "validate", "-C", root, "--engine", engine, "--jobs", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
            start_new_session=True,
        )
        while not list(folder.glob("gangplan-*/tree")) and process.poll() is None:
            time.sleep(0.002)
        (os.killpg if with_group else os.kill)(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (Exit.INTERRUPTED, b"interrupted; nothing was changed\n")
        assert not list(folder.iterdir())


# Formats


def test_json_of_validate_has_every_field_of_a_finding(root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("32Gi", "32GB")})
    outcome = gangplan("validate", "-C", root, "--format", "json")
    document = json.loads(outcome.out)
    assert outcome.code == Exit.INPUT
    assert outcome.err == ""
    assert document["version"] == 1
    (finding,) = document["findings"]
    assert re.fullmatch("[0-9a-f]{32}", finding.pop("fingerprint"))
    fix = finding.pop("fix")
    assert fix is None  # 32Gi and 32G are 7 % apart, so neither is a safe guess
    assert finding == {
        "rule": "spec-value",
        "severity": "error",
        "file": "specs/nlp/filings.yaml",
        "line": 8,
        "column": 9,
        "endColumn": 13,
        "cluster": "",
        "clusters": [],
        "object": "",
        "path": "",
        "message": "memory: '32GB' is not a valid amount",
        "help": "Did you mean 32Gi or 32G (29.802 GiB)?",
        "waiver": None,
    }


def test_json_of_validate_counts_what_was_checked(root: Path) -> None:
    document = json.loads(gangplan("validate", "-C", root, "--format", "json").out)
    assert (document["checked"]["specs"], document["checked"]["runs"]) == (1, 1)
    render(root)
    count = sum(data.count(b"\napiVersion: ") for data in workspaces.rendered(root).values())
    assert document["checked"]["objects"] == count
    assert document["engines"][0] == "embedded validator"
    assert document["findings"] == []


def test_json_of_plan_has_the_counts_and_the_command(root: Path) -> None:
    document = json.loads(gangplan("plan", "-C", root, "--format", "json").out)
    (run,) = document["runs"]
    assert (run["workers"], run["slots"], run["ranks"]) == (4, 2, 8)
    assert run["pods"] == {"node": 4, "launcher": 1}
    assert run["worker"] == {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}
    assert (
        run["totals"] == document["totals"]["lab"] == {"cpu": "33", "memory": "130Gi", "nvidia.com/gpu": "8"}
    )
    assert run["command"][:3] == ["mpirun", "-np", "8"]
    assert run["command"][-2:] == ["python", "train.py"]
    render(root)
    assert (root / "rendered" / run["file"]).is_file()


def test_text_of_plan_has_counts_admission_and_totals(root: Path) -> None:
    outcome = gangplan("plan", "-C", root)
    assert "specs/nlp/filings.yaml on lab: nlp/filings-" in outcome.out
    assert "ranks     8 = 4 workers x 2 slots\n" in outcome.out
    assert "admission admitted at once when idle (node: a100, launcher: cpu)\n" in outcome.out
    assert "totals\n  lab: 33 CPU, 130 GiB of memory, 8 GPUs\n" in outcome.out


def test_why_shows_the_origin_of_each_value(root: Path) -> None:
    write(root, {"specs/nlp/team.yaml": workspaces.TEAM + "defaults: {priority: low, timeout: 4h}\n"})
    outcome = gangplan("why", "-C", root, "specs/nlp/filings.yaml")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in outcome.out.splitlines()[1:]}
    assert rows["workers"] == "4 spec specs/nlp/filings.yaml:5:10"
    assert rows["slots"] == "2 GPUs per worker"
    assert rows["priority"] == "low team nlp specs/nlp/team.yaml:13:22"
    assert rows["timeout"] == "4h team nlp specs/nlp/team.yaml:13:36"
    assert rows["retries"] == "0 built-in"
    assert rows["nodePool"].startswith(
        "a100 first pool of cluster lab that fits the run overlays/lab/cluster.yaml:8:3"
    )


# Terminals and pipes


def coloured(root: Path, **env: str) -> str:
    """Return what validate prints to a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "gangplan", "validate", "-C", str(root)],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **env},
        check=False,
    )
    os.close(theirs)
    assert done.returncode == Exit.INPUT
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    return text


def test_colours_are_for_terminals_unless_no_color_is_set(root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("32Gi", "32GB")})
    assert "\033[1;31merror[spec-value]\033[0m" in coloured(root)
    assert "\033" not in coloured(root, NO_COLOR="1")
    assert "\033" not in gangplan_process("validate", "-C", root).err


@pytest.mark.parametrize(
    "arguments", [["render", "-o", "-"], ["plan"], ["schema", "print", "spec"], ["--help"], ["--version"]]
)
def test_a_closed_pipe_is_not_an_error(arguments: list[str], root: Path) -> None:
    for number in range(40):
        write(root, {f"specs/nlp/job-{number}.yaml": workspaces.SPEC})
    with subprocess.Popen(
        [sys.executable, "-m", "gangplan", *arguments],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        complaint = program.stderr.read().decode()
        program.wait(60)
    assert complaint == ""
    assert program.returncode == Exit.CLEAN


def test_a_current_folder_that_is_gone_is_named(root: Path, tmp_path: Path) -> None:
    script = (
        f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir ../gone && {sys.executable} -P -m gangplan"
    )
    for words, code in (("", Exit.INPUT), (f"validate -C {root}", Exit.ENVIRONMENT)):
        done = subprocess.run(["sh", "-c", f"{script} {words}"], capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert done.stderr.startswith("fatal: the current folder is gone\n")


@pytest.mark.parametrize("place", ["specs/nlp", "overlays/lab", "images"])
@pytest.mark.parametrize("mode", [0o000, 0o644])
def test_a_folder_without_permission_is_a_finding(place: str, mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder, as_nobody(Path(folder)):
        root = workspaces.stock(Path(folder) / "w")
        (root / place).chmod(mode)
        outcome = gangplan("validate", "-C", root, "--no-cache")
        (root / place).chmod(0o755)
    assert outcome.code == Exit.INPUT
    assert [(one.rule, one.place) for one in outcome.findings] == [("file-unreadable", place)]


def test_a_closed_folder_of_the_tree_is_a_matter_of_the_environment() -> None:
    with tempfile.TemporaryDirectory() as folder, as_nobody(Path(folder)):
        root = workspaces.stock(Path(folder) / "w")
        workspaces.render(root)
        (root / "rendered/lab").chmod(0o000)
        outcome = gangplan("validate", "-C", root, "--no-cache")
        (root / "rendered/lab").chmod(0o755)
    assert outcome.code == Exit.ENVIRONMENT
    assert outcome.err.startswith("fatal: ")
    assert "bug" not in outcome.err


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Give up the rights of root, which no permission stops, and own a folder."""
    own = os.geteuid()
    if own == 0:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_a_workspace_behind_a_link_has_the_same_files(root: Path, tmp_path: Path) -> None:
    """A shell's $PWD, which hooks and editors pass on, keeps the links that led there."""
    (tmp_path / "link").symlink_to(root, target_is_directory=True)
    spec = tmp_path / "link/specs/nlp/filings.yaml"
    for words in (("validate", spec), ("plan", spec), ("edit", spec, "--set", "workers=3")):
        outcome = gangplan(*words, "-C", tmp_path / "link")
        assert outcome.code == Exit.CLEAN, outcome.err
        assert outcome.code == gangplan(*words, "-C", root).code
    assert gangplan("validate", tmp_path / "other.yaml", "-C", root).code == Exit.INPUT


@pytest.mark.parametrize("streams", [("stdout",), ("stderr",), ("stdout", "stderr")])
@pytest.mark.parametrize("format", ["text", "sarif"])
def test_findings_decide_the_exit_code_when_the_reader_goes_away(
    streams: tuple[str, ...], format: str, root: Path
) -> None:
    for number in range(300):
        write(root, {f"specs/nlp/job-{number}.yaml": workspaces.SPEC.replace("32Gi", "32GB")})
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "gangplan", "validate", "--engine", "serial", "--format", format],
        cwd=root,
        stdout=theirs if "stdout" in streams else subprocess.DEVNULL,
        stderr=theirs if "stderr" in streams else subprocess.DEVNULL,
        check=False,
    )
    os.close(theirs)
    assert done.returncode == Exit.INPUT


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate"],
        ["validate", "--format", "sarif"],
        ["plan"],
        ["policy", "list"],
        ["--help"],
        ["--version"],
    ],
)
def test_output_that_cannot_be_written_is_not_success(arguments: list[str], root: Path) -> None:
    said = "fatal: standard output cannot be written: {}\n  help: "
    command = [sys.executable, "-m", "gangplan", *arguments]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, cwd=root, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == Exit.ENVIRONMENT
    assert done.stderr.startswith(said.format("No space left on device")), done.stderr
    assert done.stderr.count("\n") == 2
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(closed, cwd=root, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == Exit.ENVIRONMENT
    assert done.stderr.startswith(said.format("it is closed")), done.stderr


def test_findings_that_cannot_be_written_are_not_success(root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "slots: 4\n"})  # a warning
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "gangplan", "validate"]
        done = subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, stderr=full, check=False)
    assert done.returncode == Exit.ENVIRONMENT


def is_harmless(text: str) -> bool:
    """Return whether a text has no line that a CI runner obeys and nothing that a terminal obeys."""
    return "\033" not in text and not any(line.lstrip().startswith("::") for line in text.splitlines())


def test_a_fatal_line_contains_no_workflow_command(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "x\n::error::pwned \033[31m"
    for arguments in (["validate", evil], ["validate", "--format", evil], ["explain", evil], [evil]):
        outcome = gangplan(*arguments, *(["-C", str(root)] if arguments[0] == "validate" else []))
        assert outcome.code == Exit.INPUT
        assert "::error::pwned" in outcome.err
        assert is_harmless(outcome.err), outcome.err

    def broken(*given: object) -> None:
        raise RuntimeError(evil)

    monkeypatch.setattr("gangplan.pipeline.render.load_workspace", broken)
    outcome = gangplan("validate", "-C", root)
    assert "Traceback" in outcome.err
    assert is_harmless(outcome.err)


def test_a_line_of_its_own_contains_no_workflow_command() -> None:
    assert escape_own_line("  ::error::x\n\033[31m") == "\\  ::error::x\\n\\x1b[31m"
    assert escape_own_line("a ::error::x") == "a ::error::x"


@pytest.mark.parametrize("command", ["why", "validate", "plan", "render"])
def test_a_file_name_with_a_workflow_command_is_harmless(command: str, root: Path) -> None:
    name = "specs/nlp/\n::error::x.yaml"
    write(root, {name: workspaces.SPEC + "name: a\n"})
    for asked in [name, f"{name}:3"] if command == "why" else [name]:
        outcome = gangplan(command, "-C", root, asked)
        assert outcome.code == Exit.INPUT, outcome.err
        assert is_harmless(outcome.out + outcome.err), outcome.out + outcome.err
        assert "a bug in gangplan" not in outcome.err


@pytest.mark.parametrize("base", ["", " "])
def test_an_empty_base_is_refused(base: str, root: Path) -> None:
    for command in (["validate"], ["render", "--check"]):
        outcome = gangplan(*command, "-C", root, "--base", base)
        assert outcome.code == Exit.INPUT
        assert outcome.err.startswith("fatal: --base names no revision\n  help: ")


@pytest.mark.parametrize(
    "arguments", [["plan"], ["why", "specs/nlp/filings.yaml"], ["render", "-o", "-"], ["validate"]]
)
def test_text_beyond_ascii_is_printed_the_same_on_any_terminal(arguments: list[str], root: Path) -> None:
    text = (
        workspaces.SPEC.replace("train.py", "träin.py") + "description: für Zürich, 東京 und 🚀\nslots: 4\n"
    )
    write(root, {"specs/nlp/filings.yaml": text})
    plain = gangplan_process(*arguments, cwd=root, env={"PYTHONIOENCODING": ""})
    poor = gangplan_process(*arguments, cwd=root, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert poor == plain
    assert plain.code == Exit.CLEAN
    if arguments[0] in ("plan", "render"):
        assert "träin.py" in plain.out
