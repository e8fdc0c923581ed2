"""Workspaces in real Git repositories, without the settings of any user."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs

from gangplan.reference.schemas import build_editor_schema_of_format
from tests import workspaces
from tests.workspaces import Outcome, gangplan

ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_ALLOW_PROTOCOL": "file",
}


@dataclass(frozen=True)
class Repository:
    """A repository at `top`, with a workspace in it."""

    top: Path
    workspace: str = "."

    @property
    def root(self) -> Path:
        """The workspace."""
        return self.top / self.workspace

    def git(self, *arguments: str | Path, fails: bool = False) -> str:
        """Run Git and return what it prints; it must succeed, or with `fails` it must fail."""
        done = subprocess.run(
            ["git", *map(str, arguments)],
            cwd=self.top,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            check=False,
        )
        assert bool(done.returncode) == fails, done.stderr.decode() + done.stdout.decode()
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def commit(self, message: str = "change") -> str:
        """Commit everything and return the commit's id."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def write(self, **files: str) -> None:
        """Write specs of team nlp, by name: `two="..."`."""
        workspaces.write(self.root, {f"specs/nlp/{name}.yaml": text for name, text in files.items()})

    def render(self) -> None:
        """Render the workspace, which must have no errors."""
        workspaces.render(self.root)

    def plan(self, *flags: str | Path, base: str = "main") -> Outcome:
        """Run `gangplan plan` against a base revision."""
        return gangplan("plan", "-C", self.root, "--base", base, *flags)

    def review(self, *flags: str | Path, base: str = "main") -> dict[str, Any]:
        """Return the plan as JSON, validated with its schema."""
        outcome = self.plan("--format", "json", *flags, base=base)
        document: dict[str, Any] = json.loads(outcome.out)
        jsonschema_rs.validator_for(build_editor_schema_of_format("plan")).validate(document)
        return document

    def edits(self, *flags: str | Path, base: str = "main") -> list[tuple[str, str]]:
        """Return each edit of a run, with its job."""
        return [(one["edit"], one["job"]) for one in self.review(*flags, base=base)["runs"]]


def begin(top: Path, workspace: str = ".", is_rendered: bool = True) -> Repository:
    """Write a repository with the small workspace, committed on main, and check out a branch.

    With `is_rendered`, the workspace is rendered before the commit.
    """
    top.mkdir(parents=True, exist_ok=True)
    found = Repository(top, workspace)
    workspaces.stock(found.root)
    if is_rendered:
        found.render()
    (top / ".gitignore").write_text(".gangplan/\n")
    found.git("init", "-q", "-b", "main")
    found.git("config", "gc.auto", "0")
    found.commit("base")
    found.git("checkout", "-q", "-b", "topic")
    return found
