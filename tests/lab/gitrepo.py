"""A small Git repository for Argo CD to follow."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

#: Nobody's settings and nobody's name.
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "lab",
    "GIT_AUTHOR_EMAIL": "lab@example.com",
    "GIT_COMMITTER_NAME": "lab",
    "GIT_COMMITTER_EMAIL": "lab@example.com",
}


class GitRepository:
    """A repository in a folder, with one branch ``main``."""

    def __init__(self, folder: Path) -> None:
        """Make the repository; the folder may hold files already."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        """Return the address for an Application's ``repoURL``."""
        return self.folder.resolve().as_uri()

    def commit(self, files: Mapping[str, str | None] | None = None, message: str = "change") -> str:
        """Write files (None deletes one), commit everything, and return the revision."""
        for name, text in (files or {}).items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", message)
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str) -> str:
        environment = {**os.environ, **_ENVIRONMENT}
        result = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=True
        )
        return result.stdout.strip()
