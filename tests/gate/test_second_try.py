"""A test that fails among others is retried alone: then it is unsteady, or it fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.modules import CI

UNSTEADY = """\
from pathlib import Path

def test_once(request):
    seen = Path(__file__).with_name("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first

def test_always():
    pass
"""
BROKEN = "def test_broken():\n    assert False\n"


def run(folder: Path, **files: str) -> tuple[int, list[str]]:
    """Run tests in a folder as the gate does; return the exit code and the lines of output."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, CI / "tests.py", "-p", "xdist", "-n", "1", str(folder)],
        cwd=folder,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_a_run_without_failures_passes(tmp_path: Path) -> None:
    code, lines = run(tmp_path, fine="def test_fine():\n    pass\n")
    assert code == 0
    assert "1 passed" in lines[-1]


def test_a_test_that_passes_alone_is_unsteady(tmp_path: Path) -> None:
    code, lines = run(tmp_path, one=UNSTEADY)
    assert code == 0
    assert "1 failed among others; now alone" in lines
    assert lines[-1] == "unsteady: test_one.py::test_once"


def test_failures_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    assert run(tmp_path, one=BROKEN)[0] == 1
    (tmp_path / "test_one.py").unlink()
    code, lines = run(tmp_path, two=UNSTEADY)
    assert (code, lines[-1]) == (0, "unsteady: test_two.py::test_once")


def test_temporary_files_are_removed_with_the_run(tmp_path: Path) -> None:
    """This includes files that tests leave behind."""
    text = "import os\ndef test_leaves():\n    open(os.environ['TMPDIR'] + '/left', 'w').close()\n"
    text += f"    open({str(tmp_path / 'where')!r}, 'w').write(os.environ['TMPDIR'])\n"
    assert run(tmp_path, one=text)[0] == 0
    assert not Path((tmp_path / "where").read_text()).exists()


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, lines = run(tmp_path, one=UNSTEADY, two=BROKEN)
    assert code == 1
    assert lines[-2:] == ["unsteady: test_one.py::test_once", "failed twice: test_two.py::test_broken"]


def test_many_failures_are_not_retried(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.parametrize('n', range(21))\ndef test_broken(n):\n    assert False\n"
    code, lines = run(tmp_path, many=text)
    assert code == 1
    assert lines[-1].startswith(
        "no second try: exit code 1 of pytest, 21 failed: test_many.py::test_broken[0], "
    )


@pytest.mark.parametrize(
    ("text", "code"), [("import no_such_module\n", 1), ("", 5)], ids=["cannot be read", "nothing there"]
)
def test_only_failed_tests_are_retried(text: str, code: int, tmp_path: Path) -> None:
    found, lines = run(tmp_path, one=text)
    assert found == code
    assert lines[-1].startswith(f"no second try: exit code {code} of pytest")
