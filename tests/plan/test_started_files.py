"""Files of `files:` that a command starts as programs, which their volumes do not allow, and near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces

FILES = "files: {./run.sh: /opt/run.sh, ./train.py: /opt/train.py}\n"
# Image | further fields | command as written | the command that the help proposes; empty: it has no finding
CASES: dict[str, tuple[str, str, str, str]] = {
    "the command": ("openmpi", "", "[/opt/run.sh, -x]", "[bash, -e, /opt/run.sh, -x]"),
    "behind a prefix": ("openmpi", "", "[env, A=1, /opt/run.sh]", "[env, A=1, bash, -e, /opt/run.sh]"),
    "in the work folder": ("pytorch", "workdir: /opt\n", "./run.sh x", "[bash, -e, ./run.sh, x]"),
    "behind cd": (
        "pytorch",
        "",
        "[bash, -c, cd /opt && ./run.sh]",
        "[bash, -c, 'cd /opt && bash -e ./run.sh']",
    ),
    "behind exec": ("pytorch", "", "[bash, -c, exec /opt/run.sh]", "[bash, -c, 'exec bash -e /opt/run.sh']"),
    "by mpirun": ("openmpi", "", "mpirun /opt/run.sh", "[mpirun, bash, -e, /opt/run.sh]"),
    "by mpirun of a script": (
        "openmpi",
        "",
        "[bash, -c, cd /opt; mpirun ./run.sh]",
        "[bash, -c, 'cd /opt; mpirun bash -e ./run.sh']",
    ),
    "by torchrun": (
        "pytorch",
        "",
        "torchrun --no-python /opt/train.py",
        "[torchrun, --no-python, python3, /opt/train.py]",
    ),
    "with its interpreter": ("openmpi", "", "[bash, /opt/run.sh]", ""),
    "read by the shell": ("openmpi", "", "[bash, -c, . /opt/run.sh]", ""),
    "a copy": ("openmpi", "", "[bash, -c, cp /opt/run.sh /tmp/r && chmod +x /tmp/r && /tmp/r]", ""),
    "by torchrun with Python": ("pytorch", "", "torchrun /opt/train.py", ""),
    "another folder": ("openmpi", "", "[bash, -c, cd /srv && ./run.sh]", ""),
    "an unknown folder": ("openmpi", "", "[bash, -c, cd /opt; cd $A && ./run.sh]", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_needs_its_interpreter(name: str, root: Path) -> None:
    image, more, command, right = CASES[name]
    found = _find_started_files(root, image, more, command)
    assert [one.help for one in found] == ([f"Write command: {right}."] if right else [])
    if right:
        assert not _find_started_files(root, image, more, right)


@pytest.mark.parametrize("field", ["setup", "steps"])
def test_a_file_needs_its_interpreter_before_the_program(field: str, root: Path) -> None:
    more = f"{field}: [{{command: [/opt/run.sh]}}]\n"
    (one,) = _find_started_files(root, "openmpi", more, "[python, train.py]")
    assert one.help == "Write command: [bash, -e, /opt/run.sh]."


def test_a_file_cannot_be_made_executable(root: Path) -> None:
    (one,) = _find_started_files(root, "openmpi", "", "[bash, -c, chmod +x /opt/run.sh && /opt/run.sh]")
    assert "chmod fails" in one.message
    assert one.help == "Remove chmod. Start the file with its interpreter: bash -e /opt/run.sh."


def _find_started_files(root: Path, image: str, more: str, command: str) -> list[workspaces.Shown]:
    text = workspaces.SPEC.replace("openmpi", image).replace("[python, train.py]", command)
    files = {"run.sh": "#!/bin/bash -e\n./a\n", "train.py": "#!/usr/bin/env python3\n"}
    workspaces.write(root, {"specs/nlp/filings.yaml": text + FILES + more})
    workspaces.write(root, {f"specs/nlp/{name}": one for name, one in files.items()})
    found = workspaces.gangplan("validate", "-C", root).findings
    return [one for one in found if one.rule == "command-not-executable"]
