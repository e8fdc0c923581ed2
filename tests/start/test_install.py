"""gangplan installed from its wheel, outside the repository; and what `make demo` installs and prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from gangplan import __version__
from tests import wheels
from tests.start import test_pages
from tests.workspaces import REPOSITORY, Outcome

FINDING = re.compile(r"^\S+: (?:error|warning|note)\[.*$", re.MULTILINE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the program from its wheel into its own environment.

    Its dependencies are taken from the environment of the tests: nothing is downloaded.
    """
    folder = tmp_path_factory.mktemp("installed")
    wheel = wheels.build(folder / "wheel")
    home = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=120)
    options = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "--python", home / "bin/python", "install", *options, wheel]
    subprocess.run(pip, check=True, timeout=120)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return home / "bin/gangplan"


def run(program: Path, *arguments: str, cwd: Path) -> Outcome:
    """Run a command of the installed program, with no variable that leads to the repository."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GANGPLAN"))}
    done = subprocess.run(
        [program, *arguments], cwd=cwd, env=clean, capture_output=True, text=True, timeout=120, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_commands_work_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    assert run(installed, "--version", cwd=tmp_path).out == f"gangplan {__version__}\n"
    where = [str(installed.parent / "python"), "-c", "import gangplan; print(gangplan.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_relative_to(installed.parents[1])
    assert run(installed, "init", "jobs", "--sample", "--sync", "flux", cwd=tmp_path).code == 0
    jobs = tmp_path / "jobs"
    job = ("new", "job", "tune", "--team", "nlp", "--image", "pytorch", "--command", "python train.py")
    for command in (
        job,
        ("render",),
        ("validate",),
        ("plan",),
        ("list", "specs"),
        ("explain", "rdma-fallback"),
        ("policy", "test", "baseline"),
        ("schema", "print", "spec"),
        ("cluster", "check", "lab"),
        ("why", "specs/nlp/tune.yaml"),
        ("simulate", "--cluster", "lab"),
        ("edit", "specs/nlp/tune.yaml", "--set", "workers=2"),
        ("clone", "specs/nlp/tune.yaml", "other", "--set", "retries=1"),
        ("list", "--team", "nlp"),
    ):
        outcome = run(installed, *command, cwd=jobs)
        assert (outcome.code, outcome.err) == (0, ""), command
        assert outcome.out, command
    asked = "from gangplan import Workspace; print(*Workspace('jobs').jobs())"
    python = [str(installed.parent / "python"), "-c", asked]
    found = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert {"specs/nlp/other.yaml", "specs/nlp/tune.yaml"} <= set(found.split())


def test_the_tutorial_works_with_the_wheel_and_git_alone(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the tutorial from the wheel with an empty home folder and Git: every line prints what the page
    shows."""
    programs = tmp_path / "bin"
    for name in ("home", "bin"):
        (tmp_path / name).mkdir()
    for name in ("sh", "cat", "git"):
        if (found := shutil.which(name)) is None:
            pytest.skip(f"there is no {name}")
        (programs / name).symlink_to(found)
    clean = {"PATH": f"{installed.parent}:{programs}", "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"}

    def system(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [programs / "sh", "-c", line], env=clean, capture_output=True, text=True, timeout=120, check=False
        )

    def shown(line: str) -> str:
        done = system(line)
        assert (done.returncode == 0) is (test_pages.REFUSED not in line), done.stderr
        return done.stdout + done.stderr

    monkeypatch.chdir(tmp_path)
    test_pages.does_what_it_shows(test_pages.PAGE, False, "no overlay engine", monkeypatch, shown)
    name = "git -c user.name=a -c user.email=a@example.com"
    commit = system(f"git init -q . && git add . && {name} commit -qm 'Begin' && git status --porcelain")
    assert (commit.returncode, commit.stdout) == (0, ""), commit.stderr
    assert system("gangplan render --check && gangplan validate --base HEAD").returncode == 0


# make demo


def name_of(requirement: str) -> str:
    """Return the package of a requirement, as indexes write it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def pins(file: str) -> dict[str, str]:
    """Map each package of a constraints file to its whole entry, without comments."""
    text = re.sub(r"^ *#.*\n", "", (REPOSITORY / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name_of(entry): entry for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE) if entry}


def test_run_time_constraints_list_only_what_running_needs() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    todo = [
        *map(name_of, settings["dependencies"]),
        *map(name_of, settings["optional-dependencies"]["build"]),
    ]
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        if name in needed:
            continue
        try:
            requires = distribution(name).requires or ()
        except PackageNotFoundError:
            continue  # for another system
        needed.add(name)
        todo += [name_of(one) for one in requires if "extra ==" not in one]
    run_time, everything = pins("constraints-run.txt"), pins("constraints.txt")
    assert set(run_time) - {"colorama"} == needed - {"colorama"}  # colorama is for Windows
    assert len(run_time) < len(everything) / 2
    assert {name: everything[name] for name in run_time} == run_time


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_demo_repeats_no_finding_and_prints_next_steps(tmp_path: Path) -> None:
    if not (Path(sys.prefix) / ".ready").exists():
        pytest.skip("the environment of the tests was not made by make")
    venv = tmp_path / "venv"  # make cannot read a path with a blank
    venv.symlink_to(sys.prefix)
    done = subprocess.run(
        ["make", "demo", f"VENV={venv}"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    findings = FINDING.findall(done.stderr)
    assert findings
    assert len(set(findings)) == len(findings)
    steps = re.findall(r"^\[(\d)/4\]", done.stdout, re.MULTILINE)
    assert steps[-3:] == ["2", "3", "4"]
    *_, last = done.stdout.partition("\nnext:\n")
    commands = [line.split("   ")[0].strip() for line in last.splitlines()]
    assert len(commands) >= 3
    for command in commands[:-1]:
        assert (
            subprocess.run(command.split(), cwd=REPOSITORY, capture_output=True, check=False).returncode == 0
        )
    assert " init " in commands[-1]
