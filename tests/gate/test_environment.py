"""Set-up: broken pins are reported at once, an index may fail for a minute, kept wheels need no index."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gate.index import NAME, Index, pin, serving
from tests.gate.modules import CI, load
from tests.workspaces import REPOSITORY

environment = load("environment")
SetupError = environment.SetupError

# A build backend of the checkout's own, so that the editable install needs no package either.
BACKEND = """\
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "gangplan-0-py3-none-any.whl"
    files = {
        "gangplan-0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: gangplan\\nVersion: 0\\n",
        "gangplan-0.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "gangplan-0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name
"""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Run an index for pip, without waiting between attempts."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(environment, "WAITS_S", (0, 0.01, 0.01))
    with serving() as found:
        monkeypatch.setenv("PIP_INDEX_URL", found.url)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        # pip itself retries, seconds later, what a server cannot do just now.
        monkeypatch.setattr(environment, "RETRIES", 0)
        yield found


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a checkout with one pin, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "constraints-run.txt").write_text(pin())
    (root / "constraints.txt").write_text(pin())
    (root / "constraints-alone.txt").write_text("# nothing\n")
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "gangplan"\nversion = "0"\n'
    )
    return root


def fetch(root: Path) -> Path:
    """Fetch the wheels of the checkout with this Python's pip; return their folder."""
    folder: Path = environment.wheels("run", root)
    environment.fetch(Path(sys.executable), "run", root, folder)
    return folder


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<<<<<<< HEAD\n" + pin(), "constraints-run.txt:1: a conflict mark of Git"),
        (pin() + "=======\n", "constraints-run.txt:3: a conflict mark of Git"),
        ("smallest>=1.0\n", "constraints-run.txt:1: 'smallest>=1.0' is no package with one version"),
        ("smallest==1.0\n", "constraints-run.txt:1: smallest==1.0 has no hash"),
        ("smallest==1.0\n" + pin(), "constraints-run.txt:1: smallest==1.0 has no hash"),
        (
            "--index-url https://example.com\n",
            "constraints-run.txt:1: '--index-url https://example.com' is no package",
        ),
        ("smallest==1.0 \\\n    --hash=md5:00\n", "constraints-run.txt:2: '--hash=md5:00' is no package"),
    ],
)
def test_broken_pins_end_set_up_before_anything_is_made(text: str, says: str, checkout: Path) -> None:
    (checkout / "constraints-run.txt").write_text(text)
    with pytest.raises(SetupError) as caught:
        environment.make("run", checkout)
    assert says in str(caught.value)
    assert not (checkout / ".venv").exists()


def test_our_own_pins_are_complete() -> None:
    for names in environment.PINS.values():
        for name in names:
            text = (REPOSITORY / name).read_text(encoding="utf-8")
            assert environment.problems(name, text) == []
            assert text.count("==") >= 1


def _pinned(name: str) -> dict[str, str]:
    """Return the pinned version of each package."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    return {
        canonicalize_name(found[1]): found[2]
        for found in re.finditer(r"^([\w.-]+)(?:\[.*\])?==([\w.!+-]+)", text, re.MULTILINE)
    }


def test_pins_and_requirements_agree() -> None:
    """A package that is added only to pyproject.toml would be missed only when something imports it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needs = {
        "constraints-run.txt": [*project["dependencies"], *extras["build"]],
        "constraints.txt": [*project["dependencies"], *(each for extra in extras.values() for each in extra)],
    }
    for name, wanted in needs.items():
        pins = _pinned(name)
        for requirement in map(Requirement, wanted):
            version = pins.get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement.name} is not in {name}; run: make constraints"
            assert requirement.specifier.contains(version), f"{name} has {requirement.name} {version}"
    run, every = _pinned("constraints-run.txt"), _pinned("constraints.txt")
    assert {name: every.get(name) for name in run} == run


def test_a_failing_index_is_retried(checkout: Path, index: Index) -> None:
    index.refusals = 2
    assert [path.name for path in fetch(checkout).iterdir()] == [f"{NAME}-1.0-py3-none-any.whl"]
    assert not index.refusals


