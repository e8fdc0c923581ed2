"""Examples: a small workspace each, the whole tree it becomes, and what `gangplan plan` says of it.

After an intended change: `python -m pytest tests/test_examples.py --update`, and read the difference first.
"""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import gangplan, rendered, tree, write

EXAMPLES = sorted(path for path in Path(__file__).with_name("examples").iterdir() if path.is_dir())


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.name)
def example(request: pytest.FixtureRequest) -> Path:
    """One example; those with patches need a program that applies them."""
    folder: Path = request.param
    if list((folder / "input").glob("overlays/*/kustomization.yaml")):
        request.getfixturevalue("builder")
    return folder


def test_example(example: Path, tmp_path: Path, is_updating: bool) -> None:
    root = tmp_path / "workspace"
    shutil.copytree(example / "input", root)
    plan = gangplan("plan", "-C", root)
    assert plan.code == Exit.CLEAN, plan.err
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    actual = {f"expected/{name}": data for name, data in rendered(root).items()}
    actual["report.txt"] = (plan.err + plan.out).encode()
    if is_updating:
        shutil.rmtree(example / "expected", ignore_errors=True)
        write(example, actual)
        return
    committed = {f"expected/{name}": data for name, data in tree(example / "expected").items()}
    committed["report.txt"] = (
        (example / "report.txt").read_bytes() if (example / "report.txt").exists() else b""
    )
    if actual != committed:
        pytest.fail(
            _difference(committed, actual) + "\nif this is intended: pytest tests/test_examples.py --update",
            False,
        )


def _difference(old: dict[str, bytes], new: dict[str, bytes]) -> str:
    lines: list[str] = []
    for name in sorted({*old, *new}):
        before, after = (files.get(name, b"").decode().splitlines() for files in (old, new))
        lines += difflib.unified_diff(before, after, f"{name} (committed)", f"{name} (now)", lineterm="", n=2)
    return "\n".join(lines)


def test_validate_agrees(example: Path) -> None:
    """Both judges of schemas, where both are at hand, are content."""
    # What is right on some days alone names one of them.
    day = ("--today", (example / "today").read_text().strip()) if (example / "today").exists() else ()
    outcome = gangplan("validate", "-C", example / "input", "--fail-on", "error", *day)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert not (example / "input/rendered").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_what_it_is_about(path: Path) -> None:
    why = (path / "README").read_text()
    assert why.count("\n") == 1
    assert why.endswith(".\n")
    specs = [text for text in tree(path / "input/specs").values() if b"kind: TrainingJob" in text]
    assert all(text.count(b"\n") <= 30 for text in specs)


def test_ci_never_updates() -> None:
    import os
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--update", "--collect-only", __file__],
        env={**os.environ, "CI": "true"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--update is for people" in done.stderr
