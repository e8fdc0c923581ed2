"""Scripts of CI recipes, run as their runners would: the text of a step, its variables, a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import workspaces

# No file is named for Git's settings: when Git writes them, it replaces the file, even a device.
IDENTITY = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def git(root: Path, *arguments: str) -> str:
    """Return what Git prints, without any user's settings."""
    command = ["git", *arguments]
    environment = {**os.environ, **IDENTITY, "HOME": str(root.parent)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def program(folder: Path) -> Path:
    """Create a folder with `gangplan` and `python` of these tests as programs.

    Like an installed one, this `gangplan` does not import from the current folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in (("gangplan", "-P -m gangplan"), ("python", "")):
        text = f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n'
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def repository(root: Path) -> tuple[str, str]:
    """Create a rendered workspace in a repository with the branches main and change, and return their
    commits; change is checked out."""
    workspaces.stock(root)
    (root / "requirements.txt").write_text("")
    workspaces.render(root)
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text(".gangplan/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    main = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "-qb", "change")
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", "workers: 3")})
    workspaces.render(root)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Change")
    return main, git(root, "rev-parse", "HEAD")


def run(
    script: str, folder: Path, variables: Mapping[str, str], shell: str = "sh", path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script with these variables; programs are looked for in `path` first."""
    places = [str(path)] if path else []
    environment = {
        "PATH": os.pathsep.join([*places, os.environ["PATH"]]),
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
        **IDENTITY,
        **variables,
    }
    first = re.match(r"#!(?:/usr/bin/env )?(\S+)", script)
    program = {"python3": sys.executable}.get(first[1], first[1]) if first else shell
    command = [program, *([] if first else ["-e"]), "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def filled(value: Any, values: Mapping[str, str]) -> Any:
    """Fill in Tekton's `$(params.name)` and the like; what has no value stays."""
    if isinstance(value, str):
        return re.sub(r"\$\(([\w.-]+)\)", lambda match: values.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    return {key: filled(one, values) for key, one in value.items()} if isinstance(value, dict) else value
