"""The editor set-up in .vscode/ and .editorconfig: its commands run, and its settings match the project's."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.workspaces import REPOSITORY

FILES = {"plan": "specs/research/quickstart-cpu.yaml", "pytest": "tests/model/test_duration.py"}


def load(name: str) -> Any:
    """Read a file of .vscode/."""
    return json.loads((REPOSITORY / ".vscode" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("one", load("launch.json")["configurations"], ids=lambda one: one["name"])
def test_each_debugger_configuration_runs(one: dict[str, Any]) -> None:
    file = next((FILES[word] for word in FILES if word in one["name"]), "")
    assert file == "" or (REPOSITORY / file).is_file()
    words = [word.replace("${file}", file) for word in one["args"]]
    assert one["cwd"] == "${workspaceFolder}"
    done = subprocess.run(
        [sys.executable, "-m", one["module"], *words], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_editor_settings_match_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    length = project["tool"]["ruff"]["line-length"]
    settings = load("settings.json")
    assert settings["[python]"]["editor.rulers"] == [length]
    editor = configparser.ConfigParser()
    editor.read_string("[top]\n" + (REPOSITORY / ".editorconfig").read_text(encoding="utf-8"))
    assert editor["*.py"]["max_line_length"] == str(length)