@pytest.mark.parametrize("code", [403, 503])
def test_a_refusing_index_is_blamed_and_not_the_pins(code: int, checkout: Path, index: Index) -> None:
    index.refusals, index.code = 1000, code
    with pytest.raises(
        SetupError, match=r"the package index failed 3 times; the pins are not to blame: .*smallest==1.0"
    ):
        fetch(checkout)
    assert not list((checkout.parent / "cache/gangplan/wheels").iterdir()), "nothing is left of the tries"


def test_a_silent_index_is_blamed_and_not_the_pins(
    checkout: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.is_silent = True
    monkeypatch.setattr(environment, "ANSWER_S", 0.3)
    with pytest.raises(SetupError, match="the package index failed 3 times; the pins are not to blame"):
        fetch(checkout)
    assert len(index.asked) == 3


def test_the_patience_with_a_silent_index_fits_into_the_limit_of_set_up() -> None:
    a_try_s = environment.ANSWER_S * (environment.RETRIES + 1) + 30  # pip waits between its own attempts
    assert sum(environment.WAITS_S) + len(environment.WAITS_S) * a_try_s < load("gate").GATE[0].limit_s


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (pin("2.0"), "No matching distribution found|Could not find a version.*smallest==2.0"),
        (pin().replace("sha256:", "sha256:" + "0" * 4, 1)[:-5] + "\n", "DO NOT MATCH THE HASHES"),
    ],
)
def test_a_wrong_pin_is_not_retried(text: str, says: str, checkout: Path, index: Index) -> None:
    (checkout / "constraints-run.txt").write_text(text)
    with pytest.raises(SetupError, match=f"pip refuses constraints-run.txt: .*({says})"):
        fetch(checkout)
    assert sum(not path.endswith(".whl") for path in index.asked) == 1


def test_wheels_are_kept_by_pins_and_only_the_newest_stay(checkout: Path, index: Index) -> None:
    first = fetch(checkout)
    for number in range(3):
        (checkout / "constraints-run.txt").write_text(pin() + f"# {number}\n")
        newest = fetch(checkout)
        assert newest != first
    assert len(list(first.parent.iterdir())) == environment.KEPT
    assert newest.is_dir()


def test_wheels_are_kept_in_the_checkout_without_a_cache_folder(
    checkout: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache folder of this home is not writable."""
    (checkout.parent / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(checkout.parent / "file"))
    assert fetch(checkout).is_relative_to(checkout / ".venv")


def _imports(root: Path) -> bool:
    """Return whether the environment has its package."""
    program = [str(root / ".venv/bin/python"), "-c", f"import {NAME}"]
    return subprocess.run(program, check=False, capture_output=True).returncode == 0


def test_half_an_environment_is_completed_and_remade_without_an_index(checkout: Path, index: Index) -> None:
    """`python -m venv` was killed. Later the index is not needed, until a kept wheel is damaged."""
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    (checkout / ".venv/pyvenv.cfg").write_text("home = /nowhere\n")
    environment.make("run", checkout)
    assert _imports(checkout)

    asked = len(index.asked)
    subprocess.run([checkout / ".venv/bin/python", "-m", "pip", "uninstall", "-qy", NAME], check=True)
    assert not _imports(checkout)
    environment.make("run", checkout)
    assert _imports(checkout)
    assert len(index.asked) == asked, "nothing was asked for"

    (kept,) = environment.wheels("run", checkout).iterdir()
    kept.write_bytes(kept.read_bytes()[:-100])
    subprocess.run([checkout / ".venv/bin/python", "-m", "pip", "uninstall", "-qy", NAME], check=True)
    environment.make("run", checkout)
    assert _imports(checkout)
    assert len(index.asked) > asked


def test_an_old_python_is_refused_with_the_required_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    assert environment.main("run") == 3
    assert capsys.readouterr().err == "set-up: gangplan needs Python 3.11 or later; set PYTHON=python3.12\n"


def test_files_of_ci_can_be_parsed_by_python_3_8() -> None:
    """They are read before anything checks the version, so they have no syntax newer than 3.8."""
    import ast

    for path in CI.glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
