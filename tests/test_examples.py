"""Examples: a small workspace each, its rendered tree (tests/golden.py), and the output of `gangplan plan`.

After an intended change: `python -m pytest tests/test_examples.py --update`, and read the difference first.
"""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

import pytest

from gangplan.emit import is_run_file
from gangplan.errors import Exit
from tests.golden import (
    EXAMPLES,
    WHOLE,
    compare_example,
    compare_files,
    hide_hashes,
    read_example,
    render_example,
)
from tests.workspaces import gangplan, tree, write

NAMES = EXAMPLES[0].with_name("runs.txt")


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.name)
def example(request: pytest.FixtureRequest) -> Path:
    """Return one example; skip those with patches where no program can apply them."""
    folder: Path = request.param
    if list((folder / "input").glob("overlays/*/kustomization.yaml")):
        request.getfixturevalue("builder")
    return folder


def test_examples_render_as_committed(example: Path, tmp_path: Path, is_updating: bool) -> None:
    root = tmp_path / "workspace"
    shutil.copytree(example / "input", root)
    plan = gangplan("plan", "-C", root)
    assert plan.code == Exit.CLEAN, plan.err
    assert gangplan("render", "-C", render_example(example.name).parent, "--check").code == Exit.CLEAN
    files = read_example(example.name)
    golden = {path: data.decode() for path, data in tree(example).items() if path.startswith(("exp", "rep"))}
    actual = {"report.txt": hide_hashes(files, plan.err + plan.out)}
    if example.name in WHOLE:
        actual |= {f"expected/{path}": text for path, text in files.items()}
    else:
        actual["expected.diff"] = compare_example(example.name, files, golden.get("expected.diff", ""))
    if is_updating:
        shutil.rmtree(example / "expected", ignore_errors=True)
        write(example, actual)
        return
    _fail_unless_equal(golden, actual)


def test_names_of_runs_are_as_committed(builder: str, is_updating: bool) -> None:
    """A run with a new name trains again.

    The hash in the name covers all of the run except metadata and network.
    """
    paths = ((one.name, path) for one in EXAMPLES for path in read_example(one.name) if is_run_file(path))
    names = "".join(f"{example}/{path}\n" for example, path in paths)
    assert names
    if is_updating:
        NAMES.write_text(names)
        return
    _fail_unless_equal({NAMES.name: NAMES.read_text()}, {NAMES.name: names})


def _fail_unless_equal(old: dict[str, str], new: dict[str, str]) -> None:
    lines: list[str] = []
    for name in sorted({*old, *new}):
        before, after = (files.get(name, "").splitlines() for files in (old, new))
        lines += difflib.unified_diff(before, after, f"{name} (committed)", f"{name} (now)", lineterm="", n=2)
    if old != new:
        lines.append("\nif this is intended: pytest tests/test_examples.py --update")
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("part", ["platform", "runs", "tenants"])
def test_a_difference_shows_every_changed_line(part: str) -> None:
    """A line may be removed, repeated or moved: a whole tree and a difference pin every byte."""
    like, model, path, text = (
        one for name in ("openmpi5-cpu", "gang-volcano") for one in _first(part, read_example(name))
    )
    now = list(compare_files(like, model, path, text))
    assert now
    lines = text.splitlines()
    for index in range(0, len(lines) - 1, 7):
        before, line, following, after = lines[:index], lines[index], lines[index + 1], lines[index + 2 :]
        for changed in ([following], [line, line, following], [following, line]):
            if changed != [line, following]:
                other = "\n".join([*before, *changed, *after])
                assert list(compare_files(like, model, path, other)) != now, (index, changed)


def _first(part: str, files: dict[str, str]) -> tuple[str, str]:
    path = next(path for path in files if f"/{part}/" in path)
    return hide_hashes(files, path), hide_hashes(files, files[path])


def test_every_example_is_valid(example: Path) -> None:
    """Check with both schema validators where both are available."""
    # Examples that are valid on some days only name one of them.
    day = ("--today", (example / "today").read_text().strip()) if (example / "today").exists() else ()
    outcome = gangplan("validate", "-C", example / "input", "--fail-on", "error", *day)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert not (example / "input/rendered").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_readme_of_an_example_is_one_sentence_and_its_specs_are_short(path: Path) -> None:
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
