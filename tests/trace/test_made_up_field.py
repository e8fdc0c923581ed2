"""A made-up field of a spec: four lines of code in four files, and the reference, `new` and `why` know it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import workspaces

# Each file that somebody edits by hand, the line before which the new one goes, and the new lines.
EDITS = {
    "gangplan/spec/job.py": (
        "    retries: int | None = Field(\n",
        '    share_processes: bool = Field(False, description="All processes of a pod.", examples=[True])\n',
    ),
    "gangplan/model/job.py": ("    is_extended: bool = False", "    share_processes: bool = False\n"),
    "gangplan/resolve/assemble.py": (
        "        retries=bounds.retries,\n",
        "        share_processes=spec.share_processes,\n",
    ),
    "templates/pod.yaml.j2": (
        "enableServiceLinks: false\n",
        "{% if job.share_processes %}\nshareProcessNamespace: {{ job.share_processes }}\n{% endif %}\n",
    ),
}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the program and add the field to it."""
    folder = tmp_path_factory.mktemp("code")
    for name in ("gangplan", "generators", "validate", "templates", "policies"):
        shutil.copytree(workspaces.REPOSITORY / name, folder / name, symlinks=True)
    for name, (before, added) in EDITS.items():
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        (folder / name).write_text(text.replace(before, f"{added}{before}"), encoding="utf-8")
    return folder


def ask(code: Path, *words: str | Path) -> str:
    """Run gangplan as it is in a folder, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "gangplan", *map(str, words)],
        cwd=code,
        env={**os.environ, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_field_of_a_spec_takes_four_edits(code: Path, tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path)
    spec = root / "specs/nlp/filings.yaml"
    spec.write_text(f"{workspaces.SPEC}shareProcesses: true\n", encoding="utf-8")
    ask(code, "render", "-C", root)
    (run,) = (root / "rendered/lab/runs/nlp").glob("filings-*.yaml")
    lines = run.read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if "shareProcessNamespace: true" in line]
    assert len(numbers) == 2  # the launcher's and the workers'
    told = ask(code, "why", f"{run.relative_to(root)}:{numbers[0]}", "-C", root)
    assert f"specs/nlp/filings.yaml:{len(workspaces.SPEC.splitlines()) + 1}:" in told


def test_reference_and_new_know_the_field(code: Path) -> None:
    assert "All processes of a pod." in ask(code, "explain", "shareProcesses")
    assert "--share-processes" in ask(code, "new", "job", "--help")
